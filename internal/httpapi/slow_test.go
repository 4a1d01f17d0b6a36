package httpapi_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// secured starts an archive that speaks TLS, and returns a client of HTTP/2. The
// client is not checked against the API description.
func secured(t *testing.T, configure func(*app.Config)) (a *env.Archive, client *http.Client) {
	t.Helper()
	certificate, key := env.SelfSigned(t)
	dir := t.TempDir()
	a = env.Start(t, configure, func(cfg *app.Config) {
		cfg.TLSCertificate, cfg.TLSKey = filepath.Join(dir, "crt"), filepath.Join(dir, "key")
		for file, text := range map[string][]byte{cfg.TLSCertificate: certificate, cfg.TLSKey: key} {
			must.Do(t, os.WriteFile(file, text, 0o600))
		}
	})
	transport := &http.Transport{
		TLSClientConfig: env.Trust(certificate), ForceAttemptHTTP2: true, DisableCompression: true,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return a, &http.Client{Transport: transport, Timeout: time.Minute}
}

func TestASlowBodyInHTTP2(t *testing.T) {
	t.Parallel()
	a, client := secured(t, func(cfg *app.Config) { cfg.ReadTimeout = 200 * time.Millisecond })
	body, writer := io.Pipe()
	go io.WriteString(writer, "{")
	request := must.Get(http.NewRequest("PUT", "https://"+a.Addr()+"/api/v1/sbds/n", body))(t)
	response := must.Get(client.Do(request))(t)
	r := must.Get(env.Read(response))(t)
	refused(t, r, 408, oda.RequestTimeout, "did not arrive in time")
	// The connection goes on.
	response = must.Get(client.Get("https://" + a.Addr() + "/api/v1/sbds/n"))(t)
	response.Body.Close()
	if response.StatusCode != 404 {
		t.Errorf("half a body was stored: %s", response.Status)
	}
}

// A client that asks for a large answer and does not read it is cut off.
func TestAClientThatDoesNotReadItsAnswer(t *testing.T) {
	t.Parallel()
	database := func(cfg *app.Config) { cfg.Database = "sqlite:" + filepath.Join(t.TempDir(), "archive.db") }
	var db string
	a := env.Start(t, database, func(cfg *app.Config) { db = cfg.Database })
	store(t, a, "/sbds/large", fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 16<<20)))
	must.Do(t, a.Stop())
	a, client := secured(t, func(cfg *app.Config) { cfg.Database, cfg.WriteTimeout = db, 2*time.Second })
	older := &http.Transport{TLSClientConfig: client.Transport.(*http.Transport).TLSClientConfig.Clone(), DisableCompression: true}
	for protocol, client := range map[string]*http.Client{"HTTP/2.0": client, "HTTP/1.1": {Transport: older}} {
		response, err := client.Get("https://" + a.Addr() + "/api/v1/sbds/large")
		for try := 1; err != nil && try < 10; try++ { // on a busy machine the time is over before the answer has begun
			response, err = client.Get("https://" + a.Addr() + "/api/v1/sbds/large")
		}
		if err != nil || response.Proto != protocol {
			t.Fatal(response, err)
		}
		a.Logged(response.Header.Get("X-Request-Id")) // the archive has ended the answer
		if n, err := io.Copy(io.Discard, response.Body); err == nil {
			t.Errorf("%s: all %d bytes were sent", protocol, n)
		}
		response.Body.Close()
		client.CloseIdleConnections()
		// On a busy machine all of the connection may have been cut off, so this takes
		// another.
		fresh := &http.Client{Transport: client.Transport.(*http.Transport).Clone()}
		if response, err = fresh.Get("https://" + a.Addr() + "/api/v1/sbds/none"); err != nil || response.StatusCode != 404 {
			t.Fatalf("%s: the archive does not go on: %v, %v", protocol, response, err)
		}
		response.Body.Close()
		fresh.CloseIdleConnections()
	}
}

// Clients that never send the rest of a body do not keep probes from spare connections.
func TestProbesAreAnsweredBesideBodiesThatDoNotArrive(t *testing.T) {
	t.Parallel()
	a := env.Start(t, func(cfg *app.Config) { cfg.MaxConnections = 1 })
	begin(t, a, "/sbds/slow", 2)
	for range 80 { // many times as many as there are spare connections
		fmt.Fprint(dial(t, a), "PUT /api/v1/sbds/slow HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{")
	}
	want(t, 200, raw(t, a, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"))
}

// A server that stops finishes the requests in progress and accepts no new ones.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	a := env.Start(t)
	conn := begin(t, a, "/sbds/late", 2)
	stopped := make(chan error, 1)
	go func() { stopped <- a.Stop() }()
	env.Await(t, "the server takes no new connections", func() bool {
		other, err := net.Dial("tcp", a.Addr())
		if err == nil {
			other.Close()
		}
		return err != nil
	})
	select {
	case err := <-stopped:
		t.Fatalf("the server stopped during a request: %v", err)
	default:
	}
	must.Get(io.WriteString(conn, "{}"))(t)
	want(t, 200, answer(t, conn))
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
