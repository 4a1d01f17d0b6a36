package moving

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"oda"
	"oda/client"
)

// remote is a running archive that is read: one of this program or of an earlier
// release, or SKA's own. They agree on little: how to list the identifiers of a
// kind, and how to get one.
type remote struct {
	base  string // with /api/v1, or whatever its version is
	http  *http.Client
	token string

	maxDocument int64 // bytes; larger ones are set aside
}

// Bounds of a request to another archive.
const (
	remoteTries   = 4
	remoteTime    = 5 * time.Minute // without a word of an answer
	remotePause   = time.Second
	remoteElement = 256 << 20 // bytes of one element of a list
	remoteProblem = 64 << 10
)

// everything is the query for all entities of a kind: some archives answer none without one.
// Year 1 is the first that all of them know.
const everything = "?created_after=0001-01-01T00:00:00Z"

// isRemote reports whether a source is an archive that is asked over HTTP.
func isRemote(source string) bool { return isAt(source, "http", "https") }

var apiVersion = regexp.MustCompile(`/api/v[0-9]+$`)

// newRemote returns the archive at an address, with or without the path of its
// interface.
func newRemote(address string, maxDocument int64, transport http.RoundTripper, token func() (string, error)) (*remote, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the address of the archive is not valid; write it as http://HOST:PORT or http://HOST/PATH/api/v1")
	}
	base := strings.TrimRight(address, "/")
	if !apiVersion.MatchString(base) {
		base += "/api/v1"
	}
	r := &remote{base: base, http: &http.Client{Transport: transport, CheckRedirect: redirected}, maxDocument: maxDocument}
	if token != nil {
		r.token, err = token()
	}
	return r, err
}

// redirected is the rule about redirects.
func redirected(request *http.Request, via []*http.Request) error {
	if len(via) >= 5 {
		return errors.New("the archive redirects too often")
	}
	client.WithholdToken(request, via)
	return nil
}

// shown returns an address below the interface as people may see it.
func (r *remote) shown(path string) string {
	u, err := url.Parse(r.base + path)
	if err != nil {
		return path
	}
	return u.Redacted()
}

// refusedError is an answer that is not a success.
type refusedError struct {
	status int
	detail string
	text   []byte // what came with it, if it is not what was asked for
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the archive answered %d: %s", e.status, e.detail)
}

// again tries to get something, several times if it must.
func again[T any](ctx context.Context, get func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		got, err := get()
		refused, answered := errors.AsType[*refusedError](err)
		_, final := errors.AsType[finalError](err)
		if err == nil || try == remoteTries || ctx.Err() != nil || answered && !refused.temporary() || final {
			return got, err
		}
		select {
		case <-time.After(time.Duration(try) * remotePause):
		case <-ctx.Done():
			return got, ctx.Err()
		}
	}
}

// temporary reports whether the same request may succeed later. An answer of 200 that cannot
// be read may have been spoiled on its way.
func (e *refusedError) temporary() bool {
	return e.status == http.StatusOK || e.status == http.StatusTooManyRequests || e.status == http.StatusRequestTimeout || e.status >= http.StatusBadGateway
}

// always reports whether other requests will be refused, too.
func (e *refusedError) always() bool {
	return e.status == http.StatusUnauthorized || e.status == http.StatusForbidden || e.temporary() && e.status != http.StatusOK
}

// get sends a request, and returns the answer, whose body must be closed.
func (r *remote) get(ctx context.Context, path string) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+path, nil)
	if err != nil {
		cancel(nil)
		return nil, errors.New("the address of the archive is not valid")
	}
	silence := time.AfterFunc(remoteTime, func() { cancel(errSilent) })
	request.Header.Set("Accept", "application/json")
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	response, err := r.http.Do(request)
	if err != nil {
		if broken, ok := errors.AsType[*url.Error](err); ok {
			err = broken.Err // without the address, which may contain a password
		}
		err = orSilence(ctx, err)
		silence.Stop()
		cancel(nil)
		return nil, fmt.Errorf("no answer from the archive at %s: %w", r.shown(""), err)
	}
	response.Body = &heard{response.Body, ctx, silence, cancel}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, remoteProblem)) // the status says enough
	var problem struct{ Detail any }
	detail := http.StatusText(response.StatusCode)
	if json.Unmarshal(text, &problem) == nil && problem.Detail != nil {
		detail = strings.Join(strings.Fields(fmt.Sprint(problem.Detail)), " ")
	}
	return nil, &refusedError{response.StatusCode, detail, nil}
}

// heard is the body of an answer that must not fall silent.
type heard struct {
	io.ReadCloser
	ctx     context.Context
	silence *time.Timer
	cancel  context.CancelCauseFunc
}

var errSilent = fmt.Errorf("it was silent for %d minutes", int(remoteTime.Minutes()))

// orSilence returns an error, or the silence if that was the reason: HTTP/2 does not say it.
func orSilence(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if n > 0 {
		h.silence.Reset(remoteTime)
	}
	return n, orSilence(h.ctx, err)
}

func (h *heard) Close() error {
	h.silence.Stop()
	h.cancel(nil)
	return h.ReadCloser.Close()
}

// read returns an answer as a whole, of at most so many bytes.
func (r *remote) read(ctx context.Context, path string, most int64) ([]byte, error) {
	return again(ctx, func() ([]byte, error) {
		response, err := r.get(ctx, path)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(io.LimitReader(response.Body, most+1))
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, &refusedError{http.StatusOK, fmt.Sprintf("something that was cut off: %v", err), nil}
		case int64(len(text)) > most:
			return nil, finalError{&refusedError{http.StatusOK, tooLarge(most).Error(), nil}}
		case !json.Valid(text):
			return nil, &refusedError{http.StatusOK, "something that is not valid JSON", text}
		}
		return text, nil
	})
}

// histories calls emit for each entity, with all its versions if the archive gives
// them out, else with the current one.
func (r *remote) histories(ctx context.Context, report *Report, emit func(*history) error) error {
	var missing []string
	for _, kind := range oda.Kinds {
		spool, err := newSpool()
		if err != nil {
			return err
		}
		err = r.kind(ctx, kind, spool, report, emit)
		spool.close()
		if err != nil && !errors.Is(err, errNoCollection) {
			return err
		}
		if err != nil && skaTables[kind] != "" { // notes may be missing
			missing = append(missing, r.shown("/"+kind.Collection()))
		}
	}
	switch {
	case len(missing) > 0 && len(missing) < len(skaKinds) && report.Note != nil:
		report.Note(fmt.Sprintf("the archive has no %s, so nothing was read there", strings.Join(missing, " and no ")))
	case len(missing) == len(skaKinds):
		return fmt.Errorf("%s has none of /sbds, /sbis, /ebs and /prjs, so it is not the address of an archive; write it with the path of its interface, such as http://HOST/NAMESPACE/oda/api/v5", r.shown(""))
	}
	return nil
}

// errNoCollection says that an archive does not know entities of a kind.
var errNoCollection = errors.New("it has no such collection")

// kind reads the entities of a kind. Later releases of SKA's archive list documents,
// one for each version, and others list identifiers.
func (r *remote) kind(ctx context.Context, kind oda.Kind, spool *spool, report *Report, emit func(*history) error) error {
	path := "/" + kind.Collection()
	ids, err := again(ctx, func() ([]string, error) { return r.list(ctx, kind, spool, report) })
	if refused, ok := errors.AsType[*refusedError](err); ok && refused.status == http.StatusNotFound {
		return errNoCollection
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.shown(path), err)
	}
	report.Total.Add(int64(len(ids)))
	versioned, err := r.isVersioned(ctx, kind, ids)
	statuses := false
	if versioned && err == nil {
		statuses, err = r.hasStatuses(ctx, kind, ids)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.shown(path), err)
	}
	err = pipeline(ctx, runtime.GOMAXPROCS(0)+1, func(_ context.Context, hand func(string) error) error {
		for _, id := range ids {
			if err := hand(id); err != nil {
				return err
			}
		}
		return nil
	}, func(id string) (*history, error) {
		h, err := r.history(ctx, oda.Ref{Kind: kind, ID: id}, versioned, statuses)
		if refused, ok := errors.AsType[*refusedError](err); ok && !refused.always() {
			h.refused = refused
			return h, nil
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", r.shown(path+"/"+id), err)
		}
		return h, err
	}, func(h *history) error {
		if h.refused != nil {
			report.Read.Add(1)
			return report.setAside(SetAside{Origin: Origin{File: r.shown(path + "/" + h.ID)}, Ref: h.Ref, Version: int64(len(h.versions)), Reason: h.refused.Error(), Document: h.refused.text})
		}
		report.Total.Add(int64(len(h.versions)+len(h.said)) - 1)
		return emit(h)
	})
	if err != nil {
		return err
	}
	return spool.histories(ctx, false, emit)
}

// list returns the identifiers of a kind. Documents that are listed instead go into the
// spool.
func (r *remote) list(ctx context.Context, kind oda.Kind, spool *spool, report *Report) (ids []string, err error) {
	path := "/" + kind.Collection()
	response, err := r.get(ctx, path+everything)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	spooled := false
	err = elements(response.Body, remoteElement, func(one json.RawMessage) error {
		if one[0] == '"' {
			var id string
			err := json.Unmarshal(one, &id)
			ids = append(ids, id)
			return err
		}
		spooled = true
		f := &found{Origin: Origin{File: r.shown(path)}, Ref: oda.Ref{Kind: kind}, text: one}
		report.Total.Add(1)
		err := identify(f)
		if int64(len(one)) > r.maxDocument {
			err = tooLarge(r.maxDocument)
		}
		if err != nil {
			report.Read.Add(1)
			return report.setAside(f.aside(err.Error()))
		}
		return spool.add(f)
	})
	if err != nil && spooled {
		err = finalError{err}
	}
	if sorted := slices.Sorted(slices.Values(ids)); err == nil && len(slices.Compact(sorted)) < len(ids) {
		err = finalError{errors.New("the list names an entity twice")}
	}
	return ids, err
}

// finalError is an error after which nothing is tried again.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// isVersioned reports whether the archive gives the versions of a kind out. If one entity
// has versions, all the others must have them too, so that a bad answer is not taken for
// an entity without a past.
func (r *remote) isVersioned(ctx context.Context, kind oda.Kind, ids []string) (bool, error) {
	for _, id := range ids[:min(len(ids), 3)] {
		last, err := r.versions(ctx, entityPath(oda.Ref{Kind: kind, ID: id}))
		refused, answered := errors.AsType[*refusedError](err)
		switch {
		case last > 0:
			return true, nil
		case err != nil && (!answered || refused.always()):
			return false, err
		}
	}
	return false, nil
}

func entityPath(ref oda.Ref) string {
	return "/" + ref.Kind.Collection() + "/" + url.PathEscape(ref.ID)
}

// elements calls emit for the elements of a JSON array as they arrive. None may have
// more bytes than most, and there may be no more blanks in a row. A json.Decoder knows no such
// bounds, and looks at all blanks again whenever more of them arrive.
func elements(in io.Reader, most int, emit func(json.RawMessage) error) error {
	l := list{bufio.NewReaderSize(in, 64<<10), most}
	if c, err := l.next(); err != nil || c != '[' {
		return finalError{errors.New("the answer is not a list; is this the address of an archive?")}
	}
	c, err := l.next()
	if err == nil && c == ']' {
		return l.end()
	}
	for err == nil {
		var one []byte
		if one, c, err = l.element(c); err != nil {
			break
		}
		if err = emit(one); err != nil {
			break
		}
		if c == ']' {
			return l.end()
		}
		c, err = l.next()
	}
	return err
}

// list is a JSON array that is being read.
type list struct {
	in   *bufio.Reader
	most int
}

const blanks = " \t\r\n"

// read returns the next byte.
func (l *list) read() (byte, error) {
	c, err := l.in.ReadByte()
	if err != nil {
		err = fmt.Errorf("the list was cut off: %w", err)
	}
	return c, err
}

// next returns the next byte that is not a blank.
func (l *list) next() (byte, error) {
	for range l.most {
		if c, err := l.read(); err != nil || strings.IndexByte(blanks, c) < 0 {
			return c, err
		}
	}
	return 0, finalError{fmt.Errorf("the list has more than %d blanks in a row", l.most)}
}

// element returns an element, of which c is the first byte, and what ends it: a comma, or
// the bracket that ends the list.
func (l *list) element(c byte) (text []byte, end byte, err error) {
	for depth, quoted, escaped := 0, false, false; err == nil; c, err = l.read() {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
		case depth == 0 && (c == ',' || c == ']'):
			if text = bytes.TrimRight(text, blanks); !json.Valid(text) {
				err = finalError{errors.New("the list is not valid JSON")}
			}
			return text, c, err
		}
		if len(text) == l.most {
			return nil, 0, finalError{fmt.Errorf("the list has an element of more than %d bytes", l.most)}
		}
		text = append(text, c)
	}
	return nil, 0, err
}

// end makes sure that nothing follows the list.
func (l *list) end() error {
	_, err := l.next()
	switch {
	case err == nil:
		return finalError{errors.New("something follows the list")}
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// history reads an entity, with all its versions if the archive gives them out. If one of
// them cannot be read, the history ends there, and nothing of it is imported: later
// versions would get its number. The statuses are read first, so that they are about
// versions that are read.
func (r *remote) history(ctx context.Context, ref oda.Ref, versioned, statuses bool) (h *history, err error) {
	path := entityPath(ref)
	h = &history{Ref: ref}
	if statuses {
		if h.said, err = r.statuses(ctx, ref); err != nil {
			return h, err
		}
	}
	if !versioned {
		f, err := r.document(ctx, ref, path, 0)
		if err == nil {
			h.versions = []found{f}
		}
		return h, err
	}
	last, err := r.versions(ctx, path)
	for version := int64(1); version <= last && err == nil; version++ {
		var f found
		f, err = r.document(ctx, ref, fmt.Sprintf("%s/versions/%d", path, version), version)
		h.versions = append(h.versions, f)
	}
	return h, err
}

// document reads a version of an entity, or the current one if version is 0.
func (r *remote) document(ctx context.Context, ref oda.Ref, path string, version int64) (found, error) {
	text, err := r.read(ctx, path, r.maxDocument)
	if err != nil {
		return found{}, err
	}
	f := found{Origin: Origin{File: r.shown(path)}, Ref: ref, text: text}
	if err := identify(&f); err != nil {
		return f, &refusedError{http.StatusOK, err.Error(), text}
	}
	if version != 0 && f.version != version {
		return f, &refusedError{http.StatusOK, fmt.Sprintf("it was asked for version %d, and sent version %d", version, f.version), text}
	}
	return f, nil
}

// versions returns the number of the last version. It is a refusedError if the archive
// does not give versions out.
func (r *remote) versions(ctx context.Context, path string) (int64, error) {
	text, err := r.read(ctx, path+"/versions?limit=1", r.maxDocument)
	if err != nil {
		return 0, err
	}
	var page struct{ Versions []struct{ Version int64 } }
	if json.Unmarshal(text, &page) != nil || len(page.Versions) == 0 || page.Versions[0].Version < 1 {
		return 0, &refusedError{http.StatusOK, "no list of versions", text}
	}
	return page.Versions[0].Version, nil
}
