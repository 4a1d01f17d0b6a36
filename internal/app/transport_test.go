package app_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// secured starts an archive with a certificate of its own. It returns the
// certificate and the files.
func secured(t *testing.T, args ...string) (p *env.Process, certificate []byte, files [2]string) {
	t.Helper()
	dir := t.TempDir()
	files = [2]string{filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key")}
	certificate, key := env.SelfSigned(t)
	write(t, files[0], string(certificate))
	write(t, files[1], string(key))
	p = env.Oda(t, append([]string{"serve", "--tls-cert", files[0], "--tls-key", files[1]}, args...)...)
	return p, certificate, files
}

// over returns a client of HTTP/2, or of HTTP/1.1.
func over(t *testing.T, http2 bool, certificate []byte) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: env.Trust(certificate), ForceAttemptHTTP2: http2, DisableCompression: true}
	if !http2 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

func TestTheArchiveSpeaksTLS(t *testing.T) {
	p, certificate, _ := secured(t)
	if !strings.HasPrefix(p.URL, "https://") {
		t.Errorf("the log names the address %s", p.URL)
	}
	for http2, protocol := range map[bool]string{true: "HTTP/2.0", false: "HTTP/1.1"} {
		client := over(t, http2, certificate)
		id := map[bool]string{true: "two", false: "one"}[http2]
		request, _ := http.NewRequest("PUT", p.URL+"/sbds/"+id, strings.NewReader(`{"telescope":"ska_mid"}`))
		stored := must.Get(client.Do(request))(t)
		text, err := io.ReadAll(stored.Body)
		stored.Body.Close()
		if err != nil || stored.StatusCode != 200 || stored.Proto != protocol || !strings.Contains(string(text), "ska_mid") {
			t.Errorf("PUT answers %s %s, %v: %s", stored.Proto, stored.Status, err, text)
		}
		// A body that is refused does not harm the connection.
		request, _ = http.NewRequest("PUT", p.URL+"/sbds/"+id, strings.NewReader(strings.Repeat("x", 1<<20)))
		request.Header.Set("Content-Encoding", "gzip")
		refused := must.Get(client.Do(request))(t)
		refused.Body.Close()
		if refused.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("a compressed body is answered %s", refused.Status)
		}
	}

	old := env.Trust(certificate)
	old.MaxVersion = tls.VersionTLS11
	if conn, err := tls.Dial("tcp", p.Host(), old); err == nil {
		t.Errorf("the archive speaks TLS 1.1, %x", conn.ConnectionState().Version)
	}

	// What is refused before a handler sees it is a problem too, over TLS and without.
	for name, test := range map[string]struct {
		dial          func() (net.Conn, error)
		request, says string
	}{
		"a malformed request": {func() (net.Conn, error) { return tls.Dial("tcp", p.Host(), env.Trust(certificate)) }, "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"},
		"a request in plain":  {func() (net.Conn, error) { return net.Dial("tcp", p.Host()) }, "GET /api/v1/sbds/one HTTP/1.1\r\nHost: x\r\n\r\n", "https://"},
	} {
		conn := must.Get(test.dial())(t)
		defer conn.Close()
		fmt.Fprint(conn, test.request)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var problem struct{ Type, Detail string }
		err = json.NewDecoder(response.Body).Decode(&problem)
		if err != nil || response.StatusCode != 400 || problem.Type != "urn:oda:problem:invalid-request" || !strings.Contains(problem.Detail, test.says) {
			t.Errorf("%s is answered %s, %v: %+v", name, response.Status, err, problem)
		}
	}
}

// A client that does not complete its handshake does not hold up others, and loses
// its connection.
func TestASlowHandshakeHoldsUpNobody(t *testing.T) {
	p, certificate, _ := secured(t, "--header-timeout", "300ms")
	silent := must.Get(net.Dial("tcp", p.Host()))(t)
	defer silent.Close()
	response := must.Get(over(t, true, certificate).Get(p.URL + "/sbds?created_after=2020-01-01"))(t)
	response.Body.Close()
	_ = silent.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadAll(silent); err != nil {
		t.Errorf("the connection did not end: %v", err)
	}
}

// Operators replace the two files one after the other.
func TestACertificateIsReadAgainWhenItChanges(t *testing.T) {
	p, old, files := secured(t)
	renewed, key := env.SelfSigned(t)
	shown := func() string {
		t.Helper()
		conn := must.Get(tls.Dial("tcp", p.Host(), env.Trust(old, renewed)))(t)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := shown()
	write(t, files[0], string(renewed[:100]))
	p.AwaitLog("the one before stays in use")
	write(t, files[0], string(renewed))
	if got := shown(); got != first {
		t.Errorf("with half of the pair the archive shows %s", got)
	}
	write(t, files[1], string(key))
	p.AwaitLog("the certificate was read again")
	if got := shown(); got == first {
		t.Error("the archive shows the certificate of before")
	}
	must.Do(t, os.Remove(files[1]))
	p.AwaitLog("no such file")
	if shown() == first {
		t.Error("without its files, the archive shows the first certificate")
	}
	p.MustStop()
}

// http2Stream asks for a stream over HTTP/2. It ends with the test.
func http2Stream(t *testing.T, transport http.RoundTripper, url string) *streamed {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	request := must.Get(http.NewRequestWithContext(ctx, "GET", url, nil))(t)
	request.Header.Set("Accept", "text/event-stream")
	response, err := transport.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK || response.ProtoMajor != 2 {
		t.Fatalf("ask for a stream: %v, %+v", err, response)
	}
	return &streamed{body: bufio.NewReaderSize(response.Body, 1<<10), more: make(chan struct{}, 1)}
}

// A thousand streams over a few connections are served as well as those on connections
// of their own, and ordinary requests on the same connections go on.
func TestAThousandStreamsOverHTTP2(t *testing.T) {
	p, certificate, _ := secured(t, "--max-connections", "8", "--write-timeout", "3s")
	client := over(t, true, certificate)
	transport := client.Transport.(*http.Transport)
	transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
	all := gather(t, p, client, func(path string) *streamed { return http2Stream(t, transport, p.URL+path) })
	if all.stalled.err == io.EOF {
		t.Error("the stream of the one that stopped reading ended as if it were complete")
	}
	all.stop(t, p)
}
