package demo_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"oda"
	"oda/client"
	"oda/internal/demo"
	"oda/internal/test/env"
	"oda/search"
)

// acting returns clients of an archive, whose requests are checked against the
// API description.
func acting(a *env.Archive) func(user string) (*client.Client, error) {
	return func(user string) (*client.Client, error) {
		return client.New(a.URL(), client.WithUser(user), client.WithHTTPClient(a.Client()))
	}
}

func TestFillStoresAWeek(t *testing.T) {
	a := env.Start(t)
	archive, err := acting(a)("")
	if err != nil {
		t.Fatal(err)
	}
	empty := func() bool {
		t.Helper()
		empty, err := demo.Empty(t.Context(), archive)
		if err != nil {
			t.Fatal(err)
		}
		return empty
	}
	if !empty() {
		t.Error("a new archive is not empty")
	}
	var told []string
	options := demo.Options{
		Seed: 1, Now: time.Date(2026, 3, 10, 21, 0, 0, 0, time.UTC), Longest: 600,
		Progress: func(text string) { told = append(told, text) },
	}
	done, err := demo.Fill(t.Context(), acting(a), options)
	if err != nil {
		t.Fatal(err)
	}
	if empty() {
		t.Error("a filled archive is empty")
	}
	if len(told) < 3 {
		t.Errorf("it tells only %q", told)
	}

	stored := map[oda.Kind]int{}
	versions, resolved, project := 0, 0, ""
	for _, kind := range oda.Kinds {
		for found, err := range archive.Search(t.Context(), search.Search{Kind: kind, Limit: 100}) {
			if err != nil {
				t.Fatal(err)
			}
			stored[kind]++
			if kind == oda.SBDefinition {
				versions += int(found.Metadata.Version)
			}
			if kind == oda.Project {
				project = found.ID
			}
			if kind == oda.Note && found.Standing.Class == oda.ClassDone {
				resolved++
			}
		}
	}
	want := demo.Done{
		Projects: stored[oda.Project], Definitions: stored[oda.SBDefinition], Versions: versions,
		Instances: stored[oda.SBInstance], Blocks: stored[oda.ExecutionBlock], Calls: done.Calls, Failures: done.Failures, Statuses: done.Statuses, Notes: stored[oda.Note],
	}
	if done != want {
		t.Errorf("stored are %v, want %v", done, want)
	}

	// The references hang together: from a Project one reaches the blocks.
	provenance, err := archive.Provenance(t.Context(), oda.Project, project)
	if err != nil {
		t.Fatal(err)
	}
	reached := map[oda.Kind]int{}
	for _, node := range provenance.Nodes {
		reached[node.Kind]++
		if !node.Exists {
			t.Errorf("%v is referred to and not stored", node.Ref)
		}
	}
	for _, kind := range oda.Kinds {
		if reached[kind] == 0 {
			t.Errorf("no %v is reached from the Project %s", kind, project)
		}
	}

	// The calls are those of the nights.
	calls, failures := int64(0), int64(0)
	for day := range 9 {
		night, err := archive.Night(t.Context(), client.Night{Date: options.Now.AddDate(0, 0, -day).Format(time.DateOnly)})
		if err != nil {
			t.Fatal(err)
		}
		calls += night.Calls
		failures += night.Failures
	}
	if calls != int64(done.Calls) || failures != int64(done.Failures) || failures == 0 {
		t.Errorf("the nights have %d calls and %d failures, want %d and %d", calls, failures, done.Calls, done.Failures)
	}

	// What came of the blocks is said of each, and most were observed.
	ended := map[oda.Class]int{}
	for found, err := range archive.Search(t.Context(), search.Search{Kind: oda.ExecutionBlock}) {
		if err != nil {
			t.Fatal(err)
		}
		ended[found.Standing.Class]++
	}
	if ended[oda.ClassStopped] != 1 || ended[oda.ClassFailed] == 0 || ended[oda.ClassRunning] == 0 || ended[oda.ClassDone] < done.Blocks*3/4 {
		t.Errorf("the classes of %d blocks are %v", done.Blocks, ended)
	}
	// Of a block and its instance: when it began, and how it ended.
	if want := 4*done.Blocks - 2*ended[oda.ClassRunning] + resolved; done.Statuses != want || resolved == 0 {
		t.Errorf("%d statuses were said, want %d", done.Statuses, want)
	}

	if _, err := demo.Fill(t.Context(), acting(a), options); !errors.Is(err, demo.ErrPresent) {
		t.Errorf("the same week is stored again: %v", err)
	}
	options.Seed = 2
	if _, err := demo.Fill(t.Context(), acting(a), options); err != nil {
		t.Errorf("another week cannot be added: %v", err)
	}
}

func TestLiveRecordsUntilItIsInterrupted(t *testing.T) {
	a := env.Start(t)
	archive, err := acting(a)("")
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	const waits = 100 // more than a block has calls
	waited := 0
	err = demo.Live(ctx, acting(a), demo.Options{Seed: 1, Now: time.Now(), Longest: demo.MinLongest}, func(ctx context.Context, d time.Duration) error {
		if waited++; waited == waits {
			interrupt()
		}
		if d <= 0 || d > time.Minute {
			t.Errorf("it waits for %v", d)
		}
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("it ends with %v", err)
	}
	blocks, records := 0, 0
	for id, err := range archive.SearchIDs(t.Context(), search.Search{Kind: oda.ExecutionBlock}) {
		if err != nil {
			t.Fatal(err)
		}
		blocks++
		for _, err := range archive.Records(t.Context(), id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			records++
		}
	}
	if blocks < 2 || records < waits-blocks-1 {
		t.Errorf("%d records are in %d blocks", records, blocks)
	}
}
