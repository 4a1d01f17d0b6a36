// Package judge checks what goes over the wire against the API description, with a
// validator that shares no code with the server's.
package judge

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"

	"oda/api"
)

// Transport sends requests and checks them and their responses. It complains if a
// response is not as described, if an invalid request succeeds, and if a valid
// request is refused as invalid.
type Transport struct {
	next        http.RoundTripper
	server      string // URL of the API, including /api/v1
	depth       int    // maximum nesting
	doc         *openapi3.T
	undescribed *routers.Route // for all paths that are not described
	options     *openapi3filter.Options
	complain    func(string)
}

// Description reads the API description once, with an independent reader. Its
// schemas include those of x-also.
var Description = sync.OnceValues(func() (*openapi3.T, error) {
	// The validator must be told how to read HTML, for the pages.
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/markdown", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/zstd", openapi3filter.FileBodyDecoder)
	text, err := withAlso(api.JSON())
	if err != nil {
		return nil, fmt.Errorf("read the API description: %w", err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("read the API description: %w", err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("the API description is not OpenAPI: %w", err)
	}
	return doc, nil
})

// withAlso expresses x-also in standard OpenAPI. A schema without a type also takes
// null, which the validator must be told.
func withAlso(description []byte) ([]byte, error) {
	var doc map[string]any
	description = bytes.ReplaceAll(description, []byte("#/components/x-schemas/"), []byte("#/components/schemas/"))
	if err := json.Unmarshal(description, &doc); err != nil {
		return nil, err
	}
	components := doc["components"].(map[string]any)
	maps.Copy(components["schemas"].(map[string]any), components["x-schemas"].(map[string]any))
	var add func(node any)
	add = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			if also, ok := node["x-also"]; ok {
				node["schema"] = map[string]any{"allOf": []any{node["schema"], also}}
			}
			if open, ok := node["additionalProperties"].(map[string]any); ok {
				allowNull(open)
			}
			if properties, ok := node["properties"].(map[string]any); ok {
				for _, schema := range properties {
					allowNull(schema.(map[string]any))
				}
			}
			for _, member := range node {
				add(member)
			}
		case []any:
			for _, element := range node {
				add(element)
			}
		}
	}
	add(doc)
	return json.Marshal(doc)
}

// allowNull allows null if a schema says nothing about its values.
func allowNull(schema map[string]any) {
	for _, keyword := range []string{"type", "$ref", "allOf", "anyOf", "oneOf", "properties", "items", "required"} {
		if schema[keyword] != nil {
			return
		}
	}
	schema["nullable"] = true
}

// New makes a judge for the archive whose API is at server, with documents
// of at most depth levels. It passes requests on to next.
func New(server string, depth int, next http.RoundTripper, complain func(string)) (*Transport, error) {
	doc, err := Description()
	if err != nil {
		return nil, err
	}
	responses := doc.Components.Responses
	undescribed := openapi3.NewResponses(
		openapi3.WithStatus(http.StatusBadRequest, responses["BadStore"]), // a path that names nothing
		openapi3.WithStatus(http.StatusUnauthorized, responses["Unauthenticated"]),
		openapi3.WithStatus(http.StatusForbidden, responses["Forbidden"]),
		openapi3.WithStatus(http.StatusNotFound, responses["NoSuchPath"]),
		openapi3.WithStatus(http.StatusMethodNotAllowed, responses["MethodNotAllowed"]),
		openapi3.WithStatus(http.StatusServiceUnavailable, responses["Unavailable"]), // from /readyz
	)
	undescribed.Delete("default")
	return &Transport{
		next: next, server: server, depth: depth, doc: doc, complain: complain,
		undescribed: &routers.Route{Spec: doc, PathItem: &openapi3.PathItem{}, Operation: &openapi3.Operation{OperationID: "undescribed", Responses: undescribed}},
		options: &openapi3filter.Options{
			AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc, // who may call is up to the archive
			IncludeResponseStatus: true,
			SkipSettingDefaults:   true,
			SchemaValidationOptions: []openapi3.SchemaValidationOption{
				openapi3.EnableFormatValidation(),
				openapi3.WithStringFormatValidator("timestamp", openapi3.NewCallbackValidator(IsTimestamp)),
			},
		},
	}, nil
}

// RoundTrip sends a request, reads the whole response, and judges both.
func (j *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	var sent []byte
	if request.Body != nil {
		var err error
		if sent, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
		request = request.Clone(request.Context())
		request.Body = io.NopCloser(bytes.NewReader(sent))
	}
	response, err := j.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, errors.Join(err, response.Body.Close())
	}
	if err := response.Body.Close(); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(raw))
	for _, complaint := range j.complaints(request, sent, response, raw) {
		j.complain(fmt.Sprintf("%s %s: answered %d: %s\nsent: %s\nanswer: %s",
			request.Method, request.URL, response.StatusCode, complaint, clip(sent), clip(raw)))
	}
	return response, nil
}

// complaints returns everything that is wrong with a request and its response.
func (j *Transport) complaints(request *http.Request, sent []byte, response *http.Response, raw []byte) []string {
	var complaints []string
	note := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	body, err := Decoded(response.Header.Get("Content-Encoding"), raw)
	if err != nil {
		note("the body cannot be decoded: %v", err)
		return complaints
	}
	input := j.input(request, sent)
	if err := j.response(input, request.Method == http.MethodHead, response, body); err != nil {
		note("the response does not fit the description: %v", err)
	}
	problem := problemOf(response, body)
	if request.Method != http.MethodHead {
		if err := checkProblem(response, body, problem); err != nil {
			note("%v", err)
		}
	}
	if input.Route == j.undescribed {
		return complaints
	}
	success := response.StatusCode < 400
	verdict := j.verdict(input)
	if verdict != nil && success {
		note("the request does not fit the description, but succeeds: %v", verdict)
	}
	takesBody := input.Route.Operation.RequestBody != nil && len(sent) > 0
	strict := !takesBody || strictJSON(sent, j.depth, input.Route.Operation.OperationID)
	if !strict && success {
		note("the body is not strict JSON, but the request succeeds")
	}
	if response.StatusCode == http.StatusBadRequest && verdict == nil && strict && !beyondSchema(input, problem) {
		note("the request fits the description, but is refused as if it did not")
	}
	return complaints
}

// pages are the operations that accept any query and any condition.
var pages = []string{"home", "guide", "problems", "problem", "ui", "uiAsset", "descriptionJSON", "descriptionYAML"}

// strangers complains about a query parameter or a condition that the operation
// does not have, which the validator ignores.
func strangers(input *openapi3filter.RequestValidationInput) error {
	op, request := input.Route.Operation, input.Request
	if slices.Contains(pages, op.OperationID) {
		return nil
	}
	for name := range request.URL.Query() {
		if op.Parameters.GetByInAndName("query", name) == nil {
			return fmt.Errorf("there is no parameter %q", name)
		}
	}
	for _, name := range []string{"If-Match", "If-None-Match"} {
		read := name == "If-None-Match" && request.Method == http.MethodGet
		if len(request.Header.Values(name)) > 0 && op.Parameters.GetByInAndName("header", name) == nil && !read {
			return fmt.Errorf("there is no header %s", name)
		}
	}
	return nil
}

// verdict says why a request does not match the description. The validator
// cannot read a text parameter whose schema contains "not", so those are
// removed and checked separately.
func (j *Transport) verdict(input *openapi3filter.RequestValidationInput) error {
	if err := strangers(input); err != nil {
		return err
	}
	op, rest := *input.Route.Operation, openapi3.Parameters(nil)
	for _, p := range op.Parameters {
		if ignored(p.Value, input.Request.URL.Query()) || p.Value.Name == "X-Forwarded-User" && hasToken(input.Request) {
			continue
		}
		if p.Value.Schema.Value.Not == nil {
			rest = append(rest, p)
			continue
		}
		if err := p.Value.Schema.Value.VisitJSON(input.PathParams[p.Value.Name], j.options.SchemaValidationOptions...); err != nil {
			return fmt.Errorf("%s: %w", p.Value.Name, err)
		}
	}
	op.Parameters = rest
	route, of := *input.Route, *input
	route.Operation, of.Route = &op, &route
	return openapi3filter.ValidateRequest(context.Background(), &of)
}

// hasToken reports whether a request has a bearer token. X-Forwarded-User then means
// nothing, unless the token allows it.
func hasToken(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// ignored reports whether a parameter of a listing is ignored because one of
// higher precedence is given.
func ignored(p *openapi3.Parameter, query url.Values) bool {
	if p.Extensions["x-ignorable"] != true {
		return false
	}
	return query.Has("user") ||
		strings.HasPrefix(p.Name, "last_modified_") && (query.Has("created_after") || query.Has("created_before"))
}

// beyondSchema reports whether a refusal follows a rule that the description
// can state only in words: which parameters of a listing are used, and their
// form; which dates and time zones there are, and that no version comes before
// version 1; that records=keep forbids a list of records; that parameters and
// headers must not be repeated; how many entities one request may have; and where
// the log of changes ends. The validator also accepts texts that are not UTF-8 and queries with broken
// escapes.
func beyondSchema(input *openapi3filter.RequestValidationInput, problem problem) bool {
	query, err := url.ParseQuery(input.Request.URL.RawQuery)
	if err != nil {
		return true
	}
	for _, values := range query {
		if len(values) > 1 {
			return true
		}
	}
	for _, name := range []string{"Content-Type", "Authorization", "X-Forwarded-Groups"} {
		if len(input.Request.Header[name]) > 1 {
			return true
		}
	}
	for _, p := range input.Route.Operation.Parameters {
		if len(input.Request.Header.Values(p.Value.Name)) > 1 || !utf8.ValidString(input.Request.URL.Query().Get(p.Value.Name)) || !utf8.ValidString(input.Request.Header.Get(p.Value.Name)) {
			return true
		}
	}
	switch problem.Type {
	case "urn:oda:problem:invalid-user":
		return hasToken(input.Request)
	case "urn:oda:problem:unknown-position":
		return true
	case "urn:oda:problem:invalid-query":
		id := input.Route.Operation.OperationID
		return strings.HasPrefix(id, "list") || strings.HasPrefix(id, "search") || id == "night" || strings.HasSuffix(id, "Calls") || strings.HasPrefix(id, "diff") && !query.Has("from") || query.Has("at")
	case "urn:oda:problem:invalid-request":
		if input.Route.Operation.OperationID == "storeSeveral" {
			return strings.Contains(problem.Detail, "10,000 entities")
		}
		return query.Get("records") == "keep" && len(problem.Errors) == 1 && problem.Errors[0].Pointer == "/request_responses"
	}
	return false
}

// input finds the operation of a request. If the description spells a thing in
// one of two ways, or says in words what its paths cannot, the request is
// changed to match the description.
func (j *Transport) input(request *http.Request, sent []byte) *openapi3filter.RequestValidationInput {
	as := request.Clone(request.Context())
	as.Body = io.NopCloser(bytes.NewReader(sent))
	if as.Header.Get("Content-Type") == "" {
		as.Header.Set("Content-Type", "application/json") // the default for a body
	}
	if as.Method == http.MethodHead {
		as.Method = http.MethodGet // allowed wherever GET is
	}
	if escaped := slashes.ReplaceAllString(as.URL.EscapedPath(), "/"); escaped != as.URL.EscapedPath() {
		as.URL.Path, _ = url.PathUnescape(escaped) // what was escaped before still is
		as.URL.RawPath = escaped
	}
	if as.Method == http.MethodPut && as.URL.String() == j.server {
		as.URL.Path += "/"
	}
	route, params := j.find(as)
	if body := route.Operation.RequestBody; body != nil && !body.Value.Required && string(bytes.TrimSpace(sent)) == "null" {
		as.Body = http.NoBody // which null stands for
	}
	return &openapi3filter.RequestValidationInput{Request: as, PathParams: params, Route: route, Options: j.options}
}

// slashes are as good as one.
var slashes = regexp.MustCompile(`//+`)

// find returns the operation of a request, with the parameters in its path.
// Paths without parameters take precedence.
func (j *Transport) find(request *http.Request) (*routers.Route, map[string]string) {
	address := *request.URL
	address.RawQuery, address.ForceQuery = "", false
	rest, ok := strings.CutPrefix(address.String(), j.server)
	if !ok {
		return j.undescribed, nil
	}
	segments := strings.Split(rest, "/")
	for _, path := range j.doc.Paths.InMatchingOrder() {
		item := j.doc.Paths.Value(path)
		params, ok := matchPath(strings.Split(path, "/"), segments)
		if op := item.GetOperation(request.Method); ok && op != nil {
			return &routers.Route{Spec: j.doc, Path: path, PathItem: item, Method: request.Method, Operation: op}, params
		}
	}
	return j.undescribed, nil
}

func matchPath(described, segments []string) (map[string]string, bool) {
	if len(described) != len(segments) {
		return nil, false
	}
	params := make(map[string]string)
	for i, name := range described {
		value, err := url.PathUnescape(segments[i])
		if err != nil {
			return nil, false
		}
		if strings.HasPrefix(name, "{") {
			if value == "" || value == "." || value == ".." {
				return nil, false // a path that is not clean names nothing
			}
			params[strings.Trim(name, "{}")] = value
		} else if name != value {
			return nil, false
		}
	}
	return params, true
}

// response checks a response against the description.
func (j *Transport) response(input *openapi3filter.RequestValidationInput, head bool, response *http.Response, body []byte) error {
	if response.Header.Get("X-Request-Id") == "" {
		return errors.New("there is no X-Request-Id")
	}
	status := response.StatusCode
	switch {
	case input.Route == j.undescribed && (status == http.StatusTemporaryRedirect || status == http.StatusSeeOther):
		return checkRedirect(response, body)
	case input.Route == j.undescribed && status == http.StatusOK:
		path := input.Request.URL.Path
		isPage := !strings.HasPrefix(input.Request.URL.String(), j.server) && strings.HasPrefix(response.Header.Get("Content-Type"), "text/html")
		if !isPage && !strings.HasSuffix(path, "/livez") && !strings.HasSuffix(path, "/readyz") && !strings.HasSuffix(path, "/metrics") {
			return errors.New("a request to an undescribed path succeeds")
		}
		return nil
	case status == http.StatusMethodNotAllowed && input.Route != j.undescribed:
		return errors.New("a described method is refused")
	case status == http.StatusNotModified:
		return checkNotModified(input.Route.Operation, response, body)
	}
	options := *j.options
	options.ExcludeResponseBody = head
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: status, Header: response.Header,
		Body: io.NopCloser(bytes.NewReader(body)), Options: &options,
	})
}

func checkRedirect(response *http.Response, body []byte) error {
	to, err := url.Parse(response.Header.Get("Location"))
	if err != nil || to.String() == "" || to.IsAbs() || to.Host != "" || strings.HasPrefix(to.Path, "/") || len(body) > 0 {
		return fmt.Errorf("a redirect must be relative and bare, not to %q", response.Header.Get("Location"))
	}
	return nil
}

// checkNotModified checks what the validator ignores.
func checkNotModified(op *openapi3.Operation, response *http.Response, body []byte) error {
	described := op.Responses.Status(http.StatusNotModified)
	if described == nil {
		return errors.New("304 is not described")
	}
	for name, header := range described.Value.Headers {
		if header.Value.Required && response.Header.Get(name) == "" {
			return fmt.Errorf("304 lacks the header %s", name)
		}
	}
	if len(body) > 0 {
		return errors.New("304 has a body")
	}
	return nil
}

// problem is the part of a problem that the judge checks.
type problem struct {
	Type, Title, Detail, Instance string
	Status                        int
	Errors                        []struct{ Pointer, Detail string }
}

func problemOf(response *http.Response, body []byte) problem {
	var p problem
	if response.StatusCode < 400 || json.Unmarshal(body, &p) != nil {
		return problem{}
	}
	return p
}

// inside matches internals of the server that no caller should see.
var inside = regexp.MustCompile(`(?i)goroutine|panic|\.go:\d|\bselect\b.*\bfrom\b|sqlite|/tmp/|archive\.db|\{base\}`)

// checkProblem checks what the schema of problems cannot express.
func checkProblem(response *http.Response, body []byte, p problem) error {
	if response.StatusCode < 400 {
		return nil
	}
	_, err := url.Parse(p.Instance)
	switch {
	case p.Status != response.StatusCode:
		return fmt.Errorf("the problem has the status %d", p.Status)
	case err != nil:
		return fmt.Errorf("the instance is not a URI reference: %w", err)
	case !strings.HasSuffix(p.Detail, ".") && !strings.HasSuffix(p.Detail, "…"):
		return fmt.Errorf("the detail is not a sentence: %q", p.Detail)
	case inside.Match(body):
		return errors.New("the problem reveals internals of the server")
	case slices.ContainsFunc(p.Errors, func(e struct{ Pointer, Detail string }) bool { return e.Detail == "" }):
		return errors.New("a fault without a detail")
	}
	return nil
}

// envelopes match the path to the documents in the body of an operation, where
// counting of nesting begins. It also begins at every record of a block.
var (
	envelopes = map[string]*regexp.Regexp{
		"storeSeveral": regexp.MustCompile(`^/[^/]*/\d+`),
		"recordBatch":  regexp.MustCompile(`^/records/\d+/record`),
	}
	recordInBlock = regexp.MustCompile(`^/request_responses/\d+`)
)

// levels returns how deeply the value at a pointer is nested, as the operation
// counts.
func levels(pointer, operation string) int {
	if envelope := envelopes[operation]; envelope != nil {
		pointer = strings.TrimPrefix(pointer, envelope.FindString(pointer))
	}
	if slices.Contains([]string{"storeSeveral", "storeEB", "createEB", "createEmptyEB"}, operation) {
		pointer = strings.TrimPrefix(pointer, recordInBlock.FindString(pointer))
	}
	return strings.Count(pointer, "/")
}

// strictJSON reports whether a text is one JSON document of at most depth
// levels, without duplicate keys, in valid UTF-8.
func strictJSON(text []byte, depth int, operation string) bool {
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	for n := 0; ; n++ {
		token, err := decoder.ReadToken()
		switch {
		case err == io.EOF:
			return n > 0
		case err != nil:
			return false
		// The pointer of an opening brace or bracket is that of its value.
		case (token.Kind() == '{' || token.Kind() == '[') && decoder.StackDepth() > depth && levels(string(decoder.StackPointer()), operation) >= depth:
			return false
		case decoder.StackDepth() == 0 && decoder.PeekKind() != 0:
			return false
		}
	}
}

// IsTimestamp implements the description's format "timestamp" with the standard
// library.
func IsTimestamp(text string) error {
	text = strings.ToUpper(text) // RFC 3339 allows t and z for T and Z
	if strings.Contains(text, ",") {
		return errors.New("a comma")
	}
	for _, day := range []string{"2006-01-02T", "2006-01-02 "} {
		for _, clock := range []string{"15:04", "15:04:05"} {
			for _, zone := range []string{"", "Z07:00"} {
				if _, err := time.Parse(day+clock+zone, text); err == nil {
					return nil
				}
			}
		}
	}
	_, err := time.Parse(time.DateOnly, text)
	return err
}

// Decoded undoes a Content-Encoding.
func Decoded(encoding string, raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return raw, nil // the answer to HEAD
	}
	switch encoding {
	case "":
		return raw, nil
	case "gzip":
		reader, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(reader)
	case "zstd":
		reader, err := zstd.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		defer reader.Close()
		return io.ReadAll(reader)
	}
	return nil, fmt.Errorf("the encoding %q was never offered", encoding)
}

// clip keeps a complaint readable.
func clip(text []byte) string {
	if len(text) > 600 {
		return string(text[:600]) + "…"
	}
	return string(text)
}
