package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oda/internal/engine/migrate"
	"oda/internal/test/must"
)

// countingStep returns a step in Go that adds ten rows, two in each part. It calls a
// function of the test before each part is committed.
func countingStep(number int, part func(at int) error) step {
	return step{Number: number, Name: "count", Checksum: "count", Work: func(_ context.Context, c *conn, at string) (migrate.Part, error) {
		i := 0
		if at != "" {
			var err error
			if i, err = strconv.Atoi(at); err != nil {
				return migrate.Part{}, err
			}
		} else if err := c.script("CREATE TABLE counted (n INTEGER PRIMARY KEY) STRICT"); err != nil {
			return migrate.Part{}, err
		}
		for n := i; n < i+2; n++ {
			if err := c.exec("INSERT INTO counted VALUES (?)", int64(n)); err != nil {
				return migrate.Part{}, err
			}
		}
		i += 2
		return migrate.Part{At: strconv.Itoa(i), Done: int64(i), Total: 10, End: i == 10}, part(i)
	}}
}

func TestAStepInGoContinuesWhereItWasCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "archive.db")
	s := open(t, path)
	mustPut(t, s, put(t, "kept", `{}`, 1))
	must.Do(t, s.Close())
	steps := must.Get(schemaSteps())(t)
	next := len(steps) + 1

	var parts []int
	cut := errors.New("the power went off")
	var log bytes.Buffer
	begin := append(steps, countingStep(next, func(at int) error {
		if at == 6 {
			return cut
		}
		parts = append(parts, at)
		return nil
	}))
	if _, err := openWith(t.Context(), path, slog.New(slog.NewTextHandler(&log, nil)), begin); !errors.Is(err, cut) {
		t.Fatalf("the step was cut off, but opening returned %v", err)
	}
	if _, err := Open(t.Context(), path, slog.New(slog.DiscardHandler)); !errors.Is(err, migrate.ErrNewer) {
		t.Errorf("a program that does not know the step got %v", err)
	}

	var told []migrate.Status
	goOn := append(steps, countingStep(next, func(at int) error { parts = append(parts, at); return nil }))
	s, err := openWith(t.Context(), path, slog.New(slog.DiscardHandler), goOn, func(at migrate.Status) { told = append(told, at) })
	must.Do(t, err)
	if got := fmt.Sprint(parts); got != "[2 4 6 8 10]" {
		t.Errorf("the parts end at %s", got)
	}
	if n, err := s.writer.number("SELECT count(*) FROM counted"); err != nil || n != 10 {
		t.Errorf("%d of 10 rows are there, %v", n, err)
	}
	if first := told[0]; first != (migrate.Status{Number: next, Last: next, Name: "count", Done: 4, Total: 10}) {
		t.Errorf("the step continued from %+v", first)
	}
	if text := told[0].String(); !strings.Contains(text, "4 of 10") {
		t.Errorf("the status is %q", text)
	}
	if _, err := s.Get(t.Context(), block("kept")); err != nil {
		t.Error(err)
	}
	must.Do(t, s.Close())
	// Nothing is left to do, and the steps have left nothing behind.
	s, err = openWith(t.Context(), path, slog.New(slog.DiscardHandler), goOn, func(at migrate.Status) { t.Errorf("told of %v", at) })
	must.Do(t, err)
	must.Do(t, s.Close())
	if !strings.Contains(log.String(), "schema step") {
		t.Errorf("the log does not mention the step: %s", log.String())
	}
}

func TestAStepEndsWhenTheServerIsStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "archive.db")
	steps := must.Get(schemaSteps())(t)
	ctx, stop := context.WithCancel(t.Context())
	endless := step{Number: len(steps) + 1, Name: "endless", SQL: `CREATE TABLE numbers AS
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0`}
	_, err := openWith(ctx, path, slog.New(slog.DiscardHandler), append(steps, endless), func(at migrate.Status) {
		if at.Name == "endless" {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	mustPut(t, open(t, path), put(t, "a", `{}`, 1))
}

func TestTheStepsOfANewFileAreToldAsSuch(t *testing.T) {
	var told []migrate.Status
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "archive.db"), slog.New(slog.DiscardHandler), func(at migrate.Status) { told = append(told, at) })
	must.Do(t, err)
	defer s.Close()
	if len(told) == 0 || slices.ContainsFunc(told, func(at migrate.Status) bool { return !at.New }) {
		t.Errorf("of a new file, this was told: %+v", told)
	}
}
