package work

import (
	"context"
	"fmt"
	"time"

	"oda/bench/measure"
	"oda/bench/peers"
	"oda/bench/report"
)

// Scale is what a generated archive of many records showed. It is kept beside
// the report, since it is measured by a run of its own.
type Scale struct {
	Quick   bool           `json:"quick"`
	Started time.Time      `json:"started"`
	Engines []EngineScale  `json:"engines"`
	Section report.Section `json:"section"`
}

// EngineScale is what it showed on one engine.
type EngineScale struct {
	Engine  string `json:"engine"`
	Records int    `json:"records"`
	Blocks  int    `json:"blocks"`
	// Payload is the bytes of the records as they were sent, without keys.
	Payload int64 `json:"payload_bytes"`
	// Tenths are the records in a second, for each tenth of the filling.
	Tenths []float64 `json:"records_per_second_by_tenth"`
	// Stored is what the archive has on disk, Parts where: bytes of each
	// table and index.
	Stored int64            `json:"stored_bytes"`
	Parts  map[string]int64 `json:"parts_bytes"`
	// Written is what the process or cluster wrote while it was filled; Log is
	// the part of it that went to PostgreSQL's write-ahead log.
	Written int64 `json:"written_bytes"`
	Log     int64 `json:"log_bytes,omitempty"`
	// Costs compares each operation on this archive with an empty one: cost
	// divided by cost, measured in turn.
	Costs map[string]measure.Spread `json:"cost_of_empty"`
	// Start is the seconds from start to ready, StartEmpty those on an empty
	// archive.
	Start      measure.Spread `json:"start_seconds"`
	StartEmpty measure.Spread `json:"start_empty_seconds"`
}

// RunScale fills an archive with records on each engine, one after the other,
// and measures what that costs.
func RunScale(ctx context.Context, o Options) (*Scale, error) {
	p := full()
	if o.Quick {
		p = quick()
	}
	result := &report.Result{Started: time.Now().UTC()}
	scale := &Scale{Quick: o.Quick, Started: result.Started}
	err := inLab(ctx, o, result, func(lab *peers.Lab) error {
		s := newStage(p, lab, o.Progress, "scale")
		s.begin("scale", fmt.Sprintf("An archive of %s records", thousands(p.scaleRecords)))
		for _, name := range []string{onSQLite, onPostgres} {
			e, err := s.scaleOn(ctx, name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			scale.Engines = append(scale.Engines, *e)
		}
		s.presentScale(scale.Engines)
		scale.Section = *s.section
		return nil
	})
	return scale, err
}

// scaleOn does all on one engine, and removes the archive afterwards.
func (s *stage) scaleOn(ctx context.Context, name string) (result *EngineScale, err error) {
	inner := newStage(s.plan, s.lab, s.progress, s.name)
	inner.begin(s.section.ID, s.section.Title)
	defer func() {
		s.section.Series = append(s.section.Series, inner.section.Series...)
		s.section.Text = append(s.section.Text, inner.section.Text...)
		if ended := inner.end(); err == nil {
			err = ended
		}
	}()
	begin := inner.sqlite
	if name == onPostgres {
		begin = inner.postgres
	}
	e, err := begin(ctx, "scale")
	if err != nil {
		return nil, err
	}
	empty, err := begin(ctx, "scale-empty")
	if err != nil {
		return nil, err
	}
	result = &EngineScale{Engine: e.label}
	blocks := inner.scaleBlocks()
	result.Blocks = len(blocks)
	if err := inner.scaleFill(ctx, e, blocks, result); err != nil {
		return nil, err
	}
	stored, err := storedBytes(ctx, e)
	if err != nil {
		return nil, err
	}
	result.Stored = int64(stored)
	inner.say("  look where the bytes are")
	if result.Parts, err = storedParts(ctx, e); err != nil {
		return nil, err
	}
	if err := inner.scaleCompare(ctx, e, empty, blocks, result); err != nil {
		return nil, err
	}
	return result, inner.scaleStart(ctx, e, empty, result)
}

// scaleStart times starts on the large and on the empty archive, in turn.
func (s *stage) scaleStart(ctx context.Context, e, empty *engine, result *EngineScale) error {
	var times [2][]float64
	for range s.plan.listings {
		for n, which := range []*engine{empty, e} {
			took, err := s.restart(ctx, which)
			if err != nil {
				return err
			}
			times[n] = append(times[n], took.Seconds())
		}
	}
	result.StartEmpty, result.Start = measure.SpreadOf(times[0]), measure.SpreadOf(times[1])
	return nil
}
