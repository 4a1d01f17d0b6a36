package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"oda"
)

// Document is a stored entity.
type Document struct {
	Kind     oda.Kind
	ID       string
	ETag     string // of this state, quoted
	Metadata oda.Metadata
	Body     []byte // the whole document, byte for byte
}

// Get returns the current version of an entity, or oda.NotFound.
func (c *Client) Get(ctx context.Context, kind oda.Kind, id string) (*Document, error) {
	return c.get(ctx, kind, id, nil)
}

// GetIfChanged is like Get, but returns nil and no error if etag is still the
// entity tag of the current state.
func (c *Client) GetIfChanged(ctx context.Context, kind oda.Kind, id, etag string) (*Document, error) {
	return c.get(ctx, kind, id, http.Header{"If-None-Match": {etag}})
}

func (c *Client) get(ctx context.Context, kind oda.Kind, id string, header http.Header) (*Document, error) {
	r, err := c.read(ctx, path(kind, id), header)
	if err == nil && r.status == http.StatusNotModified {
		return nil, nil
	}
	return document(kind)(r, err)
}

// StoreOption is an option of Store.
type StoreOption func(*storing)

type storing struct {
	header http.Header
	query  string
}

// IfMatch stores only if the stored state has this entity tag; otherwise Store
// fails with oda.Precondition.
func IfMatch(etag string) StoreOption {
	return func(s *storing) { s.header.Set("If-Match", etag) }
}

// CreateOnly stores only if the identifier is unused; otherwise Store fails
// with oda.Precondition.
func CreateOnly() StoreOption {
	return func(s *storing) { s.header.Set("If-None-Match", "*") }
}

// KeepRecords updates an ExecutionBlock without its records, which stay as they
// are, including those that arrive in the meantime. The document must not
// contain any.
func KeepRecords() StoreOption { return func(s *storing) { s.query = "?records=keep" } }

// Store creates or updates the entity with this identifier and returns the
// stored document. An update must contain the metadata that was read. If
// somebody else has updated the entity since, the error is
// oda.MetadataMismatch: read it, apply the change again and store again.
//
// Store is not retried, since the archive cannot recognise a repetition. If the
// error is ErrNoAnswer, read the entity to see whether it was stored.
func (c *Client) Store(ctx context.Context, kind oda.Kind, id string, body []byte, options ...StoreOption) (*Document, error) {
	s := storing{header: http.Header{}}
	for _, option := range options {
		option(&s)
	}
	return document(kind)(c.do(ctx, request{
		method: http.MethodPut, path: api + path(kind, id) + s.query, header: s.header, body: body,
	}))
}

// StoreSeveral stores entities of any kinds, all or none. The body is an object
// with lists of documents in sbds, sbis, ebs, prjs and notes; the answer has the same
// shape and contains the stored documents. Like Store, it is not retried.
func (c *Client) StoreSeveral(ctx context.Context, body []byte) ([]byte, error) {
	return content(c.do(ctx, request{method: http.MethodPut, path: api + "/", body: body}))
}

// Create stores a new entity under an identifier that the archive chooses.
// Sending the same body with the same key again creates nothing new. If the key
// is empty, the call makes one for its own retries.
func (c *Client) Create(ctx context.Context, kind oda.Kind, body []byte, key string) (*Document, error) {
	return document(kind)(c.write(ctx, http.MethodPost, "/"+kind.Collection(), body, key))
}

// CreateBlock creates an ExecutionBlock without records. The body may be nil,
// or an object whose members are kept. The key works as in Create.
func (c *Client) CreateBlock(ctx context.Context, body []byte, key string) (*Document, error) {
	return document(oda.ExecutionBlock)(c.write(ctx, http.MethodPost, "/ebs/create", body, key))
}

func path(kind oda.Kind, id string) string { return "/" + kind.Collection() + "/" + url.PathEscape(id) }

// document parses a reply that is an entity, or passes the error on.
func document(kind oda.Kind) func(*reply, error) (*Document, error) {
	return func(r *reply, err error) (*Document, error) {
		if err != nil {
			return nil, err
		}
		d := &Document{Kind: kind, Body: r.body, ETag: plain(r.header.Get("ETag"))}
		if err := d.scan(); err != nil {
			return nil, garbled(r, err)
		}
		return d, nil
	}
}

// plain removes what a compressed answer adds to an entity tag, so that each
// state has one tag.
func plain(etag string) string {
	for _, suffix := range []string{`-gzip"`, `-zstd"`} {
		if rest, ok := strings.CutSuffix(etag, suffix); ok {
			return rest + `"`
		}
	}
	return etag
}

// scan finds the identifier and the metadata, and skips the rest. It compares
// names exactly, which decoding into a struct would not.
func (d *Document) scan() error {
	decoder := json.NewDecoder(bytes.NewReader(d.Body))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return errors.New("it is not a JSON object")
	}
	var metadata json.RawMessage
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		var into any = new(skipped)
		switch name {
		case d.Kind.IDField():
			into = &d.ID
		case "metadata":
			into = &metadata
		}
		if err := decoder.Decode(into); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return err
	}
	if d.ID == "" {
		return fmt.Errorf("it has no %s", d.Kind.IDField())
	}
	var err error
	d.Metadata, err = oda.ReadMetadata(metadata)
	return err
}

// skipped accepts any value and keeps nothing.
type skipped struct{}

func (*skipped) UnmarshalJSON([]byte) error { return nil }
