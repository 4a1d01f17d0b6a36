package peers

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// bareSize is the size of the document that the bare server answers.
const bareSize = 5000

// Bare starts the limit of what net/http can do: a server that reads the whole
// body of a request and answers as many bytes with the same headers as the
// archive, and has no storage.
func (l *Lab) Bare(ctx context.Context) (*Server, error) {
	return l.startChild(ctx, "bare", serveBare)
}

// recordAnswer is as long as what the archive answers to a record.
const recordAnswer = `{"eb_id":"eb-bare-000000","sequence":1,"metadata":{"version":1,` +
	`"created_by":"DefaultUser","created_on":"2026-01-07T00:00:00.000000Z",` +
	`"last_modified_by":"DefaultUser","last_modified_on":"2026-01-07T00:00:00.000001Z"}}`

// bareHandler answers a GET with a document, a PUT with the body that came, and
// anything else as a record is answered.
func bareHandler() http.Handler {
	document := Document(bareSize, "sbd-bare-000000000")
	record := []byte(recordAnswer)
	buffers := sync.Pool{New: func() any { return new(body) }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := buffers.Get().(*body)
		defer buffers.Put(b)
		if err := b.read(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer := record
		switch r.Method {
		case http.MethodGet:
			answer = document
		case http.MethodPut:
			answer = b.bytes
		}
		h := w.Header()
		h["Content-Type"] = []string{"application/json"}
		h["Content-Length"] = []string{strconv.Itoa(len(answer))}
		h["Vary"] = []string{"Accept-Encoding"}
		h["X-Content-Type-Options"] = []string{"nosniff"}
		h["X-Request-Id"] = []string{"AAAAAAAAAAAAAAAAAAAAAAAAAA"}
		if r.Method != http.MethodPost && r.Method != http.MethodPatch {
			h["Etag"] = []string{`"1-1767744000000000"`}
		}
		_, _ = w.Write(answer) // the client may be gone
	})
}

// body is a buffer for bodies, used again for the next request.
type body struct{ bytes []byte }

// read reads the whole body of a request.
func (b *body) read(r *http.Request) error {
	b.bytes = b.bytes[:0]
	if r.ContentLength > 0 && r.ContentLength <= 64<<20 {
		if int64(cap(b.bytes)) < r.ContentLength {
			b.bytes = make([]byte, 0, r.ContentLength)
		}
		b.bytes = b.bytes[:r.ContentLength]
		_, err := io.ReadFull(r.Body, b.bytes)
		return err
	}
	rest, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	b.bytes = append(b.bytes, rest...)
	return err
}
