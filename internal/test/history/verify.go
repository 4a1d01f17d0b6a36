package history

import (
	"context"
	"fmt"
)

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
