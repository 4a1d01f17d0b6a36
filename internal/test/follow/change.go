package follow

import (
	"encoding/json"
	"fmt"
	"time"

	"oda"
	"oda/internal/test/load"
)

// step is a unit as a follower sees it.
type step struct {
	load.Unit
	position oda.Position
	block    int64       // for a record or a status: the version of the entity
	at       oda.Instant // for a status
	current  bool
	by       string
	on       oda.Instant   // 0 if the feed does not say: before the last record of a change
	seen     time.Duration // since the beginning of the proof
}

// wireChange is a change in JSON.
type wireChange struct {
	Position int64  `json:"position"`
	Kind     string `json:"kind"`
	ID       string `json:"id"`
	Change   string `json:"change"`
	Version  int64  `json:"version"`
	First    *int64 `json:"first_sequence"`
	Last     *int64 `json:"last_sequence"`
	Sequence *int64 `json:"sequence"`
	Status   string `json:"status"`
	At       string `json:"at"`
	Current  *bool  `json:"current"`
	By       string `json:"by"`
	On       string `json:"on"`
}

// decodeChange decodes a change and takes it apart. The records of a change
// have positions that follow each other.
func decodeChange(text []byte) ([]step, error) {
	var c wireChange
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	kind, known := oda.KindOf(c.Kind)
	on, err := oda.ParseTime(c.On)
	if !known || err != nil || c.ID == "" || c.Version < 1 || c.Position < 1 {
		return nil, fmt.Errorf("this is not a change: %s", text)
	}
	change := oda.Change{
		Position: oda.Position(c.Position), Ref: oda.Ref{Kind: kind, ID: c.ID}, Version: c.Version, By: c.By, On: oda.InstantOf(on),
	}
	switch {
	case c.Change == "status" && c.First == nil && c.Last == nil && c.Sequence != nil && *c.Sequence >= 1 && c.Status != "" && c.Current != nil:
		at, err := oda.ParseTime(c.At)
		if err != nil {
			return nil, fmt.Errorf("this is not a change: %s", text)
		}
		change.Said = &oda.Said{Sequence: *c.Sequence, Text: c.Status, At: oda.InstantOf(at), Current: *c.Current}
	case c.Sequence != nil || c.Current != nil:
		return nil, fmt.Errorf("this is not a change: %s", text)
	case c.Change == "stored" && c.First == nil && c.Last == nil:
	case c.Change == "recorded" && c.First != nil && c.Last != nil && *c.First >= 1 && *c.Last >= *c.First:
		change.FirstSequence, change.LastSequence = *c.First, *c.Last
	default:
		return nil, fmt.Errorf("this is not a change: %s", text)
	}
	return steps(change), nil
}

// steps takes a change apart.
func steps(c oda.Change) []step {
	if s := c.Said; s != nil {
		return []step{{Unit: load.StatusOf(c.Ref, s.Sequence), position: c.Position, block: c.Version, at: s.At, current: s.Current, by: c.By, on: c.On}}
	}
	if c.Stored() {
		return []step{{Unit: load.VersionOf(c.Ref, c.Version), position: c.Position, by: c.By, on: c.On}}
	}
	var all []step
	for sequence := c.FirstSequence; sequence <= c.LastSequence; sequence++ {
		s := step{
			Unit: load.RecordOf(c.Ref, sequence), position: c.Position - oda.Position(c.LastSequence-sequence),
			block: c.Version, by: c.By,
		}
		if sequence == c.LastSequence {
			s.on = c.On
		}
		all = append(all, s)
	}
	return all
}
