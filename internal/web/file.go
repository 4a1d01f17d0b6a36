package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"

	"oda/internal/content"
)

//go:embed assets
var embedded embed.FS

const htmlType = "text/html; charset=utf-8"

// How long a browser may cache an answer. A page is requested again every time,
// and usually answered 304; the links to its files contain their hash.
const (
	pageCache    = "no-cache"
	privateCache = "private, no-cache" // about entities
	assetCache   = "public, max-age=3600"
)

// What the Swagger UI may load, which sets inline styles and sends requests, and
// a file that is opened by itself or, as live.js, is a worker. The other pages have
// pagePolicy.
const (
	uiPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
		"img-src 'self' data:; connect-src 'self'; " + everyPolicy
	filePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; " +
		"img-src 'self' data:; connect-src 'self'; " + everyPolicy
	everyPolicy = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)

// referrerPolicy tells other hosts nothing. With "no-referrer" a browser would not
// tell the archive either that a form comes from its own page.
const referrerPolicy = "same-origin"

// contentTypes are the content types by file extension. The operating system's
// list is not used, because it differs between machines.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
	"":     "text/plain; charset=utf-8",
}

// file is something to serve. Only the compressed form is kept: nearly every
// client asks for it, and it takes a quarter of the memory.
type file struct {
	contentType string
	gz          []byte
	size        int64  // size of the uncompressed form
	hash        string // hash of the content, for the entity tag
}

// newFile returns a file with this content.
func newFile(contentType string, text []byte) file {
	return newGzipped(contentType, content.Gzip.Block(text))
}

// newGzipped returns a file from its compressed form.
func newGzipped(contentType string, gz []byte) file {
	sum := sha256.Sum256(gz)
	return file{
		contentType: contentType,
		gz:          gz,
		// The last four bytes of a gzip stream are the size of its content.
		size: int64(binary.LittleEndian.Uint32(gz[len(gz)-4:])),
		hash: hex.EncodeToString(sum[:16]),
	}
}

// loadAssets returns the files that the pages load, by name.
func loadAssets() map[string]file {
	assets := make(map[string]file)
	for _, name := range []string{"site.css", "site.js", "live.js", "document.js", "timeline.js", "ui.css", "ui.js", "icon.svg"} {
		assets[name] = newFile(contentTypes[path.Ext(name)], mustRead("assets/"+name))
	}
	for _, name := range []string{
		"swagger-ui.css", "swagger-ui-bundle.js",
		"swagger-ui-bundle.js.LICENSE.txt", "LICENSE", "NOTICE",
	} {
		assets[name] = newGzipped(contentTypes[path.Ext(name)], mustRead("assets/swagger/"+name+".gz"))
	}
	return assets
}

// mustRead reads an embedded file.
func mustRead(name string) []byte {
	text, err := embedded.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("web: the binary lacks a file: %v", err))
	}
	return text
}

// serve answers with the file, or with 304 if the client has it. A write fails
// only if the client has gone, so nobody needs to know.
func (f file) serve(w http.ResponseWriter, r *http.Request, cache, policy string) {
	encoding := content.Negotiate(r.Header, content.Gzip)
	h := w.Header()
	h.Set("Cache-Control", cache)
	h.Set("Content-Security-Policy", policy)
	h.Set("ETag", content.Tag(f.hash, encoding))
	h.Set("Referrer-Policy", referrerPolicy)
	h.Add("Vary", "Accept-Encoding")
	h.Set("X-Content-Type-Options", "nosniff")
	if content.Has(r.Header, f.hash) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.contentType)
	if encoding != nil {
		h.Set("Content-Encoding", encoding.Name)
		h.Set("Content-Length", strconv.Itoa(len(f.gz)))
		_, _ = w.Write(f.gz)
		return
	}
	h.Set("Content-Length", strconv.FormatInt(f.size, 10))
	if r.Method == http.MethodHead {
		return
	}
	zr, err := gzip.NewReader(bytes.NewReader(f.gz))
	if err != nil {
		panic(fmt.Sprintf("web: an embedded file is not a gzip stream: %v", err))
	}
	_, _ = io.Copy(w, zr) // #nosec G110 -- a file that is part of the program
}
