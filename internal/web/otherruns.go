package web

import (
	"context"
	"net/url"
	"slices"

	"oda"
	"oda/search"
)

// otherRun is another run of the SBDefinition that a block is of.
type otherRun struct {
	oda.Ref
	Began  string
	Status oda.Standing
	Href   string // of the comparison with it: from the older to the newer one

	version int64
	created oda.Instant
}

// Bounds of the search for other runs.
const (
	lookedRuns = 20 // blocks, and as many instances
	shownOther = 3  // runs to compare with
)

// otherRuns finds the newest blocks of the SBDefinition that a block is of, without itself.
func (s *Site) otherRuns(ctx context.Context, block *oda.Found) ([]otherRun, error) {
	ran, err := s.cfg.Names.Ran(ctx, []*oda.Found{block})
	if err != nil || ran[0].ID == "" {
		return nil, err
	}
	var refs []oda.Ref
	for _, kind := range []oda.Kind{oda.ExecutionBlock, oda.SBInstance} {
		page, err := s.cfg.Searcher.Search(ctx, search.Search{Kind: kind, Reference: ran[0].ID, Limit: lookedRuns})
		if err != nil {
			return nil, err
		}
		for _, one := range page.Items {
			refs = append(refs, one.Ref)
			for _, r := range one.Summary.References { // a block may be named by its instance alone
				refs = append(refs, oda.Ref{Kind: r.Kind, ID: r.ID})
			}
		}
	}
	slices.SortFunc(refs, oda.Ref.Compare)
	refs = slices.DeleteFunc(slices.Compact(refs), func(r oda.Ref) bool { return r.Kind != oda.ExecutionBlock || r == block.Ref })
	found, err := s.cfg.Archive.Look(ctx, refs)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(one *oda.Found) bool { return one == nil })
	of, err := s.cfg.Names.Ran(ctx, found)
	if err != nil {
		return nil, err
	}
	var runs []otherRun
	for i, one := range found {
		if of[i].Ref == ran[0].Ref {
			runs = append(runs, otherRun{Ref: one.Ref, Status: one.Standing, version: one.Metadata.Version, created: one.Metadata.CreatedOn})
		}
	}
	slices.SortFunc(runs, func(a, b otherRun) int { return int(min(1, max(-1, b.created-a.created))) })
	return runs, nil
}

// compareRuns finds the runs that the page of a block offers to compare it with.
func (s *Site) compareRuns(ctx context.Context, view *entityView, self *oda.Found) error {
	runs, err := s.otherRuns(ctx, self)
	if err != nil {
		return err
	}
	view.Runs = runs[:min(shownOther, len(runs))]
	for i := range view.Runs {
		r := &view.Runs[i]
		r.Began = s.began(ctx, r.ID)
		from, to := sideAddress(r.Ref, r.version), view.Address()
		if r.created > view.Metadata.CreatedOn {
			from, to = to, from
		}
		r.Href = view.Root + "compare" + question(url.Values{"from": {from}, "to": {to}})
	}
	return nil
}

// besides finds what the only version of an entity is compared with: the last other run of the
// SBDefinition, if it is a block. The sides are in the order in which they were created.
func (s *Site) besides(ctx context.Context, view *compareView) error {
	one, otherwise := view.To, ""
	if one.Kind == oda.ExecutionBlock {
		otherwise = ", and there is no other run of its SBDefinition"
		found, err := s.cfg.Archive.Look(ctx, []oda.Ref{one.Ref})
		if err != nil {
			return err
		}
		runs, err := s.otherRuns(ctx, found[0])
		if err != nil {
			return err
		}
		if len(runs) > 0 {
			view.From, err = s.side(ctx, runs[0].Ref, 0)
			if runs[0].created > one.Metadata.CreatedOn {
				view.From, view.To = one, view.From
			}
			return err
		}
	}
	return oda.Errorf(oda.InvalidQuery, "%s has no version before version 1%s. Name something else to compare it with.", one.ID, otherwise)
}
