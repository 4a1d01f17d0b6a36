package httpapi

import (
	"bytes"
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"oda"
)

// Refusals returns a function that answers requests that net/http itself refuses:
// those that are not well-formed HTTP, or whose header did not arrive in time. The
// answers are problems like all others, with a line in the log.
func Refusals(log *slog.Logger) func(client net.Addr, reason string) []byte {
	return func(client net.Addr, reason string) []byte {
		e := oda.Errorf(oda.InvalidRequest, "The request is not valid HTTP/1.1: %s.", reason)
		switch {
		case strings.HasPrefix(reason, "408"):
			e = oda.Errorf(oda.RequestTimeout, "The header of the request did not arrive in time. Nothing was stored. Send it again.")
		case strings.HasPrefix(reason, "431"):
			e = oda.Errorf(oda.InvalidRequest, "The header of the request is larger than the limit of %d bytes. Send fewer or shorter header fields.", MaxHeader)
		}
		requestID := rand.Text()
		kind, body := written(e, requestID)
		response := http.Response{
			StatusCode: kind.status, ProtoMajor: 1, ProtoMinor: 1, Close: true,
			Header: http.Header{
				"Cache-Control": {"no-store"}, "Content-Type": {problemType},
				"X-Content-Type-Options": {"nosniff"}, "X-Request-Id": {requestID},
			},
			ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
		}
		var out bytes.Buffer
		if err := response.Write(&out); err != nil {
			panic(err) // writing to a buffer does not fail
		}
		log.Info("request", "request_id", requestID, "client", client.String(), "status", kind.status, "problem", e.Code, "reason", reason)
		return out.Bytes()
	}
}

// MaxHeader is how many bytes the header of a request may have.
const MaxHeader = 64 << 10
