package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// audit compares what was acknowledged in a game with the final state of every
// entity: every acknowledged write is there, once. It needs no search and
// shares nothing with the model.
func audit(history []operation, finals []response) error {
	var errs []error
	complain := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf(format, args...))
	}
	versions := make(map[[2]int64]string)  // marker by entity and version
	sequences := make(map[[2]int64]string) // marker by entity and sequence
	stores := make(map[int64]int64)        // number of acknowledged and possible stores by entity
	for _, op := range history {
		in, out := op.Request, op.Response
		if in.Action == record && out.Outcome == done {
			at := [2]int64{int64(in.Entity), out.Recorded.Sequence}
			if other, ok := sequences[at]; ok {
				complain("the records %s and %s were both acknowledged as number %d of entity %d", other, in.Marker, at[1], at[0])
			}
			sequences[at] = in.Marker
			if !kept(in, history, finals) {
				complain("the record %s was acknowledged and dropped by nobody, but is not there once at the end", in.Marker)
			}
		}
		for i, p := range in.Puts {
			if out.Outcome == done || out.Outcome == unclear {
				stores[int64(p.Entity)]++
			}
			if out.Outcome != done {
				continue
			}
			at := [2]int64{int64(p.Entity), out.Documents[i].Metadata.Version}
			if other, ok := versions[at]; ok {
				complain("the stores %s and %s were both acknowledged as version %d of entity %d", other, in.Marker, at[1], at[0])
			}
			versions[at] = in.Marker
		}
	}
	for at, marker := range versions {
		final := finals[at[0]]
		if final.Outcome != done || final.Documents[0].Metadata.Version < at[1] {
			complain("the store %s was acknowledged as version %d of entity %d, which is %v at the end", marker, at[1], at[0], final)
		}
	}
	for i, final := range finals {
		if final.Outcome == done && final.Documents[0].Metadata.Version > stores[int64(i)] {
			complain("entity %d is %v at the end, but only %d stores were sent and not refused", i, final, stores[int64(i)])
		}
	}
	return errors.Join(errs...)
}

// kept reports whether an acknowledged record is there once at the end, or a
// store that was not refused left it out.
func kept(in request, history []operation, finals []response) bool {
	final := finals[in.Entity]
	if final.Outcome != done {
		return false
	}
	times := 0
	for _, r := range final.Documents[0].Records {
		if r == in.Marker {
			times++
		}
	}
	if times != 0 {
		return times == 1
	}
	for _, op := range history {
		if op.Response.Outcome != done && op.Response.Outcome != unclear {
			continue
		}
		for _, p := range op.Request.Puts {
			if p.Entity == in.Entity && p.Claim != nil && !p.Keep && !slices.Contains(p.Records, in.Marker) {
				return true
			}
		}
	}
	return false
}

// unclearMarkers returns the markers of the writes that may still take effect.
func unclearMarkers(history []operation) map[string]bool {
	markers := make(map[string]bool)
	for _, op := range history {
		if op.Response.Outcome == unclear && op.Request.writes() {
			markers[op.Request.Marker] = true
		}
	}
	return markers
}

// Verify reads the entities of all games once more, when all faults are over,
// and returns an error if one has changed since the end of its game. Only a
// write that was never answered may take effect late.
func (r *Report) Verify(ctx context.Context) error {
	for _, f := range r.finals {
		f.game.history = nil
		now, err := f.game.final(ctx)
		if err != nil {
			return err
		}
		for i := range now {
			before, after := f.shown[i].String(), now[i].String()
			if before != after && !f.late(f.shown[i], now[i]) {
				return fmt.Errorf("%s was %s at the end of its game, but is %s now", f.game.refs[i].ID, before, after)
			}
		}
	}
	return nil
}

// late reports whether an entity now shows a write that was never answered, and
// that it did not show before.
func (f final) late(before, now response) bool {
	known := firstShown([]operation{{Response: before}})
	for marker := range firstShown([]operation{{Response: now}}) {
		if _, ok := known[marker]; !ok && f.unclear[marker] {
			return true
		}
	}
	return false
}
