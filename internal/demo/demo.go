// Package demo fills an archive with a week that could have been: Projects,
// SBDefinitions in several versions, SBInstances, and ExecutionBlocks with from
// ten to thousands of calls, some of which failed, and what people say about all
// this. It writes over HTTP, as any client does.
//
// Start reading at Fill. A week is planned first (plan.go), without an archive:
// the same seed on the same day plans the same week. Documents are in
// documents.go, the calls of an observation in script.go, and what people say in
// notes.go. Live keeps observing after the week, at a human pace.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"oda"
	"oda/client"
	"oda/internal/rawjson"
	"oda/search"
)

// Options say what to make up.
type Options struct {
	Seed    uint64
	Now     time.Time // when the week ends
	Longest int       // calls of the longest block

	// Progress is told what has been done, in a few words. It may be nil.
	Progress func(text string)
}

// Bounds of the longest block.
const (
	MinLongest     = 10
	MaxLongest     = 100_000
	DefaultLongest = 5000
)

// Done counts what was stored.
type Done struct {
	Projects, Definitions, Versions, Instances, Blocks, Calls, Failures, Statuses, Notes int
}

// String is a sentence for a person.
func (d Done) String() string {
	return fmt.Sprintf("%d Projects, %d SBDefinitions in %d versions, %d SBInstances, %d ExecutionBlocks with %d calls, %d of which failed, %d statuses, and %d notes",
		d.Projects, d.Definitions, d.Versions, d.Instances, d.Blocks, d.Calls, d.Failures, d.Statuses, d.Notes)
}

// ErrPresent says that the archive has the week of this seed, or a part of it.
var ErrPresent = errors.New("the archive has this week already")

// Empty reports whether an archive has no entities.
func Empty(ctx context.Context, archive *client.Client) (bool, error) {
	for _, kind := range oda.Kinds {
		for _, err := range archive.SearchIDs(ctx, search.Search{Kind: kind, Limit: 1}) {
			return false, err
		}
	}
	return true, nil
}

// Fill stores a week. Acting returns the archive for an acting user.
func Fill(ctx context.Context, acting func(user string) (*client.Client, error), o Options) (Done, error) {
	f := filler{acting: acting, clients: map[string]*client.Client{}, tell: o.Progress}
	if f.tell == nil {
		f.tell = func(string) {}
	}
	week := newPlan(o)
	archive, err := f.as(scheduler)
	if err != nil {
		return Done{}, err
	}
	_, err = archive.Get(ctx, oda.SBDefinition, week.definitions[0].ID)
	switch {
	case err == nil:
		return Done{}, ErrPresent
	case oda.CodeOf(err) != oda.NotFound:
		return Done{}, err
	}
	for _, step := range []func(context.Context, *plan) error{f.projects, f.definitions, f.observations, f.notes} {
		if err := step(ctx, week); err != nil {
			return f.done, err
		}
	}
	return f.done, nil
}

// filler stores a plan, step by step.
type filler struct {
	acting  func(user string) (*client.Client, error)
	clients map[string]*client.Client
	tell    func(string)
	done    Done
}

// as returns the archive for an acting user.
func (f *filler) as(user string) (*client.Client, error) {
	if c := f.clients[user]; c != nil {
		return c, nil
	}
	c, err := f.acting(user)
	if err != nil {
		return nil, err
	}
	f.clients[user] = c
	return c, nil
}

func (f *filler) projects(ctx context.Context, week *plan) error {
	batch := storing[*project]{kind: oda.Project}
	for i := range week.projects {
		batch.add(scheduler, &week.projects[i])
	}
	if err := batch.send(ctx, f); err != nil {
		return err
	}
	f.done.Projects = batch.size
	f.tell(fmt.Sprintf("%d Projects", f.done.Projects))
	return nil
}

// definitions stores the SBDefinitions, and then version after version of those
// that were changed.
func (f *filler) definitions(ctx context.Context, week *plan) error {
	f.done.Definitions = len(week.definitions)
	for version := 1; ; version++ {
		batch := storing[*definition]{kind: oda.SBDefinition}
		for i := range week.definitions {
			d := &week.definitions[i]
			if version == 1 {
				batch.add(scheduler, d)
			} else if version-2 < len(d.edits) {
				d.edits[version-2].change(d)
				batch.add(d.edits[version-2].by, d)
			}
		}
		if len(batch.of) == 0 {
			f.tell(fmt.Sprintf("%d SBDefinitions in %d versions", f.done.Definitions, f.done.Versions))
			return nil
		}
		if err := batch.send(ctx, f); err != nil {
			return err
		}
		f.done.Versions += batch.size
	}
}

// batchRecords is how many records are sent at once.
const batchRecords = 2000

// observations stores the observations one after the other, in the order in
// which they were made: what is newest in the archive was made last.
func (f *filler) observations(ctx context.Context, week *plan) error {
	last := time.Now()
	for i := range week.observations {
		if err := f.observation(ctx, &week.observations[i]); err != nil {
			return err
		}
		if time.Since(last) > time.Second {
			f.tell(fmt.Sprintf("%d of %d ExecutionBlocks", f.done.Blocks, len(week.observations)))
			last = time.Now()
		}
	}
	f.tell(fmt.Sprintf("%d SBInstances, and as many ExecutionBlocks with %d calls", f.done.Blocks, f.done.Calls))
	return nil
}

// observation stores an SBInstance and the block with its calls, and says what came of
// both.
func (f *filler) observation(ctx context.Context, o *observation) error {
	planned, err := f.as(scheduler)
	if err != nil {
		return err
	}
	archive, err := f.as(o.operator())
	if err != nil {
		return err
	}
	if _, err := planned.Store(ctx, oda.SBInstance, o.instance.ID, encode(o.instance)); err != nil {
		return err
	}
	if _, err := archive.Store(ctx, oda.ExecutionBlock, o.block.ID, encode(o.block)); err != nil {
		return err
	}
	for some := range slices.Chunk(o.calls, batchRecords) {
		records := make([]oda.NewRecord, len(some))
		for i := range some {
			records[i].Text = encode(some[i])
		}
		if _, err := archive.RecordBatch(ctx, o.block.ID, records); err != nil {
			return err
		}
	}
	if err := f.say(ctx, archive, o); err != nil {
		return err
	}
	f.done.Instances++
	f.done.Blocks++
	f.done.Calls += len(o.calls)
	f.done.Failures += o.failures()
	return nil
}

// say says what became of an observation, when it was so.
func (f *filler) say(ctx context.Context, archive *client.Client, o *observation) error {
	blockEnd, instanceEnd, reason := o.outcome()
	for _, one := range []struct {
		ref oda.Ref
		end string
	}{
		{oda.Ref{Kind: oda.ExecutionBlock, ID: o.block.ID}, blockEnd},
		{oda.Ref{Kind: oda.SBInstance, ID: o.instance.ID}, instanceEnd},
	} {
		says := []client.NewStatus{{Status: "Executing", At: o.begin}}
		if one.end != "" {
			says = append(says, client.NewStatus{Status: one.end, Reason: reason, At: o.end()})
		}
		for _, say := range says {
			if _, err := archive.Say(ctx, one.ref, say); err != nil {
				return err
			}
			f.done.Statuses++
		}
	}
	return nil
}

// stored is a document that the archive keeps.
type stored interface{ meta() *json.RawMessage }

// storing is documents of one kind that are stored together, by user.
type storing[D stored] struct {
	kind oda.Kind
	of   map[string][]D
	size int
}

func (s *storing[D]) add(user string, d D) {
	if s.of == nil {
		s.of = make(map[string][]D)
	}
	s.of[user] = append(s.of[user], d)
	s.size++
}

// send stores the documents, and keeps their metadata for the next version.
func (s *storing[D]) send(ctx context.Context, f *filler) error {
	for _, user := range slices.Sorted(maps.Keys(s.of)) {
		archive, err := f.as(user)
		if err != nil {
			return err
		}
		answer, err := archive.StoreSeveral(ctx, encode(map[string][]D{s.kind.Collection(): s.of[user]}))
		if err != nil {
			return err
		}
		var kept map[string][]struct {
			Metadata json.RawMessage `json:"metadata"`
		}
		if err := json.Unmarshal(answer, &kept); err != nil {
			return fmt.Errorf("read what the archive has stored: %w", err)
		}
		for i, d := range s.of[user] {
			*d.meta() = kept[s.kind.Collection()][i].Metadata
		}
	}
	return nil
}

// encode writes a document of this package, which can always be written.
func encode(document any) []byte {
	text, err := rawjson.Marshal(document) // the values of a telescope are full of <
	if err != nil {
		panic("demo: a document cannot be written: " + err.Error())
	}
	return text
}
