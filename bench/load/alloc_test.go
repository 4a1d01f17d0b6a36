package load

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"oda/bench/measure"
)

// The generator shares the processor with what it measures: garbage of its own
// would be collected at the expense of the server.
func TestExchangeAllocatesNothing(t *testing.T) {
	const length = 5000
	for name, answer := range map[string]string{
		"with a length": fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nContent-Type: application/json\r\n\r\n%s",
			length, strings.Repeat("x", length)),
		"in chunks": fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n",
			length, strings.Repeat("x", length)),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := dial(t.Context(), repeating(t, answer), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			defer c.close()
			request := Request(nil, "GET", "/", nil, nil)
			tally := measure.NewTally()
			allocated := testing.AllocsPerRun(200, func() {
				answer, done, err := c.exchange(request, false)
				if err != nil || answer.Size != length || len(answer.Body) != length {
					t.Fatal(answer, err)
				}
				tally.Done(time.Since(done), answer.Size)
			})
			if allocated > 0 {
				t.Errorf("%v allocations for a request", allocated)
			}
		})
	}
}

// repeating answers whatever arrives, without allocating either.
func repeating(t *testing.T, answer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		request, whole := make([]byte, 4096), []byte(answer)
		for {
			if _, err := c.Read(request); err != nil {
				return
			}
			if _, err := c.Write(whole); err != nil {
				return
			}
		}
	}()
	return listener.Addr().String()
}
