package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"oda/internal/test/load"
)

// What a soak watches besides the memory.
const (
	goroutines  figure = "goroutines"
	descriptors figure = "open files"
	walSize     figure = "write-ahead log"
	perWrite    figure = "on disk per write"
	lines       figure = "log of the server"
	live        figure = "live heap without caches"
)

// The load of a soak. It is far below what a server can do: a soak looks for what
// grows, and the servers have hours for it.
const (
	soakRate        = 40.0                   // requests per second that read
	soakPace        = 800 * time.Millisecond // 60 writes per second
	soakConnections = 24                     // that read, and as many that write
	soakEntities    = 400
	soakFollowers   = 10 // that stay
	soakVisitors    = 4  // followers that come and go
	soakSamples     = 60
	soakPoints      = 10 // in the report
)

// soakText makes documents and records about as long as they are.
var soakText = strings.Repeat("it snowed ", 25)

// bound says how much a figure may grow from the second third of a soak to the last,
// and how large it may be then, if that is bounded.
type bound struct {
	figure figure
	share  float64
	slack  float64
	most   float64
}

// bounds of a soak. In the first third connections are made and small caches fill. The
// large one fills for hours, and Go lets the heap grow to several times what is in use:
// so the memory of the process has a limit, and what is in use must not grow. The
// write-ahead log of SQLite goes up and down: it begins again at 32 MiB, and 64 MiB of
// it are kept. The server logs a line for each request that it refuses because the
// machine is busy with something else.
var bounds = []bound{
	{figure: memory, most: 512 << 20},
	{figure: live, share: 0.1, slack: 6 << 20},
	{figure: goroutines, share: 0.05, slack: 8},
	{figure: descriptors, share: 0.05, slack: 8},
	{figure: lines, slack: 256 << 10},
	{figure: walSize, most: 80 << 20},
	{figure: perWrite, most: 4 << 10},
}

// valuesOf returns a figure of the samples that have it.
func valuesOf(samples []sample, f figure) (values []float64) {
	for _, one := range samples {
		if value, ok := one[f]; ok {
			values = append(values, value)
		}
	}
	return values
}

// grown returns what has grown more than it may.
func grown(samples []sample) error {
	var all error
	for _, b := range bounds {
		values := valuesOf(samples, b.figure)
		third := len(values) / 3
		if third == 0 {
			continue
		}
		before, after := spreadOf(values[third:2*third]).median, spreadOf(values[2*third:]).median
		if b.most > 0 && after > b.most {
			all = errors.Join(all, fmt.Errorf("%s reached %s, more than %s", b.figure, format(after, b.figure.unit()), format(b.most, b.figure.unit())))
		} else if b.most == 0 && after > before*(1+b.share)+b.slack {
			all = errors.Join(all, fmt.Errorf("%s grew from %s to %s", b.figure, format(before, b.figure.unit()), format(after, b.figure.unit())))
		}
	}
	return all
}

// runSoak lets every oda work through a mixed night, all at once, and fails if
// something grows that should not.
func runSoak(ctx context.Context, s *stage) error {
	odas, err := s.startOdas(ctx)
	if err != nil {
		return err
	}
	soaks := make([][]sample, len(odas))
	all, running := errgroup.WithContext(ctx)
	for i, srv := range odas {
		srv.command = append(srv.command, "--log-level", "warn")
		if _, err := srv.restart(ctx); err != nil {
			return err
		}
		all.Go(func() (err error) {
			if soaks[i], err = s.soak(running, srv); err != nil {
				return fmt.Errorf("%s: %w", srv.arm(""), err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	t := &table{
		Columns: plain(memory, live, goroutines, descriptors, walSize, perWrite, rate),
		Plot:    &plotted{Title: "A mixed night without growth", X: "minutes", Y: memory},
	}
	for i, srv := range odas {
		each := len(soaks[i]) / soakPoints
		for point := range soakPoints {
			part := soaks[i][point*each : (point+1)*each]
			minutes := s.plan.soak.Minutes() * float64(point+1) / soakPoints
			one := series{Arm: srv.arm(fmt.Sprintf(", minute %s", digits(minutes))), Line: srv.arm(""), X: minutes, Rounds: map[figure][]float64{}}
			for _, c := range t.Columns {
				one.Rounds[c.Figure] = valuesOf(part, c.Figure)
			}
			t.Series = append(t.Series, one)
		}
		if err := grown(soaks[i]); err != nil {
			return fmt.Errorf("%s: %w", srv.arm(""), err)
		}
	}
	s.section.Tables = append(s.section.Tables, t)
	return nil
}

// soak lets a server work, and looks at it meanwhile.
func (s *stage) soak(ctx context.Context, srv *server) ([]sample, error) {
	if err := srv.storeEntities(ctx, "sbd-soak", soakEntities); err != nil {
		return nil, err
	}
	writers, err := load.Start(load.Options{Writers: soakConnections, Pace: soakPace, Attempt: patience, Text: soakText}, srv.addr)
	if err != nil {
		return nil, err
	}
	defer writers.Stop()
	end, err := follow(srv, soakFollowers, "gzip")
	if err != nil {
		return nil, err
	}
	defer end()
	all, working := errgroup.WithContext(ctx)
	loading, loaded := context.WithCancel(working)
	all.Go(func() error {
		defer loaded()
		_, err := send(working, srv.addr, soakReaders(writers), s.plan.soak, soakRate)
		return err
	})
	all.Go(func() error { return visit(loading, srv) })
	var samples []sample
	all.Go(func() error {
		tick := time.NewTicker(s.plan.soak / soakSamples)
		defer tick.Stop()
		for before := (&look{}); ; {
			select {
			case <-loading.Done():
				return nil
			case <-tick.C:
			}
			one, err := before.next(working, srv, int64(writers.Acknowledged()))
			if err != nil {
				return err
			}
			samples = append(samples, one)
			if len(samples)%(soakSamples/soakPoints) == 0 {
				s.say("  %2d of %d  %-28s %v, %v goroutines, %v files", len(samples), soakSamples, srv.arm(""), one, one[goroutines], one[descriptors])
			}
		}
	})
	if err := all.Wait(); err != nil {
		return nil, err
	}
	if len(samples) < 2*soakPoints {
		return nil, fmt.Errorf("the machine is too busy: it was looked at %d times", len(samples))
	}
	writers.Pause()
	stored, err := writers.Read(ctx, srv.addr)
	if err != nil {
		return nil, err
	}
	return samples, writers.Check(stored)
}

// soakReaders returns what people and programs read in a night: entities, blocks that
// are recorded into, searches, listings, changes and pages.
func soakReaders(writers *load.Load) []worker {
	return workers(soakConnections, func(i int) worker {
		random := rand.New(rand.NewPCG(11, uint64(i)))
		return worker{mayWait: true, next: func() request {
			recent := writers.Recent()
			switch n := random.IntN(40); {
			case n < 10:
				return get(api + "/sbds/" + identifier("sbd-soak", random.IntN(soakEntities)))
			case n < 15:
				return get(api + "/sbds/search?q=field&limit=20")
			case n < 20:
				return get(api + "/ebs?created_after=2026-01-01&limit=100")
			case n < 25:
				return get(api + "/changes?after=0&limit=100")
			case n < 30 && recent != "":
				return get(api + "/ebs/" + recent)
			case n < 35 && recent != "":
				return get("/ebs/" + recent)
			default:
				return get([]string{"/", "/ebs", "/sbds"}[n%3])
			}
		}}
	})
}

// visit lets followers come and go, as pages do that are opened and closed.
func visit(ctx context.Context, srv *server) error {
	for ctx.Err() == nil {
		end, err := follow(srv, soakVisitors, "gzip")
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
		end()
	}
	return nil
}

// look is what the first look at a server found, and the last.
type look struct {
	first, last struct {
		at     time.Time
		writes int64
		stored float64
	}
}

// next looks at a server that has made so many writes.
func (l *look) next(ctx context.Context, srv *server, writes int64) (sample, error) {
	one := sample{}
	var err error
	if one[memory], err = srv.resident(); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", srv.PID()))
	if err != nil {
		return nil, err
	}
	one[descriptors] = float64(len(files))
	text, err := srv.do(ctx, "GET", "/metrics", nil)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		number, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case name == "go_goroutines":
			one[goroutines] = number
		case name == "go_gc_heap_live_bytes":
			one[live] += number
		case strings.HasPrefix(name, "oda_cache_bytes"):
			one[live] -= number
		}
	}
	info, err := os.Stat(srv.log)
	if err != nil {
		return nil, err
	}
	one[lines] = float64(info.Size())
	stored, err := srv.stored(ctx, one)
	if err != nil {
		return nil, err
	}
	now := l.last
	now.at, now.writes, now.stored = time.Now(), writes, stored
	if l.first.at.IsZero() {
		l.first = now
	} else if writes > l.first.writes {
		one[rate] = float64(writes-l.last.writes) / now.at.Sub(l.last.at).Seconds()
		one[perWrite] = (stored - l.first.stored) / float64(writes-l.first.writes)
	}
	l.last = now
	return one, nil
}

// stored returns the size of the archive, and notes that of its write-ahead log if
// it has one of its own.
func (srv *server) stored(ctx context.Context, in sample) (float64, error) {
	if srv.database != "" {
		return srv.stage.query(ctx, srv.db, "SELECT pg_database_size(current_database())::float8")
	}
	path := strings.TrimPrefix(srv.db, "sqlite:")
	log, err := os.Stat(path + "-wal")
	if err != nil {
		return 0, err
	}
	in[walSize] = float64(log.Size())
	file, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return float64(file.Size()), nil
}
