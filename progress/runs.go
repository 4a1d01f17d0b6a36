package progress

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"oda"
)

// run is a run of an SBDefinition. An instance or block that is not stored is nil.
type run struct {
	instanceID, blockID string // empty: there is none
	instance, block     *oda.Found
	version             int64 // of the SBDefinition; 0: nothing says it
}

// standing returns that of the block if it has one, else that of the instance.
func (r *run) standing() oda.Standing {
	for _, one := range []*oda.Found{r.block, r.instance} {
		if one != nil && one.Standing.Text != "" {
			return one.Standing
		}
	}
	return oda.Standing{}
}

func (r *run) created() oda.Instant {
	for _, one := range []*oda.Found{r.block, r.instance} {
		if one != nil {
			return one.Metadata.CreatedOn
		}
	}
	return 0
}

// runsOf finds the runs of SBDefinitions, those of each in the order of identifiers.
func (f *finder) runsOf(ctx context.Context, ids []string) (map[string][]run, error) {
	l := &ledger{isAsked: map[string]bool{}, instances: map[string]*oda.Found{}, blocks: map[string]*oda.Found{}}
	for _, id := range ids {
		l.isAsked[id] = true
	}
	err := f.ask(ctx, oda.SBInstance, ids, maxRuns, func(i *oda.Found) {
		if l.isAsked[referredTo(i, oda.SBDefinition).ID] {
			l.instances[i.ID] = i
		}
	})
	if err != nil {
		return nil, err
	}
	names := slices.Clone(ids)
	for id := range l.instances {
		names = append(names, id)
	}
	err = f.ask(ctx, oda.ExecutionBlock, names, maxRuns, func(b *oda.Found) {
		if l.isAsked[referredTo(b, oda.SBDefinition).ID] || l.instances[referredTo(b, oda.SBInstance).ID] != nil {
			l.blocks[b.ID] = b
		}
	})
	if err != nil {
		return nil, err
	}
	// The others are named by one that was found.
	if err := f.look(ctx, l.missing(), func(one *oda.Found) {
		if one.Kind == oda.SBInstance {
			l.instances[one.ID] = one
		} else {
			l.blocks[one.ID] = one
		}
	}); err != nil {
		return nil, err
	}
	return l.runs(f, ids), nil
}

// ledger has the instances and blocks around some SBDefinitions, by their identifiers.
type ledger struct {
	isAsked           map[string]bool // by SBDefinition
	instances, blocks map[string]*oda.Found
}

// missing returns what instances and blocks name, and was not found yet.
func (l *ledger) missing() (refs []oda.Ref) {
	isMissing := make(map[oda.Ref]bool)
	note := func(from *oda.Found, to oda.Kind, known map[string]*oda.Found) {
		ref := oda.Ref{Kind: to, ID: referredTo(from, to).ID}
		if ref.ID != "" && known[ref.ID] == nil && !isMissing[ref] {
			isMissing[ref] = true
			refs = append(refs, ref)
		}
	}
	for _, i := range l.instances {
		note(i, oda.ExecutionBlock, l.blocks)
	}
	for _, b := range l.blocks {
		note(b, oda.SBInstance, l.instances)
	}
	slices.SortFunc(refs, oda.Ref.Compare)
	return refs
}

// pair is an instance and a block that belong together: one of them names the other.
type pair struct{ instance, block string }

// runs puts together what belongs together. If there are too many runs, it leaves out
// those of the last SBDefinitions.
func (l *ledger) runs(f *finder, ids []string) map[string][]run {
	pairs := make(map[string]map[pair]bool) // by SBDefinition
	blocksOf := make(map[string][]string)   // of an instance
	add := func(id string, p pair) {
		if pairs[id] == nil {
			pairs[id] = make(map[pair]bool)
		}
		pairs[id][p] = true
	}
	for id, b := range l.blocks {
		if instance := referredTo(b, oda.SBInstance).ID; instance != "" {
			blocksOf[instance] = append(blocksOf[instance], id)
		}
	}
	isTaken := make(map[pair]bool) // by an instance of the SBDefinition, which comes first
	for id, i := range l.instances {
		definition := referredTo(i, oda.SBDefinition).ID
		if !l.isAsked[definition] {
			continue
		}
		blocks := blocksOf[id]
		if block := referredTo(i, oda.ExecutionBlock).ID; block != "" {
			blocks = append(slices.Clip(blocks), block)
		}
		if len(blocks) == 0 {
			add(definition, pair{instance: id})
		}
		for _, block := range blocks {
			add(definition, pair{id, block})
			isTaken[pair{definition, block}] = true
		}
	}
	for id, b := range l.blocks {
		definition := referredTo(b, oda.SBDefinition).ID
		if l.isAsked[definition] && !isTaken[pair{definition, id}] {
			add(definition, pair{referredTo(b, oda.SBInstance).ID, id})
		}
	}
	all := make(map[string][]run)
	left := maxRuns
	for _, id := range ids {
		for p := range pairs[id] {
			all[id] = append(all[id], l.run(id, p))
		}
		slices.SortFunc(all[id], func(a, b run) int {
			return cmp.Or(strings.Compare(a.instanceID, b.instanceID), strings.Compare(a.blockID, b.blockID))
		})
		if len(all[id]) > left && !f.unbounded {
			all[id], f.truncated = all[id][:left], true
		}
		left -= len(all[id])
	}
	return all
}

// run returns the run of an SBDefinition that a pair is.
func (l *ledger) run(definition string, p pair) run {
	one := run{instanceID: p.instance, blockID: p.block, instance: l.instances[p.instance], block: l.blocks[p.block]}
	for _, from := range []*oda.Found{one.block, one.instance} {
		if from == nil || one.version > 0 {
			continue
		}
		if r := referredTo(from, oda.SBDefinition); r.ID == definition {
			one.version = r.Version
		}
	}
	return one
}

// referredTo returns the reference of an instance or block to an entity of a kind. It has no
// identifier if there is none.
func referredTo(from *oda.Found, to oda.Kind) oda.Reference {
	for _, r := range from.Summary.References {
		if r.Kind == to {
			return r
		}
	}
	return oda.Reference{}
}

// Observed returns those of some SBDefinitions that were observed: a run of theirs is done.
func Observed(ctx context.Context, in oda.Finder, ids []string) (map[string]bool, error) {
	f := &finder{Finder: in, unbounded: true}
	runs, err := f.runsOf(ctx, ids)
	observed := make(map[string]bool)
	for id, some := range runs {
		observed[id] = slices.ContainsFunc(some, func(r run) bool { return r.standing().Class == oda.ClassDone })
	}
	return observed, err
}
