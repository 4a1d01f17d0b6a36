package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

const smallBody = 1 << 20

func small(cfg *app.Config) { cfg.Bounds.Body, cfg.Bounds.InFlight = smallBody, 3<<19 }

// filled returns a document of exactly that many bytes.
func filled(size int) string {
	const frame = `{"text":""}`
	return `{"text":"` + strings.Repeat("x", size-len(frame)) + `"}`
}

// chunked returns a body in chunked encoding.
func chunked(body string) string {
	var b strings.Builder
	for len(body) > 0 {
		n := min(len(body), 32<<10)
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n\r\n"
}

// A client that sends its whole body before it reads the answer must see why it
// was refused, not a broken connection.
func TestBodyBeyondTheBound(t *testing.T) {
	t.Parallel()
	a := env.Start(t, small)
	want(t, 200, a.Do("PUT", "/sbds/fits", filled(smallBody)))
	before := state(t, a)
	for _, size := range []int{smallBody + 1, smallBody + 1000, 2 * smallBody, 6 * smallBody} {
		body := filled(size)
		head := "PUT /api/v1/sbds/n HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
		for name, request := range map[string]string{
			"with its length":            fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, size, body),
			"in chunks":                  head + "Transfer-Encoding: chunked\r\n\r\n" + chunked(body),
			"in chunks, with Expect":     head + "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body),
			"with its length, impatient": fmt.Sprintf("%sExpect: 100-continue\r\nContent-Length: %d\r\n\r\n%s", head, size, body),
		} {
			t.Run(fmt.Sprintf("%d bytes %s", size, name), func(t *testing.T) {
				refused(t, raw(t, a, request), 413, oda.BodyTooLarge, "1048576", "Nothing was stored")
			})
		}
		t.Run(fmt.Sprintf("%d bytes by a client of the standard library", size), func(t *testing.T) {
			refused(t, a.Do("PUT", "/sbds/n", body), 413, oda.BodyTooLarge)
			refused(t, a.Do("PUT", "/sbds/n", body, "Expect", "100-continue"), 413, oda.BodyTooLarge)
		})
	}
	for _, place := range keyed {
		refused(t, a.Do(place.method, place.path, filled(smallBody+1)), 413, oda.BodyTooLarge)
	}
	refused(t, a.Do("PUT", "/", filled(smallBody+1)), 413, oda.BodyTooLarge)
	if after := state(t, a); after != before {
		t.Error("something was stored")
	}
}

// A client that waits for "100 Continue" sends nothing if the request is refused.
func TestExpectContinue(t *testing.T) {
	a := env.Start(t, small)
	conn := dial(t, a)
	fmt.Fprintf(conn, "PUT /api/v1/sbds/n HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", smallBody+1)
	r := answer(t, conn)
	refused(t, r, 413, oda.BodyTooLarge)
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		t.Errorf("the connection does not end cleanly: %q, %v", rest, err)
	}

	conn = dial(t, a)
	fmt.Fprint(conn, "PUT /api/v1/sbds/n HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	buffer := make([]byte, 64)
	n, err := conn.Read(buffer)
	if err != nil || !strings.HasPrefix(string(buffer[:n]), "HTTP/1.1 100 ") {
		t.Fatalf("there is no 100 Continue: %q, %v", buffer[:n], err)
	}
	fmt.Fprint(conn, "{}")
	want(t, 200, answer(t, conn))
}

// A client whose body nobody reads gets its answer and the end of the connection
// at once, however large its body is.
func TestABodyThatNobodyReadsDoesNotKeepItsConnection(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/a", `{}`)
	for name, test := range map[string]struct {
		request string
		status  int
	}{
		"another type":   {"PUT /api/v1/sbds/n HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n", 415},
		"in chunks":      {"PUT /api/v1/sbds/n HTTP/1.1\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n", 415},
		"no such path":   {"PUT /nothing HTTP/1.1\r\nContent-Length: 10\r\n", 404},
		"another origin": {"PUT /api/v1/sbds/n HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\nContent-Length: 10\r\n", 403},
		"a GET":          {"GET /api/v1/sbds/a HTTP/1.1\r\nContent-Length: 10\r\n", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, a) // its time-out of 40 s is less than the 60 s for reading a request
			fmt.Fprint(conn, test.request+"Host: x\r\nExpect: 100-continue\r\n\r\n")
			if r := want(t, test.status, answer(t, conn)); !r.Close {
				t.Errorf("the answer does not close the connection: %v", r.Header)
			}
			if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
				t.Errorf("the connection does not end cleanly: %q, %v", rest, err)
			}
		})
	}
}

// A proxy may interpret a chunked request that also has a length differently. So
// nothing more is read from that connection.
func TestChunksEndTheConnection(t *testing.T) {
	a := env.Start(t)
	for _, length := range []string{"", "Content-Length: 2\r\n", "Content-Length: 200\r\n"} {
		conn := dial(t, a)
		fmt.Fprint(conn, "PUT /api/v1/prjs/"+fmt.Sprint("p", len(length))+" HTTP/1.1\r\nHost: x\r\n"+length+"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"+
			"PUT /api/v1/prjs/smuggled HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		if r := want(t, 200, answer(t, conn)); !r.Close {
			t.Errorf("%q: the answer does not close the connection", length)
		}
	}
	want(t, 404, a.Do("GET", "/prjs/smuggled", ""))
}

// After a refusal the connection serves the next request.
func TestConnectionLivesAfterARefusal(t *testing.T) {
	a := env.Start(t, small)
	conn := dial(t, a)
	for _, body := range []string{filled(smallBody + 100), "[]", `{"a":`} {
		fmt.Fprintf(conn, "PUT /api/v1/sbds/n HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		if r := answer(t, conn); r.Status != 413 && r.Status != 400 || r.Close {
			t.Fatalf("%d %v", r.Status, r.Header)
		}
	}
}

// All bodies in flight together are bounded. Beyond the bound the answer is 503,
// until there is room again.
func TestBodiesInFlight(t *testing.T) {
	a := env.Start(t, small)
	size := smallBody - 10
	begin := func() *io.PipeWriter {
		reader, writer := io.Pipe()
		request := must.Get(http.NewRequestWithContext(t.Context(), "PUT", a.URL()+"/sbds/slow", reader))(t)
		request.ContentLength = int64(size)
		go func() {
			response, err := http.DefaultTransport.RoundTrip(request) // the judge would buffer the body
			if err == nil {
				response.Body.Close()
			}
		}()
		must.Get(io.WriteString(writer, filled(size)[:size-5]))(t)
		return writer
	}
	// Either body may be the one that finds no room: the slow one gets more time to
	// arrive at each try.
	slow, full := begin(), (*env.Reply)(nil)
	for wait := 5 * time.Millisecond; ; wait *= 2 {
		time.Sleep(wait)
		if full = a.Do("PUT", "/sbds/other", filled(size)); full.Status == 503 || wait > 5*time.Second {
			break
		}
		slow.CloseWithError(io.ErrUnexpectedEOF)
		slow = begin()
	}
	refused(t, full, 503, oda.Overloaded, "Nothing was stored", "Try again")
	if full.Header.Get("Retry-After") == "" {
		t.Error("there is no Retry-After")
	}
	want(t, 200, a.Do("PUT", "/sbds/little", `{}`))
	want(t, 200, a.Do("GET", "/sbds/little", ""))
	slow.CloseWithError(io.ErrUnexpectedEOF)
	env.Await(t, "there is room again", func() bool {
		status := a.Do("PUT", "/sbds/later", filled(size)).Status
		return status == 200 || status == 422
	})
	if r := a.Do("GET", "/sbds/slow", ""); r.Status != 404 {
		t.Errorf("half a body was stored: %d", r.Status)
	}
}

// A list of very short records takes more memory than its text.
func TestTheIndexOfABodyTakesRoom(t *testing.T) {
	t.Parallel()
	a := env.Start(t, small)
	list := func(record string, size int) string {
		return `{"request_responses":[` + strings.Repeat(record+",", size/len(record)) + record + `]}`
	}
	refused(t, a.Do("PUT", "/ebs/short", list(`{"request":"a"}`, smallBody-smallBody/8)), 503, oda.Overloaded, "Nothing was stored")
	for i := range 3 { // each gives its memory back
		want(t, 200, a.Do("PUT", fmt.Sprintf("/ebs/few%d", i), list(`{"request":"a"}`, smallBody/8)))
	}
	want(t, 200, a.Do("PUT", "/ebs/long", list(`{"request":"`+strings.Repeat("a", 200)+`"}`, smallBody-smallBody/8)))
}

// A client that announces a large body but sends nothing takes no room.
func TestAnnouncedBodiesTakeNoRoom(t *testing.T) {
	t.Parallel()
	a := env.Start(t, small)
	for range 10 {
		begin(t, a, "/sbds/n", smallBody)
	}
	want(t, 200, a.Do("PUT", "/sbds/fits", filled(smallBody/2)))
}

// A body that ends before its length is not stored.
func TestBodyCutOff(t *testing.T) {
	a := env.Start(t)
	conn := dial(t, a)
	fmt.Fprint(conn, "PUT /api/v1/sbds/n HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{}")
	must.Do(t, conn.Close())
	conn = dial(t, a)
	fmt.Fprint(conn, "PUT /api/v1/sbds/n HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n")
	refused(t, answer(t, conn), 400, oda.InvalidRequest)
	want(t, 404, a.Do("GET", "/sbds/n", ""))
}

func TestReadTimeout(t *testing.T) {
	t.Parallel()
	a := env.Start(t, func(cfg *app.Config) { cfg.ReadTimeout = 200 * time.Millisecond })
	conn := dial(t, a)
	started := time.Now()
	fmt.Fprint(conn, "PUT /api/v1/sbds/n HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{")
	p := refused(t, answer(t, conn), 408, oda.RequestTimeout, "did not arrive in time", "Nothing was stored", "again")
	if titles := describedTitles(t); p.Title != titles[p.Type] {
		t.Errorf("the title is %q, but %q in the description", p.Title, titles[p.Type])
	}
	if took := time.Since(started); took > env.AtMost(5*time.Second) {
		t.Errorf("the time-out is 0.2 s, but it took %v", took)
	}
	want(t, 404, a.Do("GET", "/sbds/n", ""))
}
