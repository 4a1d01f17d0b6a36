package env

import (
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// Forward passes requests on to the archive, and checks them. If the archive
// does not answer, the connection breaks.
func (a *Archive) Forward() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: a.Addr()}) },
		Transport:    a.client.Transport,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

// Answering gives every request this status, body and headers (pairs of name
// and value).
func Answering(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may be gone
	}
}
