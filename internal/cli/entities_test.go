package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// answers listens on an address, which it stores in the variable args[0]. It
// answers every request with the status args[1] and the beginning of a body,
// and breaks the connection. Without a status it only breaks the connection.
func answers(ts *testscript.TestScript, _ bool, args []string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = listener.Close() })
	ts.Setenv(args[0], listener.Addr().String())
	answer := ""
	if args[1] != "" {
		answer = "HTTP/1.1 " + args[1] + "\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n" + strings.Join(args[2:], " ")
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the script is over
			}
			// The client sees any failure here.
			if request, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, request.Body)
				_, _ = io.WriteString(conn, answer)
			}
			_ = conn.Close()
		}
	}()
}

// many writes args[0] records into the file args[1], one per line.
func many(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	var text []byte
	for i := range n {
		text = fmt.Appendf(text, "{\"request\":\"scan\",\"n\":%d}\n", i)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), text, 0o600))
}

// appends appends a line to the file args[0].
func appends(ts *testscript.TestScript, _ bool, args []string) {
	file, err := os.OpenFile(ts.MkAbs(args[0]), os.O_APPEND|os.O_WRONLY, 0)
	ts.Check(err)
	_, err = fmt.Fprintln(file, args[1])
	ts.Check(err)
	ts.Check(file.Close())
}

// endless is a record that never ends.
type endless struct{ begun bool }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	if !e.begun {
		e.begun = true
		return copy(p, `{"request":"`), nil
	}
	return len(p), nil
}

func TestAnEndlessRecordIsRefused(t *testing.T) {
	err := values(&endless{}, func([]byte) error { return nil })
	if !errors.Is(err, errRecordSize) {
		t.Errorf("the error is %v", err)
	}
}
