package fault_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"oda/internal/test/fault"
)

// echo sends back what it receives until the test ends.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// say sends a line and returns what comes back within a time.
func say(conn net.Conn, line string, within time.Duration) (string, error) {
	if _, err := conn.Write([]byte(line)); err != nil {
		return "", err
	}
	return hear(conn, within)
}

func TestAStalledConnectionIsSilentAndContinuesWithoutLoss(t *testing.T) {
	p, err := fault.NewProxy(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	old := dial()
	if got, err := say(old, "one", 5*time.Second); got != "one" {
		t.Fatalf("before the cut: %q, %v", got, err)
	}
	p.Stall(true)
	fresh := dial()
	for name, conn := range map[string]net.Conn{"old": old, "new": fresh} {
		if got, err := say(conn, "two", 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s connection while cut: %q, %v; want silence", name, got, err)
		}
	}
	p.Stall(false)
	for name, conn := range map[string]net.Conn{"old": old, "new": fresh} {
		if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 3)
		if _, err := io.ReadFull(conn, buffer); string(buffer) != "two" {
			t.Errorf("%s connection after the stall: %q, %v", name, buffer, err)
		}
	}
}

func TestAStallAlsoHoldsBackTheEndOfAConnection(t *testing.T) {
	p, err := fault.NewProxy(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := say(conn, "one", 5*time.Second); got != "one" {
		t.Fatalf("before the cut: %q, %v", got, err)
	}
	p.Stall(true)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := hear(conn, 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("while cut: %q, %v; want silence", got, err)
	}
	p.Stall(false)
	if got, err := hear(conn, 5*time.Second); err != io.EOF {
		t.Errorf("after the stall: %q, %v; want the end", got, err)
	}
}

// hear returns what arrives within a time.
func hear(conn net.Conn, within time.Duration) (string, error) {
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	buffer := make([]byte, 64)
	n, err := conn.Read(buffer)
	return string(buffer[:n]), err
}
