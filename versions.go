package oda

import (
	"context"
	"fmt"
	"math"
	"strconv"
)

// VersionInfo describes a version without its document.
type VersionInfo struct {
	Metadata Metadata // as it last was while the version was current
	Bytes    int64    // of the stored text, without records
	Listed   bool     // the document has a list of records
	Records  int64    // how many records it has
}

// AppendJSON appends the info as a JSON object: the managed fields, the size, and
// the number of records if the document has a list of them.
func (v VersionInfo) AppendJSON(dst []byte) []byte {
	dst = v.Metadata.AppendJSON(dst)
	dst = strconv.AppendInt(append(dst[:len(dst)-1], `,"bytes":`...), v.Bytes, 10)
	if v.Listed {
		dst = strconv.AppendInt(append(dst, `,"records":`...), v.Records, 10)
	}
	return append(dst, '}')
}

// VersionPage is a page of the versions of an entity, newest first.
type VersionPage struct {
	Versions []VersionInfo
	More     bool // there are older ones
}

// MaxVersions is the largest page of versions.
const MaxVersions = 1000

// Versions returns a page of the versions of an entity, newest first: those
// before the given one, or the newest if before is 0.
func (a *Archive) Versions(ctx context.Context, ref Ref, before int64, limit int) (VersionPage, error) {
	if !ValidID(ref.ID) {
		return VersionPage{}, Missing(ref)
	}
	if before == 0 {
		before = math.MaxInt64
	}
	versions, err := a.engine.Versions(ctx, ref, before, limit)
	if err != nil {
		return VersionPage{}, err
	}
	// Versions count from 1, and none is ever missing.
	return VersionPage{versions, versions[len(versions)-1].Metadata.Version > 1}, nil
}

// VersionInfo describes one version; 0 stands for the current one.
func (a *Archive) VersionInfo(ctx context.Context, ref Ref, version int64) (VersionInfo, error) {
	before := version + 1
	if version == 0 || version == math.MaxInt64 {
		before = math.MaxInt64
	}
	page, err := a.Versions(ctx, ref, before, 1)
	if err != nil {
		return VersionInfo{}, err
	}
	if version != 0 && page.Versions[0].Metadata.Version != version {
		return VersionInfo{}, MissingVersion(ref, version)
	}
	return page.Versions[0], nil
}

// versionCursor is what a cursor of versions carries: the entity, and the version
// with which the previous page ended.
type versionCursor struct {
	Collection string `json:"c"`
	ID         string `json:"i"`
	Version    int64  `json:"v"`
}

// Cursor returns the cursor of the page after this one.
func (p VersionPage) Cursor(ref Ref) string {
	return writeCursor(versionCursor{ref.Kind.Collection(), ref.ID, p.Versions[len(p.Versions)-1].Metadata.Version})
}

// ParseVersionCursor returns the version before which a page begins.
func ParseVersionCursor(ref Ref, text string) (before int64, err error) {
	var c versionCursor
	detail := ""
	switch {
	case !readCursor(text, &c) || c.Version < 2:
		detail = wrongCursor
	case c.Collection != ref.Kind.Collection() || c.ID != ref.ID:
		detail = "belongs to another entity; send it with the path it came from"
	default:
		return c.Version, nil
	}
	return 0, &Error{Code: InvalidQuery, Detail: "Invalid query: cursor " + detail + ".", Faults: []Fault{{"query:cursor", detail}}}
}

// Version returns a version of an entity as it last was while it was current.
func (a *Archive) Version(ctx context.Context, ref Ref, version int64) (*Entity, error) {
	if !ValidID(ref.ID) || version < 1 {
		return nil, MissingVersion(ref, version)
	}
	return a.engine.Version(ctx, ref, version)
}

// ParseVersion parses the number of a version. A text that is not a number names
// a version that is not in the archive.
func ParseVersion(ref Ref, text string) (int64, error) {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(version, 10) != text {
		return 0, Errorf(NotFound, "Version %s of %s could not be found among the %s: versions are numbers, from 1.",
			Clip(text), Clip(ref.ID), ref.Kind.Collection())
	}
	return version, nil
}

// MissingVersion returns the error for a version that is not in the archive.
func MissingVersion(ref Ref, version int64) *Error {
	return Errorf(NotFound, "Version %d of %s could not be found among the %s.", version, Clip(ref.ID), ref.Kind.Collection())
}

// AsOf returns an entity as it was at an instant.
func (a *Archive) AsOf(ctx context.Context, ref Ref, at Instant) (*Entity, error) {
	if !ValidID(ref.ID) {
		return nil, Missing(ref)
	}
	return a.engine.AsOf(ctx, ref, at)
}

// MissingAsOf returns the error for an entity that was not yet in the archive at
// an instant, whether it is now or not.
func MissingAsOf(ref Ref, at Instant) *Error {
	return Errorf(NotFound, "The requested identifier %s could not be found among the %s as of %s.", Clip(ref.ID), ref.Kind.Collection(), at)
}

// ParseAsOf parses the instant at which a caller wants to see an entity. It
// rounds a time that is finer than a microsecond down: a change in the next
// microsecond came later.
func ParseAsOf(text string) (Instant, error) {
	t, err := parseQueryTime(text)
	if err != nil {
		return 0, &Error{Code: InvalidQuery, Detail: fmt.Sprintf("Invalid query: at %v.", err), Faults: []Fault{{"query:at", err.Error()}}}
	}
	return InstantOf(t), nil
}
