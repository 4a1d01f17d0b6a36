package app_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// Frames of HTTP/2, as far as these tests need them.
const (
	frameHeaders, frameReset, frameSettings, frameContinuation = 1, 3, 4, 9

	endStream, endHeaders = 1, 4
)

// rude is a client of HTTP/2 that does what no client should.
type rude struct{ *tls.Conn }

func beRude(t *testing.T, p *env.Process, certificate []byte) rude {
	t.Helper()
	config := env.Trust(certificate)
	config.NextProtos = []string{"h2"}
	conn := must.Get(tls.Dial("tcp", p.Host(), config))(t)
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	c := rude{conn}
	must.Get(io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))(t)
	must.Do(t, c.send(frameSettings, 0, 0, nil))
	return c
}

func (c rude) send(kind, flags byte, stream uint32, payload []byte) error {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	head = binary.BigEndian.AppendUint32(append(head, flags), stream)
	_, err := c.Write(append(head, payload...))
	return err
}

// receive returns the next frame.
func (c rude) receive() (kind byte, stream uint32, payload []byte, err error) {
	var head [9]byte
	if _, err = io.ReadFull(c, head[:]); err == nil {
		payload = make([]byte, binary.BigEndian.Uint32(head[:4])>>8)
		_, err = io.ReadFull(c, payload)
	}
	return head[3], binary.BigEndian.Uint32(head[5:]), payload, err
}

// get returns the header of a GET, with short values only.
func get(path string) []byte {
	header := []byte{0x82, 0x87, 0x41, 1, 'x', 0x44, byte(len(path))} // GET, https, the authority x, a path
	return append(header, path...)
}

// wellFor checks that the archive answers another client, however rude one is.
func wellFor(t *testing.T, client *http.Client, url string) {
	t.Helper()
	response := must.Get(client.Get(url + "/sbds/none"))(t)
	response.Body.Close()
	if response.StatusCode != http.StatusNotFound {
		t.Fatalf("another client is answered %s", response.Status)
	}
}

// A connection has only so many requests in progress, and the others are refused, not
// kept.
func TestAConnectionHasOnlySoManyStreams(t *testing.T) {
	const asked, most = 600, 250
	p, certificate, _ := secured(t)
	c := beRude(t, p, certificate)
	for i := range uint32(asked) {
		must.Do(t, c.send(frameHeaders, endStream|endHeaders, 2*i+1, get("/api/v1/changes?after=now&wait=60")))
	}
	for refused := 0; refused < asked-most; {
		kind, stream, payload, err := c.receive()
		if err != nil {
			t.Fatalf("%d were refused: %v", refused, err)
		}
		if kind == frameReset {
			refused++
			if code := binary.BigEndian.Uint32(payload); code != 7 && code != 1 { // REFUSED_STREAM, or one that should not have been sent
				t.Fatalf("stream %d ended with %d", stream, code)
			}
		}
	}
	wellFor(t, over(t, true, certificate), p.URL)
}

// A client that asks and takes it back at once costs little more than one that does
// not ask.
func TestAFloodOfResets(t *testing.T) {
	const asked = 20_000
	p, certificate, _ := secured(t)
	client := over(t, true, certificate)
	wellFor(t, client, p.URL)
	before := resident(t, p.PID())
	c := beRude(t, p, certificate)
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, c)
		ended <- err
	}()
	sent := 0
	for ; sent < asked; sent++ {
		stream := uint32(2*sent + 1)
		err := c.send(frameHeaders, endStream|endHeaders, stream, get("/api/v1/sbds/search?q=x"))
		if err == nil {
			err = c.send(frameReset, 0, stream, []byte{0, 0, 0, 8})
		}
		if err != nil {
			break // the archive has had enough
		}
		if sent%1000 == 0 {
			wellFor(t, client, p.URL)
		}
	}
	wellFor(t, client, p.URL)
	if grown := resident(t, p.PID()) - before; grown > 64<<20 {
		t.Errorf("after %d requests that were taken back, the archive takes %.0f MiB more", sent, mebibytes(grown))
	}
	_ = c.Close()
	<-ended
	p.MustStop()
}

// A header that is a little too large is refused with 431. If it does not end there,
// the connection does.
func TestALargeHeaderOverHTTP2(t *testing.T) {
	p, certificate, _ := secured(t)
	client := over(t, true, certificate)
	// field returns a field of the header with a value of at least 127 bytes.
	field := func(length int) []byte {
		rest := length - 127
		return append([]byte{0x00, 1, 'a', 0x7f, 0x80 | byte(rest&0x7f), byte(rest >> 7)}, strings.Repeat("x", length)...)
	}
	c := beRude(t, p, certificate)
	send := func(kind, flags byte, payload []byte) {
		t.Helper()
		must.Do(t, c.send(kind, flags, 1, payload))
	}
	send(frameHeaders, endStream, get("/api/v1/sbds/none"))
	for range 4 {
		send(frameContinuation, 0, field(16000))
	}
	send(frameContinuation, endHeaders, field(2000))
	for {
		kind, stream, payload, err := c.receive()
		must.Do(t, err)
		if kind == frameHeaders && stream == 1 {
			if !bytes.Contains(payload, []byte("431")) {
				t.Errorf("the answer has the header %q", payload)
			}
			break
		}
	}

	// Without an end of the header, the client is cut off.
	c = beRude(t, p, certificate)
	send(frameHeaders, endStream, get("/api/v1/sbds/none"))
	go func() { _, _ = io.Copy(io.Discard, c) }()
	for i := 0; ; i++ {
		if err := c.send(frameContinuation, 0, 1, field(16000)); err != nil {
			break
		}
		if i > 1000 {
			t.Fatalf("a header of %d bytes was taken", i*16000)
		}
	}
	wellFor(t, client, p.URL)
}
