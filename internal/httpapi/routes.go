package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"oda"
	"oda/api"
	"oda/internal/admission"
	"oda/internal/auth"
)

// handler answers a call, or returns the error to answer with.
type handler func(*call) error

// route is one operation of the API description.
type route struct {
	operation string
	label     string    // under which its requests are counted, if not under the operation
	role      auth.Role // that a caller needs
	create    auth.Role // that a caller needs if the entity must be new; 0 if that makes no difference
	own       bool      // recorders may only do it to what they have created
	kind      oda.Kind  // of its entities; 0 if it is not about one kind
	handle    handler
	class     admission.Class // of its work, where the table says it; else see classOf
	page      bool            // for people, or the description itself: any query is accepted
	probe     bool            // called all the time, so success is logged only for debugging
	counted   uint16          // its place among the operations that are counted
}

// ofKinds are the operations that each kind has, with how their names end for the kind in
// place of %s.
func (a *API) ofKinds() (all []route) {
	for _, kind := range oda.Kinds {
		creator := auth.Editor
		if kind.RecordersBegin() {
			creator = auth.Recorder
		}
		changer, ownChanges := writerOf(kind.RecordersChange())
		teller, ownTells := writerOf(kind.RecordersTell())
		for _, rt := range []route{
			{operation: "list%ss", role: auth.Reader, handle: a.list},
			{operation: "search%ss", role: auth.Reader, handle: a.search},
			{operation: "create%s", role: creator, handle: a.create},
			{operation: "get%s", role: auth.Reader, class: admission.Reading, handle: a.get},
			{operation: "list%sVersions", role: auth.Reader, class: admission.Reading, handle: a.listVersions},
			{operation: "get%sVersion", role: auth.Reader, class: admission.Reading, handle: a.getVersion},
			{operation: "getStatusOf%s", role: auth.Reader, class: admission.Reading, handle: a.status},
			{operation: "sayStatusOf%s", role: teller, own: ownTells, handle: a.say},
			{operation: "listStatusesOf%s", role: auth.Reader, class: admission.Reading, handle: a.listStatuses},
			{operation: "diff%s", role: auth.Reader, handle: a.diff},
			{operation: "provenanceOf%s", role: auth.Reader, handle: a.provenance},
			{operation: "store%s", role: changer, create: creator, own: ownChanges, handle: a.store},
		} {
			rt.operation, rt.kind = fmt.Sprintf(rt.operation, kind.Short()), kind
			all = append(all, rt)
		}
	}
	return all
}

// writerOf returns the role that is needed to write to entities of a kind, if those of some
// people are open to recorders, and whether they must then be the recorder's own.
func writerOf(open oda.Whose) (role auth.Role, own bool) {
	if open == oda.Nobodys {
		return auth.Editor, false
	}
	return auth.Recorder, open == oda.TheirOwn
}

// routes returns the whole interface. The API description has the method and the
// path of each operation.
func (a *API) routes() []route {
	return append(a.ofKinds(), []route{
		{operation: "storeSeveral", role: auth.Editor, handle: a.storeSeveral},
		{operation: "createEmptyEB", role: auth.Recorder, kind: oda.ExecutionBlock, handle: a.createEmpty},

		{operation: "recordPatch", role: auth.Recorder, kind: oda.ExecutionBlock, handle: a.record},
		{operation: "recordPost", role: auth.Recorder, kind: oda.ExecutionBlock, handle: a.record},
		{operation: "recordBatch", role: auth.Recorder, kind: oda.ExecutionBlock, handle: a.recordBatch},
		{operation: "readRecords", role: auth.Reader, class: admission.Reading, kind: oda.ExecutionBlock, handle: a.readRecords},

		{operation: beginOperation, role: auth.Recorder, kind: oda.ExecutionBlock, handle: a.begin},
		{operation: "withdrawCall", role: auth.Recorder, kind: oda.ExecutionBlock, handle: a.withdraw},
		{operation: "runningInEB", role: auth.Reader, class: admission.Reading, kind: oda.ExecutionBlock, handle: a.runningIn},
		{operation: "running", role: auth.Reader, class: admission.Reading, handle: a.running},

		{operation: "whoami", role: auth.Reader, class: admission.Reading, handle: a.whoami},
		{operation: "night", role: auth.Reader, handle: a.night},
		{operation: "findCalls", role: auth.Reader, handle: a.findCalls},
		{operation: "tallyCalls", role: auth.Reader, handle: a.tallyCalls},
		{operation: "progressOfPRJ", role: auth.Reader, kind: oda.Project, handle: a.progress},
		{operation: "changes", role: auth.Reader, class: admission.Reading, handle: a.changes},
		{operation: "backup", role: auth.Admin, handle: a.backup},
		{operation: "export", role: auth.Admin, class: admission.Searching, handle: a.export},

		{operation: "home", role: auth.Reader, class: admission.Searching, page: true, handle: func(c *call) error { return a.cfg.Pages.Home(c, c.r) }},
		{operation: "guide", role: auth.Reader, page: true, handle: func(c *call) error { return a.cfg.Pages.Guide(c, c.r) }},
		{operation: "problems", role: auth.Reader, page: true, handle: func(c *call) error { return a.cfg.Pages.Problems(c, c.r) }},
		{operation: "problem", role: auth.Reader, page: true, handle: func(c *call) error { return a.cfg.Pages.Problem(c, c.r) }},
		{operation: "descriptionJSON", role: auth.Reader, page: true, handle: static("application/json", api.JSON())},
		{operation: "descriptionYAML", role: auth.Reader, page: true, handle: static("application/yaml", api.YAML)},
		{operation: "ui", role: auth.Reader, page: true, handle: func(c *call) error { return a.cfg.Pages.UI(c, c.r) }},
		{operation: "uiAsset", role: auth.Reader, page: true, handle: func(c *call) error { return a.cfg.Pages.Asset(c, c.r) }},
	}...)
}

// pageRequests is the name under which the pages are counted.
const pageRequests = "page"

// check returns an error for a route that does not say who may call it.
func (rt route) check(method, path string) error {
	if rt.role == auth.NoRole {
		return fmt.Errorf("%s %s has no role: the table of routes must say who may call it", method, path)
	}
	return nil
}

// register sets up the mux. If a path exists but not for the method, the
// answer says which methods there are.
func (a *API) register() error {
	allowed := make(map[string][]string)
	var bare error
	handle := func(method, path string, rt route) {
		bare = errors.Join(bare, rt.check(method, path))
		rt.class, rt.counted = rt.classOf(), a.operationNamed(cmp.Or(rt.operation, rt.label, pageRequests))
		a.mux.HandleFunc(method+" "+path, func(w http.ResponseWriter, r *http.Request) { a.dispatch(w, r, rt) })
		allowed[path] = append(allowed[path], method)
	}
	described := make(map[string]bool)
	root := a.cfg.BasePath + "/api/v1"
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
	// redirects to the home page, health checks and metrics.
	a.registerPages(handle)
	handle("PUT", root, route{operation: "storeSeveral", role: auth.Editor, handle: a.storeSeveral})
	handle("GET", root, route{role: auth.Reader, handle: redirect("v1/")})
	handle("GET", root+"/ui/{$}", route{role: auth.Reader, handle: redirect("../ui")})
	if a.cfg.BasePath != "" {
		handle("GET", a.cfg.BasePath, route{role: auth.Reader, handle: redirect(a.cfg.BasePath[strings.LastIndexByte(a.cfg.BasePath, '/')+1:] + "/")})
	}
	for _, base := range slices.Compact([]string{"", a.cfg.BasePath}) {
		handle("GET", base+"/livez", route{label: "livez", role: auth.Anyone, handle: a.live, probe: true})
		handle("GET", base+"/readyz", route{label: "readyz", role: auth.Anyone, handle: a.ready, probe: true})
		if a.cfg.Metrics != nil {
			handle("GET", base+"/metrics", route{label: "metrics", role: auth.Reader, handle: a.showMetrics, probe: true})
		}
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
			a.dispatch(w, r, route{role: auth.Anyone, handle: wrongMethod(methods)})
		})
	}
	for _, kind := range oda.Kinds { // an empty identifier
		a.mux.HandleFunc("PUT "+root+"/"+kind.Collection()+"/{$}", func(w http.ResponseWriter, r *http.Request) {
			a.dispatch(w, r, route{role: auth.Editor, kind: kind, handle: func(*call) error { return errNoIdentifier() }})
		})
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		a.dispatch(w, r, route{role: auth.Anyone, handle: func(*call) error { return a.errNoSuchPath() }})
	})
	return bare
}

// registerPages sets up the pages outside the interface. With a slash at its end,
// the address of a list redirects to the list.
func (a *API) registerPages(handle func(method, path string, rt route)) {
	if a.cfg.Pages == nil {
		return
	}
	for pattern, page := range a.cfg.SignIn {
		method, path, _ := strings.Cut(pattern, " ")
		handle(method, a.cfg.BasePath+path, route{label: "signIn", role: auth.Anyone, page: true, handle: func(c *call) error { return page(c, c.r) }})
	}
	for path, page := range a.cfg.Pages.Pages() {
		handle("GET", a.cfg.BasePath+path, route{role: auth.Reader, page: true, handle: func(c *call) error { return page(c, c.r) }})
	}
	for _, kind := range oda.Kinds {
		handle("GET", a.cfg.BasePath+"/"+kind.Collection()+"/{$}", route{role: auth.Reader, page: true, handle: redirect("../" + kind.Collection())})
	}
}

// dispatch checks that the caller may do this and that the request matches the
// description, and calls the handler. If one of them fails, it answers with the error.
// The writer is the call, which the mux passes on.
func (a *API) dispatch(w http.ResponseWriter, r *http.Request, rt route) {
	c := w.(*call)
	c.r, c.kind, c.op, c.page, c.probe = r, rt.kind, a.contract.Operation(rt.operation), rt.page, rt.probe
	c.class, c.counted, c.own = rt.class, rt.counted, rt.own
	if rt.kind != 0 {
		c.id = r.PathValue(rt.kind.IDField())
	}
	if c.merged != "" && rt.page && isRead(r) {
		rt.handle = redirect(c.merged) // the links of a page are relative to its address
	}
	if c.wantsPage() || rt.page {
		c.protectPage()
	}
	err := c.checkPlace()
	if err == nil {
		err = c.admit(&rt)
	}
	if limited := c.limit(); limited != nil {
		err = limited // also if nobody knows who is calling
	}
	if err == nil {
		err = c.checkOrigin()
	}
	if err == nil {
		err = c.announce()
	}
	if err == nil {
		err = c.check()
	}
	if err == nil && c.recording() {
		c.noteLag()
	}
	if err == nil && !c.hasBody() {
		err = c.enter()
	}
	if err != nil {
		c.problem(err)
		return
	}
	if rt.page && rt.class != admission.Free {
		c.r = c.r.WithContext(oda.WithRoom(c.r.Context(), c))
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
