package httpapi

import (
	"errors"
	"fmt"
	"net/url"

	"oda"
	"oda/archive"
	"oda/internal/content"
	"oda/internal/jsondiff"
)

// versionsDefault is the default length of a page of versions.
const versionsDefault = 100

// listVersions answers with a page of the versions of an entity, without their
// documents.
func (a *API) listVersions(c *call) error {
	limit, before, err := c.countedPage(oda.OfVersions, versionsDefault)
	if err != nil {
		return err
	}
	page, err := a.cfg.Archive.Versions(c.r.Context(), c.ref(), before, int(limit))
	if err != nil {
		return err
	}
	out := append(make([]byte, 0, 32+256*len(page.Versions)), `{"versions":[`...)
	for i, v := range page.Versions {
		if i > 0 {
			out = append(out, ',')
		}
		out = v.AppendJSON(out)
	}
	if page.More {
		c.head("Link", fmt.Sprintf(`<versions?cursor=%s&limit=%d>; rel="next"`, url.QueryEscape(page.Cursor(c.ref())), limit))
	}
	return c.sendError(c.respond("application/json", "", held).whole(append(out, ']', '}')))
}

// countedPage returns what the request says about a page of one of the lists of an entity
// that are read from their end: its length, and the number before which it begins, 0 for
// the end.
func (c *call) countedPage(of string, length int64) (limit, before int64, err error) {
	if limit, err = c.integer("limit", length); err != nil {
		return 0, 0, err
	}
	cursor, err := c.one("cursor")
	if err != nil || cursor == "" {
		return limit, 0, err
	}
	before, err = oda.ParseCountedCursor(c.ref(), of, cursor)
	return limit, before, err
}

// getVersion answers with one version of an entity.
func (a *API) getVersion(c *call) error {
	version, err := archive.ParseVersion(c.ref(), c.r.PathValue("version"))
	if err != nil {
		return err
	}
	e, err := a.cfg.Archive.Version(c.work(), c.ref(), version)
	if err != nil {
		return err
	}
	return c.read(e)
}

// getAsOf answers with an entity as it was at a time.
func (a *API) getAsOf(c *call, at string) error {
	instant, err := oda.ParseAsOf(at)
	if err != nil {
		return err
	}
	e, err := a.cfg.Archive.AsOf(c.work(), c.ref(), instant)
	if err != nil {
		return err
	}
	return c.read(e)
}

// The media types of a comparison.
const (
	jsonPatch = "application/json-patch+json"
	plainText = "text/plain"
)

// diffRoom returns roughly how much memory a comparison takes besides the
// documents.
func diffRoom(documents int) int64 { return min(12*int64(documents), 96<<20) }

// diff answers with the differences between two versions of an entity.
func (a *API) diff(c *call) error {
	from, err := c.integer("from", 0)
	if err != nil {
		return err
	}
	to, err := c.integer("to", 0)
	if err != nil {
		return err
	}
	d, err := a.cfg.Archive.Diff(c.work(), c.ref(), from, to)
	if err != nil {
		return err
	}
	room := func(n int64) error { return c.Take(c.work(), n) }
	older, newer, err := d.Documents(room)
	if err != nil {
		return err
	}
	if err := room(diffRoom(len(older) + len(newer))); err != nil {
		return err
	}
	c.accept = true
	if content.Preferred(c.r.Header, jsonPatch, plainText) == jsonPatch {
		patch, err := jsondiff.Patch(c.r.Context(), older, newer)
		if err != nil {
			return err
		}
		c.Give(c.held()) // the documents are not needed any more
		return c.sendError(c.respond(jsonPatch, "", held).whole(patch))
	}
	w := c.respond(plainText+"; charset=utf-8", "", held)
	side := func(e *oda.Entity, text []byte) jsondiff.Side {
		return jsondiff.Side{Text: text, Name: fmt.Sprintf("%s/%s/versions/%d\t%s", e.Kind.Collection(), e.ID, e.Metadata.Version, e.Metadata.LastModifiedOn)}
	}
	err = jsondiff.Unified(w, side(d.From, older), side(d.To, newer), oda.ManagedPointers()...)
	switch {
	case errors.Is(err, jsondiff.ErrTooLong):
		return oda.Errorf(oda.DiffTooLarge, "As text, the differences between these two versions are longer than the limit of %d bytes. "+
			"Ask for a JSON Patch, with Accept: %s, or read both versions and compare them yourself.", jsondiff.MaxUnified, jsonPatch)
	case err != nil:
		return c.sendError(err)
	}
	return c.sendError(w.close())
}
