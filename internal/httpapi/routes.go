package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"oda"
	"oda/api"
)

// handler answers a call, or returns the error to answer with.
type handler func(*call) error

// route is one operation of the API description.
type route struct {
	operation string
	kind      oda.Kind // of its entities; 0 if it is not about one kind
	handle    handler
	page      bool // for people, or the description itself: any query is accepted
	probe     bool // called all the time, so success is logged only for debugging
}

// routes returns the whole interface. The API description has the method and the
// path of each operation.
func (a *API) routes() []route {
	return []route{
		{operation: "storeSeveral", handle: a.storeSeveral},

		{operation: "listSBDs", kind: oda.SBDefinition, handle: a.list},
		{operation: "listSBIs", kind: oda.SBInstance, handle: a.list},
		{operation: "listEBs", kind: oda.ExecutionBlock, handle: a.list},
		{operation: "listPRJs", kind: oda.Project, handle: a.list},

		{operation: "searchSBDs", kind: oda.SBDefinition, handle: a.search},
		{operation: "searchSBIs", kind: oda.SBInstance, handle: a.search},
		{operation: "searchEBs", kind: oda.ExecutionBlock, handle: a.search},
		{operation: "searchPRJs", kind: oda.Project, handle: a.search},

		{operation: "createSBD", kind: oda.SBDefinition, handle: a.create},
		{operation: "createSBI", kind: oda.SBInstance, handle: a.create},
		{operation: "createEB", kind: oda.ExecutionBlock, handle: a.create},
		{operation: "createPRJ", kind: oda.Project, handle: a.create},
		{operation: "createEmptyEB", kind: oda.ExecutionBlock, handle: a.createEmpty},

		{operation: "getSBD", kind: oda.SBDefinition, handle: a.get},
		{operation: "getSBI", kind: oda.SBInstance, handle: a.get},
		{operation: "getEB", kind: oda.ExecutionBlock, handle: a.get},
		{operation: "getPRJ", kind: oda.Project, handle: a.get},

		{operation: "listSBDVersions", kind: oda.SBDefinition, handle: a.listVersions},
		{operation: "listSBIVersions", kind: oda.SBInstance, handle: a.listVersions},
		{operation: "listEBVersions", kind: oda.ExecutionBlock, handle: a.listVersions},
		{operation: "listPRJVersions", kind: oda.Project, handle: a.listVersions},

		{operation: "getSBDVersion", kind: oda.SBDefinition, handle: a.getVersion},
		{operation: "getSBIVersion", kind: oda.SBInstance, handle: a.getVersion},
		{operation: "getEBVersion", kind: oda.ExecutionBlock, handle: a.getVersion},
		{operation: "getPRJVersion", kind: oda.Project, handle: a.getVersion},

		{operation: "diffSBD", kind: oda.SBDefinition, handle: a.diff},
		{operation: "diffSBI", kind: oda.SBInstance, handle: a.diff},
		{operation: "diffEB", kind: oda.ExecutionBlock, handle: a.diff},
		{operation: "diffPRJ", kind: oda.Project, handle: a.diff},

		{operation: "provenanceOfSBD", kind: oda.SBDefinition, handle: a.provenance},
		{operation: "provenanceOfSBI", kind: oda.SBInstance, handle: a.provenance},
		{operation: "provenanceOfEB", kind: oda.ExecutionBlock, handle: a.provenance},
		{operation: "provenanceOfPRJ", kind: oda.Project, handle: a.provenance},

		{operation: "storeSBD", kind: oda.SBDefinition, handle: a.store},
		{operation: "storeSBI", kind: oda.SBInstance, handle: a.store},
		{operation: "storeEB", kind: oda.ExecutionBlock, handle: a.store},
		{operation: "storePRJ", kind: oda.Project, handle: a.store},

		{operation: "recordPatch", kind: oda.ExecutionBlock, handle: a.record},
		{operation: "recordPost", kind: oda.ExecutionBlock, handle: a.record},
		{operation: "recordBatch", kind: oda.ExecutionBlock, handle: a.recordBatch},
		{operation: "readRecords", kind: oda.ExecutionBlock, handle: a.readRecords},

		{operation: "night", handle: a.night},
		{operation: "changes", handle: a.changes},

		{operation: "home", page: true, handle: func(c *call) error { return a.pages.Home(c, c.r) }},
		{operation: "guide", page: true, handle: func(c *call) error { return a.pages.Guide(c, c.r) }},
		{operation: "problems", page: true, handle: func(c *call) error { return a.pages.Problems(c, c.r) }},
		{operation: "problem", page: true, handle: func(c *call) error { return a.pages.Problem(c, c.r) }},
		{operation: "descriptionJSON", page: true, handle: static("application/json", api.JSON)},
		{operation: "descriptionYAML", page: true, handle: static("application/yaml", api.YAML)},
		{operation: "ui", page: true, handle: func(c *call) error { return a.pages.UI(c, c.r) }},
		{operation: "uiAsset", page: true, handle: func(c *call) error { return a.pages.Asset(c, c.r) }},
	}
}

// register sets up the mux. If a path exists but not for the method, the
// answer says which methods there are.
func (a *API) register() error {
	allowed := make(map[string][]string)
	handle := func(method, path string, rt route) {
		a.mux.HandleFunc(method+" "+path, func(w http.ResponseWriter, r *http.Request) { a.dispatch(w, r, rt) })
		allowed[path] = append(allowed[path], method)
	}
	described := make(map[string]bool)
	root := a.base + "/api/v1"
	for _, rt := range a.routes() {
		op := a.contract.Operation(rt.operation)
		if op == nil {
			return fmt.Errorf("the API description lacks the operation %s", rt.operation)
		}
		described[rt.operation] = true
		path := root + op.Path
		if op.Path == "/" {
			path += "{$}"
		}
		handle(op.Method, path, rt)
	}
	for _, op := range a.contract.Operations() {
		if !described[op.ID] {
			return fmt.Errorf("no route serves the operation %s of the API description", op.ID)
		}
	}

	// These are not in the description: the pages, the root without a slash,
	// redirects to the home page, and health checks.
	a.registerPages(handle)
	handle("PUT", root, route{operation: "storeSeveral", handle: a.storeSeveral})
	handle("GET", root, route{handle: redirect("v1/")})
	handle("GET", root+"/ui/{$}", route{handle: redirect("../ui")})
	if a.base != "" {
		handle("GET", a.base, route{handle: redirect(a.base[strings.LastIndexByte(a.base, '/')+1:] + "/")})
	}
	for _, base := range slices.Compact([]string{"", a.base}) {
		handle("GET", base+"/livez", route{handle: a.live, probe: true})
		handle("GET", base+"/readyz", route{handle: a.ready, probe: true})
	}

	for path := range allowed {
		if strings.HasSuffix(path, "/ebs/create") || strings.HasSuffix(path, "/search") {
			continue // for other methods this is an identifier, though an invalid one
		}
		a.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			methods := allowed[path]
			if own := allowed[r.URL.Path]; own != nil {
				methods = own
			}
			a.dispatch(w, r, route{handle: wrongMethod(methods)})
		})
	}
	for _, kind := range oda.Kinds { // an empty identifier
		a.mux.HandleFunc("PUT "+root+"/"+kind.Collection()+"/{$}", func(w http.ResponseWriter, r *http.Request) {
			a.dispatch(w, r, route{kind: kind, handle: func(*call) error { return errNoIdentifier() }})
		})
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		a.dispatch(w, r, route{handle: func(*call) error { return a.errNoSuchPath() }})
	})
	return nil
}

// registerPages sets up the pages beside the interface. With a slash at its end,
// the address of a list redirects to the list.
func (a *API) registerPages(handle func(method, path string, rt route)) {
	if a.pages == nil {
		return
	}
	for path, page := range a.pages.Pages() {
		handle("GET", a.base+path, route{page: true, handle: func(c *call) error { return page(c, c.r) }})
	}
	for _, kind := range oda.Kinds {
		handle("GET", a.base+"/"+kind.Collection()+"/{$}", route{page: true, handle: redirect("../" + kind.Collection())})
	}
}

// dispatch checks the request against the description and calls the handler. It
// answers with the error if there is one. The writer is the call, which the mux
// passes on.
func (a *API) dispatch(w http.ResponseWriter, r *http.Request, rt route) {
	c := w.(*call)
	c.r, c.kind, c.op, c.page, c.probe = r, rt.kind, a.contract.Operation(rt.operation), rt.page, rt.probe
	if err := c.check(); err != nil {
		c.problem(err)
		return
	}
	if err := rt.handle(c); err != nil {
		c.problem(err)
	}
}

// redirect returns a handler that redirects to a relative path, so that it also
// works behind a proxy that strips a prefix.
func redirect(to string) handler {
	return func(c *call) error {
		c.head("Location", to)
		c.WriteHeader(http.StatusTemporaryRedirect)
		return nil
	}
}

func wrongMethod(methods []string) handler {
	if slices.Contains(methods, "GET") {
		methods = append(slices.Clone(methods), "HEAD")
	}
	allowed := strings.Join(slices.Sorted(slices.Values(methods)), ", ")
	return func(c *call) error {
		c.head("Allow", allowed)
		return oda.Errorf(oda.WrongMethod, "This path does not support %.32s. It supports: %s.", c.r.Method, allowed)
	}
}
