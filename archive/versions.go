package archive

import (
	"context"
	"math"
	"strconv"

	"oda"
)

// VersionPage is a page of the versions of an entity, newest first.
type VersionPage struct {
	Versions []oda.VersionInfo
	More     bool // there are older ones
}

// Versions returns a page of the versions of an entity, newest first: those
// before the given one, or the newest if before is 0.
func (a *Archive) Versions(ctx context.Context, ref oda.Ref, before int64, limit int) (VersionPage, error) {
	if !oda.ValidID(ref.ID) {
		return VersionPage{}, oda.Missing(ref)
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
func (a *Archive) VersionInfo(ctx context.Context, ref oda.Ref, version int64) (oda.VersionInfo, error) {
	before := version + 1
	if version == 0 || version == math.MaxInt64 {
		before = math.MaxInt64
	}
	page, err := a.Versions(ctx, ref, before, 1)
	if err != nil {
		return oda.VersionInfo{}, err
	}
	if version != 0 && page.Versions[0].Metadata.Version != version {
		return oda.VersionInfo{}, oda.MissingVersion(ref, version)
	}
	return page.Versions[0], nil
}

// Cursor returns the cursor of the page after this one.
func (p VersionPage) Cursor(ref oda.Ref) string {
	return oda.CountedCursor(ref, oda.OfVersions, p.Versions[len(p.Versions)-1].Metadata.Version)
}

// Version returns a version of an entity as it last was while it was current.
func (a *Archive) Version(ctx context.Context, ref oda.Ref, version int64) (*oda.Entity, error) {
	if !oda.ValidID(ref.ID) || version < 1 {
		return nil, oda.MissingVersion(ref, version)
	}
	return a.engine.Version(ctx, ref, version)
}

// ParseVersion parses the number of a version. A text that is not a number names
// a version that is not in the archive.
func ParseVersion(ref oda.Ref, text string) (int64, error) {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(version, 10) != text {
		return 0, oda.Errorf(oda.NotFound, "Version %s of %s could not be found among the %s: versions are numbers, from 1.",
			oda.Clip(text), oda.Clip(ref.ID), ref.Kind.Collection())
	}
	return version, nil
}

// AsOf returns an entity as it was at an instant.
func (a *Archive) AsOf(ctx context.Context, ref oda.Ref, at oda.Instant) (*oda.Entity, error) {
	if !oda.ValidID(ref.ID) {
		return nil, oda.Missing(ref)
	}
	return a.engine.AsOf(ctx, ref, at)
}
