package work

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"oda/bench/load"
	"oda/bench/machine"
	"oda/bench/measure"
	"oda/bench/report"
)

// Budgets of a listing.
const (
	listingRate   = 300_000  // identifiers in a second
	listingMemory = 32 << 20 // bytes
)

// query is one way to ask for many identifiers.
type query struct {
	name  string
	query string
	share int  // one in so many of the archive matches
	all   bool // the budget is for listings of everything
	// straight is the same question to the database itself, with OF for the
	// table that the engine keeps creations in.
	straight string
}

// listingQueries ask for everything since the archive began, by each field,
// and for what one user owns.
func listingQueries(a *large) []query {
	since := url.QueryEscape(a.began.UTC().Format(time.RFC3339Nano))
	return []query{
		{
			name: "by creation", query: "created_after=" + since, all: true,
			straight: "OF WHERE kind = 1 AND created_on > 0 ORDER BY created_on, identifier",
		},
		{
			name: "by last modification", query: "last_modified_after=" + since, all: true,
			straight: "heads WHERE kind = 1 AND MODIFIED > 0 ORDER BY MODIFIED, identifier",
		},
		{
			name: "by user, the beginning of the name", query: "user=observer-&user_match_type=starts_with",
			straight: "OF WHERE kind = 1 AND created_on > 0 AND substr(created_by, 1, 9) = 'observer-' ORDER BY created_on, identifier",
		},
		{
			name: "by user, one of ten", query: "user=" + user(3), share: users,
			straight: "OF WHERE kind = 1 AND created_by = '" + user(3) + "' ORDER BY created_on, identifier",
		},
	}
}

// expect is how many identifiers a query finds. Entities that were created
// while measuring belong to nobody's share, and to no observer.
func (q query) expect(a *large) int64 {
	switch {
	case q.all:
		return int64(a.entities) + a.created.Load()
	case q.share > 0:
		return int64(a.entities / q.share)
	default:
		return int64(a.entities)
	}
}

// listed is what one listing took.
type listed struct{ first, total, rate, growth []float64 }

// list asks once and counts by the length of the answer, since every identifier
// has the same. It asks an oda that was just started: one that has worked holds
// memory that a listing could use unseen.
func (l *listed) list(ctx context.Context, s *stage, a *large, q query) error {
	if _, err := s.restart(ctx, a.engine); err != nil {
		return err
	}
	// The first request of all also connects to the database.
	if _, err := send(ctx, a.addr(), get(api+"/sbds?limit=1&"+q.query)); err != nil {
		return err
	}
	before, err := machine.Process(a.server.PID)
	if err != nil {
		return err
	}
	if err := machine.ResetPeak(a.server.PID); err != nil {
		return err
	}
	begin := time.Now()
	answer, err := load.Once(ctx, a.addr(), get(api+"/sbds?"+q.query))
	if err != nil {
		return fmt.Errorf("listing %s: %w", q.name, err)
	}
	took := time.Since(begin)
	count := (int64(len(answer.Body)) - 1) / int64(identifierLength+len(`"",`))
	if answer.Status != http.StatusOK || count != q.expect(a) {
		return fmt.Errorf("listing %s answered %d with %d identifiers, expected %d: %.200s",
			q.name, answer.Status, count, q.expect(a), answer.Body)
	}
	after, err := machine.Process(a.server.PID)
	if err != nil {
		return err
	}
	l.first = append(l.first, answer.FirstByte.Seconds())
	l.total = append(l.total, took.Seconds())
	l.rate = append(l.rate, float64(count)/took.Seconds())
	l.growth = append(l.growth, grown(before, after))
	return nil
}

// grown is how far the memory of a process rose, or a page, since less is not
// seen.
func grown(before, after machine.Usage) float64 {
	return float64(max(int64(os.Getpagesize()), after.PeakRSS-before.RSS))
}

// listing lists the whole of a large archive in one answer.
func (s *stage) listing(ctx context.Context, archives []*large) error {
	entities := archives[0].entities
	s.begin("listing", "Listing a large archive")
	s.note("One answer with all identifiers that match, from an archive of %s entities, over one connection. *Memory* is how far the "+
		"memory of the server, which was started anew for each listing, rose above what it had before. *Straight* is the same question asked in the database itself from Go, without oda: "+
		"the limit of the engine.", thousands(entities))
	table := report.Table{Columns: []string{"", "identifiers", "first byte", "whole answer", "identifiers/s", "÷ straight", "memory"}}
	plot := report.Plot{ID: "listing", Title: fmt.Sprintf("Listing %s entities", thousands(entities)), YLabel: "identifiers in a second"}
	for i := range listingQueries(archives[0]) {
		found := make([]listed, len(archives))
		direct := make([]listed, len(archives))
		for round := range s.plan.listings {
			for n, a := range archives {
				q := listingQueries(a)[i]
				s.say("  %d of %d  list %s, %s", round+1, s.plan.listings, q.name, a.arm)
				if err := found[n].list(ctx, s, a, q); err != nil {
					return fmt.Errorf("%s: %w", a.arm, err)
				}
				if err := direct[n].straight(ctx, a, q); err != nil {
					return fmt.Errorf("%s: %w", a.arm, err)
				}
			}
		}
		for n, a := range archives {
			q := listingQueries(a)[i]
			rate := measure.SpreadOf(found[n].rate)
			table.Rows = append(table.Rows, []string{
				a.arm + ", " + q.name, thousands(int(q.expect(a))),
				report.SpreadValue(measure.SpreadOf(found[n].first), "s"), report.SpreadValue(measure.SpreadOf(found[n].total), "s"),
				report.Times(rate), report.Times(quotients(found[n].rate, direct[n].rate)), report.SpreadValue(measure.SpreadOf(found[n].growth), "B"),
			})
			plot.Bars = append(plot.Bars, report.Bar{
				Group: q.name, Name: a.arm, Y: rate.Median, Low: rate.Low, High: rate.High, Highlight: true,
			})
			if q.all {
				work := fmt.Sprintf("listing %s identifiers, %s", thousands(entities), q.name)
				s.budget(report.Budget{Work: work, Engine: a.label, Limit: listingRate, Unit: "identifiers/s", Value: rate})
				s.atMost(work, a.label, "memory growth", listingMemory, "B", measure.SpreadOf(found[n].growth))
			}
		}
	}
	s.section.Tables = append(s.section.Tables, table)
	s.section.Plots = append(s.section.Plots, plot)
	return nil
}

// quotients divides round by round.
func quotients(a, b []float64) measure.Spread {
	var values []float64
	for i := range min(len(a), len(b)) {
		values = append(values, a[i]/b[i])
	}
	return measure.SpreadOf(values)
}

// startBudget is the most that a start may take on a large archive.
const startBudget = 0.3 // seconds

// starting starts oda on the large archive, from the start of the program until
// it says that it is ready, and on an empty one.
func (s *stage) starting(ctx context.Context, archives []*large) error {
	s.begin("starting", "Starting on a large archive")
	s.note("From the start of the program to the first 200 of `/readyz`, on the archive of %s entities and on an empty one. "+
		"The files of the large one are in the memory of the operating system.", thousands(archives[0].entities))
	table := report.Table{Columns: []string{"", "empty", "large", "large ÷ empty"}}
	sqlite, postgres, err := s.engines(ctx, "starting-empty")
	if err != nil {
		return err
	}
	for i, a := range archives {
		empty := []*engine{sqlite, postgres}[i]
		var times [2][]float64
		for range s.plan.listings {
			for n, e := range []*engine{empty, a.engine} {
				took, err := s.restart(ctx, e)
				if err != nil {
					return err
				}
				times[n] = append(times[n], took.Seconds())
			}
		}
		took := measure.SpreadOf(times[1])
		table.Rows = append(table.Rows, []string{
			a.arm, report.SpreadValue(measure.SpreadOf(times[0]), "s"), report.SpreadValue(took, "s"),
			report.Times(quotients(times[1], times[0])),
		})
		s.atMost(fmt.Sprintf("start on an archive of %s entities", thousands(a.entities)), a.label, "from start to ready", startBudget, "s", took)
	}
	s.section.Tables = append(s.section.Tables, table)
	return nil
}

// restart stops oda and starts it again, and says how long the start took.
func (s *stage) restart(ctx context.Context, e *engine) (time.Duration, error) {
	if err := e.stop(ctx); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := s.start(ctx, e)
	return time.Since(begin), err
}
