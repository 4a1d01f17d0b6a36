package serving

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// With two places, one client asks for nothing more and another waits for its answer. A third
// one takes the place of the first as soon as that has been idle for long enough, and the
// second one gets its answer.
func TestANewConnectionTakesThePlaceOfAnIdleOne(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-answer
		}
	})}
	listener := serve(t, listen(t, 2), server)
	open := func(path string) (net.Conn, func() error) {
		conn := connect(t, listener)
		ask := func() error {
			_, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
			if err == nil {
				_, err = http.ReadResponse(bufio.NewReader(conn), nil)
			}
			return err
		}
		return conn, ask
	}
	idle, ask := open("/")
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	_, askSlow := open("/slow")
	slow := make(chan error, 1)
	go func() { slow <- askSlow() }()
	time.Sleep(idleLeast + 2*idleLook)
	if err := idle.SetReadDeadline(time.Now().Add(2 * idleLook)); err != nil {
		t.Fatal(err)
	}
	if _, err := idle.Read(make([]byte, 1)); err == io.EOF {
		t.Fatal("an idle connection was closed although nobody waited for its place")
	}

	_, ask = open("/")
	if err := ask(); err != nil {
		t.Errorf("a third client got no answer: %v", err)
	}
	_ = idle.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := idle.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the idle connection was not closed: %v", err)
	}
	close(answer)
	if err := <-slow; err != nil {
		t.Errorf("a client that was waiting for its answer got none: %v", err)
	}
}
