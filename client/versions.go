package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"oda"
)

// Versions returns what is known of the versions of an entity, newest first. It
// reads page by page while the caller continues, and ends after an error.
// Unknown: oda.NotFound.
func (c *Client) Versions(ctx context.Context, kind oda.Kind, id string) iter.Seq2[oda.VersionInfo, error] {
	return newestFirst(oda.MaxVersions, func(values url.Values) ([]oda.VersionInfo, *reply, error) {
		return c.versions(ctx, kind, id, values)
	})
}

// newestFirst reads one of the lists of an entity that begin with what is newest.
func newestFirst[T any](limit int, read func(url.Values) ([]T, *reply, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for values := (url.Values{"limit": {strconv.Itoa(limit)}}); values != nil; {
			page, r, err := read(values)
			if err == nil {
				values, err = next(r, values)
			}
			if err == nil && values != nil && len(page) == 0 {
				err = garbled(r, errors.New("it has nothing and says there is more"))
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, one := range page {
				if !yield(one, nil) {
					return
				}
			}
		}
	}
}

func (c *Client) versions(ctx context.Context, kind oda.Kind, id string, values url.Values) ([]oda.VersionInfo, *reply, error) {
	var in struct {
		Versions []json.RawMessage `json:"versions"`
	}
	r, err := c.readJSON(ctx, path(kind, id)+"/versions?"+values.Encode(), &in)
	if err != nil {
		return nil, nil, err
	}
	page := make([]oda.VersionInfo, len(in.Versions))
	for i, one := range in.Versions {
		v := &page[i]
		if v.Metadata, err = oda.ReadMetadata(one); err != nil {
			return nil, nil, garbled(r, err)
		}
		var holds struct{ Bytes, Records *int64 }
		if err := json.Unmarshal(one, &holds); err != nil {
			return nil, nil, garbled(r, err)
		}
		if holds.Bytes == nil {
			return nil, nil, garbled(r, errors.New("a version has no bytes"))
		}
		v.Bytes = *holds.Bytes
		if v.Listed = holds.Records != nil; v.Listed {
			v.Records = *holds.Records
		}
	}
	return page, r, nil
}

// Version reads a version of an entity as it last was while it was current.
// Unknown: oda.NotFound.
func (c *Client) Version(ctx context.Context, kind oda.Kind, id string, version int64) (*Document, error) {
	return document(kind)(c.read(ctx, fmt.Sprintf("%s/versions/%d", path(kind, id), version), nil))
}

// AsOf reads an entity as it was at a time. Before its first store:
// oda.NotFound.
func (c *Client) AsOf(ctx context.Context, kind oda.Kind, id string, at time.Time) (*Document, error) {
	query := url.Values{"at": {at.UTC().Format(time.RFC3339Nano)}}
	return document(kind)(c.read(ctx, path(kind, id)+"?"+query.Encode(), nil))
}

// Diff returns the JSON Patch (RFC 6902) that turns one version of an entity
// into another. Without to, which is then 0, that is the current version;
// without from it is the version before it. If both together are too large:
// oda.DiffTooLarge.
func (c *Client) Diff(ctx context.Context, kind oda.Kind, id string, from, to int64) ([]byte, error) {
	return c.diff(ctx, kind, id, from, to, "application/json-patch+json")
}

// DiffText is Diff for people: a unified diff of both versions with one value per
// line, without the managed fields.
func (c *Client) DiffText(ctx context.Context, kind oda.Kind, id string, from, to int64) (string, error) {
	text, err := c.diff(ctx, kind, id, from, to, "text/plain")
	return string(text), err
}

func (c *Client) diff(ctx context.Context, kind oda.Kind, id string, from, to int64, media string) ([]byte, error) {
	place, before := path(kind, id)+"/diff", "?"
	for name, version := range map[string]int64{"from": from, "to": to} {
		if version != 0 {
			place += fmt.Sprintf("%s%s=%d", before, name, version)
			before = "&"
		}
	}
	return content(c.read(ctx, place, http.Header{"Accept": {media}}))
}
