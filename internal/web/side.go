package web

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"oda"
	"oda/archive"
	"oda/summary"
)

// side is one of the two states that are compared.
type side struct {
	oda.Ref
	oda.VersionInfo
	Name    string
	Current bool
	Status  oda.Standing // of the entity, whatever the version
	Href    string
}

// address names a side in the address of a comparison.
func (s *side) address() string {
	return sideAddress(s.Ref, s.Metadata.Version)
}

func sideAddress(ref oda.Ref, version int64) string {
	return ref.Kind.Collection() + "/" + ref.ID + "@" + strconv.FormatInt(version, 10)
}

// named is a side as a person names it.
type named struct {
	kind    oda.Kind // 0 if it is not said
	id      string   // empty: that of the other side
	version string   // empty if it is not said
}

// readSide reads what a person wrote: an identifier, perhaps with its collection before
// it and a version after it; @ and a version; or the address of a page.
func readSide(text string) named {
	var n named
	parts, params, _ := readAddress(text)
	if len(parts) == 0 {
		return n
	}
	n.id, n.version = parts[len(parts)-1], params.Get("version")
	for i, part := range parts[:len(parts)-1] {
		kind, ok := oda.KindOf(part)
		if !ok {
			continue
		}
		n.kind, n.id = kind, parts[i+1]
		if len(parts) > i+3 && parts[i+2] == "versions" {
			n.version = parts[i+3]
		}
	}
	if id, version, ok := strings.Cut(n.id, "@"); ok {
		n.id, n.version = id, version
	}
	return n
}

// find finds what a person named. Other is the side that it is compared with, nil
// if that is not known yet.
func (s *Site) find(ctx context.Context, n named, other *side) (*side, error) {
	ref := oda.Ref{Kind: n.kind, ID: n.id}
	switch {
	case n.id == "" && other != nil:
		ref = other.Ref
	case n.kind == 0:
		refs, err := s.identified(ctx, n.id)
		if err != nil {
			return nil, err
		}
		if len(refs) == 0 {
			return nil, oda.Errorf(oda.NotFound, "There is nothing with the identifier %q in this archive.", oda.Clip(n.id))
		}
		ref = refs[0]
		for _, r := range refs { // rather two of one kind
			if other != nil && r.Kind == other.Kind {
				ref = r
			}
		}
	}
	version := int64(0)
	if n.version != "" {
		var err error
		if version, err = archive.ParseVersion(ref, n.version); err != nil {
			return nil, err
		}
	}
	return s.side(ctx, ref, version)
}

// side describes a version of an entity, 0 for the current one.
func (s *Site) side(ctx context.Context, ref oda.Ref, version int64) (*side, error) {
	info, err := s.cfg.Archive.VersionInfo(ctx, ref, version)
	if err != nil {
		return nil, err
	}
	found, err := s.cfg.Archive.Look(ctx, []oda.Ref{ref})
	if err != nil {
		return nil, err
	}
	one := &side{Ref: ref, VersionInfo: info, Current: found[0] != nil && found[0].Metadata.Version == info.Metadata.Version}
	if found[0] != nil {
		one.Status = found[0].Standing
	}
	if one.Current {
		err = s.entitle(ctx, one, found[0])
	}
	return one, err
}

// entitle gives a side the name of the entity.
func (s *Site) entitle(ctx context.Context, one *side, found *oda.Found) error {
	titles, err := s.cfg.Names.Of(ctx, []*oda.Found{found})
	if err == nil {
		one.Name = titles[0]
	}
	return err
}

// sideEntity reads a side that is compared, and its name: an older version may have had
// another one.
func (s *Site) sideEntity(ctx context.Context, one *side) (*oda.Entity, error) {
	e, err := s.cfg.Archive.Version(ctx, one.Ref, one.Metadata.Version)
	if err != nil || one.Current {
		return e, err
	}
	about, err := summary.OfEntity(e)
	if err != nil {
		return nil, err
	}
	return e, s.entitle(ctx, one, &oda.Found{Ref: one.Ref, Metadata: e.Metadata, Summary: *about})
}

// Address names the state that the page shows in a comparison.
func (v *entityView) Address() string { return sideAddress(v.Ref, v.Metadata.Version) }

// CompareHref shows what changed in a version.
func (v *entityView) CompareHref(version int64) string {
	return v.Root + "compare" + question(url.Values{"from": {sideAddress(v.Ref, version-1)}, "to": {sideAddress(v.Ref, version)}})
}

// CallsHref compares the calls of the version that the page shows with those of the
// current one.
func (v *entityView) CallsHref() string {
	return v.Root + "compare" + question(url.Values{"from": {v.Address()}, "to": {sideAddress(v.Ref, v.Current)}, "what": {"calls"}})
}
