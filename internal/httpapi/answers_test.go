package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// A document that does not fit into the buffers of a connection, and room for four of
// them, of which one caller has one.
const (
	largeDocument = 8 << 20
	answersRoom   = 48 << 20
)

// tight starts an archive with little room for answers, and a large document.
func tight(t *testing.T, wait, stuck time.Duration, configure ...func(*app.Config)) *env.Archive {
	t.Helper()
	a := env.Start(t, append(configure, func(cfg *app.Config) {
		cfg.Bounds.Answers, cfg.Bounds.AnswerWait, cfg.Bounds.StuckTime = answersRoom, wait, stuck
	})...)
	store(t, a, "/sbds/large", filled(largeDocument))
	store(t, a, "/sbds/small", `{}`)
	return a
}

// asks asks for the large document from an address of this machine, and reads nothing.
func asks(t *testing.T, a *env.Archive, from string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn := must.Get(dialer.Dial("tcp", a.Addr()))(t)
	t.Cleanup(func() { conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	must.Do(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	fmt.Fprint(conn, "GET /api/v1/sbds/large HTTP/1.1\r\nHost: localhost\r\n\r\n")
	return conn
}

// figure returns the value of a metric.
func figure(t *testing.T, a *env.Archive, name string) float64 {
	t.Helper()
	response := must.Get(a.Client().Get(a.Origin() + "/metrics"))(t)
	defer response.Body.Close()
	text := must.Get(io.ReadAll(response.Body))(t)
	found := regexp.MustCompile(`(?m)^` + name + ` (.*)$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("there is no metric %s", name)
	}
	value := must.Get(strconv.ParseFloat(string(found[1]), 64))(t)
	return value
}

// awaitHeld waits until large answers hold so much room, and perhaps a little more.
func awaitHeld(t *testing.T, a *env.Archive, bytes float64) {
	t.Helper()
	env.Await(t, fmt.Sprintf("answers hold %.0f bytes", bytes), func() bool {
		held := figure(t, a, "oda_http_answers_bytes")
		return held >= bytes && held < bytes+largeDocument
	})
}

func TestClientsThatDoNotReadTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	a := tight(t, 500*time.Millisecond, time.Hour)
	answered := make(chan *http.Response)
	for i := range 100 {
		conn := asks(t, a, fmt.Sprintf("127.0.0.%d", 2+i%10))
		go func() {
			response, err := http.ReadResponse(bufio.NewReader(conn), nil) // its beginning
			if err != nil {
				t.Error(err)
			}
			answered <- response
		}()
	}
	statuses := make(map[int]int)
	for n := 0; n < 100; {
		select {
		case response := <-answered:
			if n++; response == nil {
				continue
			}
			statuses[response.StatusCode]++
			if response.StatusCode == 503 && response.Header.Get("Retry-After") == "" {
				t.Error("a refusal has no Retry-After")
			}
		default:
			if held := figure(t, a, "oda_http_answers_bytes"); held > answersRoom {
				t.Fatalf("answers hold %.0f bytes", held)
			}
			want(t, 200, a.Do("GET", "/sbds/small", ""))
		}
	}
	if statuses[200] != 4 || statuses[503] != 96 {
		t.Errorf("the answers are %v", statuses)
	}
}

func TestOneConnectionOfHTTP2TakesBoundedMemory(t *testing.T) {
	t.Parallel()
	certificate, key := env.SelfSigned(t)
	dir := t.TempDir()
	for name, text := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: env.Trust(certificate), ForceAttemptHTTP2: true, DisableCompression: true}}
	t.Cleanup(client.CloseIdleConnections)
	a := env.Start(t, func(cfg *app.Config) {
		cfg.TLSCertificate, cfg.TLSKey = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
		cfg.Bounds.Answers, cfg.Bounds.AnswerWait, cfg.Bounds.StuckTime = answersRoom, 500*time.Millisecond, time.Hour
	})
	url := "https://" + a.Addr() + "/api/v1/sbds/"
	send := func(method, id, body string) *http.Response {
		request := must.Get(http.NewRequestWithContext(t.Context(), method, url+id, strings.NewReader(body)))(t)
		response := must.Get(client.Do(request))(t)
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	stored := send("PUT", "large", filled(largeDocument))
	if _, err := io.Copy(io.Discard, stored.Body); err != nil || stored.StatusCode != 200 || stored.ProtoMajor != 2 {
		t.Fatal(stored.Status, stored.Proto, err)
	}
	statuses := make(chan int)
	for range 40 {
		go func() { statuses <- send("GET", "large", "").StatusCode }()
	}
	count := make(map[int]int)
	for range 40 {
		count[<-statuses]++
	}
	if count[200] != 1 || count[503] != 39 {
		t.Errorf("the answers are %v", count)
	}
	if small := send("GET", "none", ""); small.StatusCode != 404 {
		t.Errorf("a small answer on the same connection is %s", small.Status)
	}
}

func TestAStuckClientIsCutOffOnlyWhenOthersWait(t *testing.T) {
	t.Parallel()
	a := tight(t, 30*time.Second, 200*time.Millisecond)
	stuck := asks(t, a, "127.0.0.2")
	awaitHeld(t, a, largeDocument)
	time.Sleep(time.Second) // several times as long as it may be stuck
	if response := answer(t, stuck); response.Status != 200 || len(response.Body) < largeDocument {
		t.Fatalf("nobody waited, but the client got %d and %d bytes", response.Status, len(response.Body))
	}
	stuck = asks(t, a, "127.0.0.2")
	awaitHeld(t, a, largeDocument)
	if response := answer(t, asks(t, a, "127.0.0.2")); response.Status != 200 || len(response.Body) < largeDocument {
		t.Errorf("the client that waited got %d and %d bytes", response.Status, len(response.Body))
	}
	if n, _ := io.Copy(io.Discard, stuck); n >= largeDocument {
		t.Errorf("the stuck client got %d bytes", n)
	}
	if cut := figure(t, a, "oda_http_answers_cut_total"); cut != 1 {
		t.Errorf("%v answers were cut off", cut)
	}
}

func TestASlowClientIsNotCutOff(t *testing.T) {
	t.Parallel()
	a := tight(t, time.Minute, 3*time.Second)
	slow := asks(t, a, "127.0.0.2")
	awaitHeld(t, a, largeDocument)
	waiting := asks(t, a, "127.0.0.2")
	env.Await(t, "another waits", func() bool { return figure(t, a, "oda_http_answers_waiting") == 1 })
	// The server sees that something was taken when a few large segments have been.
	began, got := time.Now(), int64(0)
	for time.Since(began) < 6*time.Second { // twice as long as it may be stuck, a little at a time
		n, err := io.CopyN(io.Discard, slow, 64<<10)
		if got += n; err != nil {
			t.Fatalf("after %d bytes: %v", got, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if rest, err := io.CopyN(io.Discard, slow, largeDocument-got); err != nil {
		t.Fatalf("after %d bytes: %v", got+rest, err)
	}
	if response := answer(t, waiting); response.Status != 200 {
		t.Errorf("the client that waited got %d", response.Status)
	}
}
