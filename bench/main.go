// Command bench measures the archive against the limits of the machine and
// against alternatives, and writes docs/benchmarks.md. It builds, starts and
// stops everything itself. Run it with make, in the folder above; README.md
// says how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"syscall"
	"time"
)

// settings are those of every scenario.
type settings struct {
	plan     plan
	profiles string // folder for profiles of oda; empty for none
	version  string // of the sources
	progress io.Writer
}

// options say what to run.
type options struct {
	settings
	quick   bool
	only    *regexp.Regexp // nil for all scenarios that need not be requested
	against string         // revision of an earlier oda; empty for none
	work    string         // folder for what is built and stored
	out     string         // folder for the report
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == serveBare {
		fail(runBare(os.Args[2], os.Args[3:]...))
	}
	o := options{settings: settings{plan: full, progress: os.Stderr}}
	flag.BoolVar(&o.quick, "quick", false, "small counts and short times, without PocketBase")
	only := flag.String("only", "", "run the scenarios whose name matches this `expression`, and put them into the report that is there")
	soak := flag.Duration("soak", 0, "`time` that a soak takes (default 10m, or 20s with -quick)")
	flag.StringVar(&o.against, "against", "", "measure oda in turn with the one of this git `revision`, and nothing else")
	flag.StringVar(&o.profiles, "profile", "", "write where the CPU time of oda goes into this `folder`, and no report")
	flag.StringVar(&o.version, "version", "dev", "version of oda, for the report")
	flag.StringVar(&o.work, "work", filepath.Join("out", "work"), "`folder` for what is built and stored, up to 20 GB; programs stay there")
	flag.StringVar(&o.out, "out", "", "`folder` for the report (default ../docs, out with -quick, out/against with -against)")
	flag.Parse()
	if flag.NArg() > 0 {
		fail(fmt.Errorf("%q is not valid; see bench -help", flag.Arg(0)))
	}
	if *only != "" {
		var err error
		if o.only, err = regexp.Compile("^(" + *only + ")$"); err != nil {
			fail(fmt.Errorf("-only: %w", err))
		}
	}
	if o.quick {
		o.plan = quick
	}
	if *soak > 0 {
		o.plan.soak = *soak
	}
	if o.profiles != "" {
		o.plan.length = 5 * time.Second
	}
	if o.against != "" && !o.quick {
		o.plan.rounds = 15 // to distinguish a tenth from noise
	}
	switch {
	case o.out != "":
	case o.against != "":
		o.out = filepath.Join("out", "against")
	case o.quick:
		o.out = "out"
	default:
		o.out = filepath.Join("..", "docs")
	}
	// This program should use as little as possible of the two cores.
	debug.SetGCPercent(400)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends it at once
	fail(o.run(ctx))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run builds and starts what is needed, measures, and stops it again.
func (o options) run(ctx context.Context) error {
	var list []scenario
	names := ""
	for _, sc := range scenarios() {
		names += " " + sc.name
		if o.only == nil && !sc.asked || o.only != nil && o.only.MatchString(sc.name) {
			list = append(list, sc)
		}
	}
	if len(list) == 0 {
		return fmt.Errorf("no scenario has this name; there are:%s", names)
	}
	l, err := newLab(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(o.measure(ctx, l, list), l.close())
}

// measure plays scenarios, and writes the report after each, so that nothing is lost
// if the next ones are interrupted. Failures are reported at the end.
func (o options) measure(ctx context.Context, l *lab, list []scenario) error {
	file := filepath.Join(o.out, "benchmarks", "results.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	before, err := readResults(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && o.only != nil {
		return fmt.Errorf("%w; run it without -only first", err)
	}
	start := time.Now()
	found := &results{Version: o.version, Against: o.against, Quick: o.quick}
	if found.Machine, err = l.describe(ctx); err != nil {
		return err
	}
	if before != nil && before.Against == found.Against && before.Quick == found.Quick {
		found.add(before.Sections...)
	}
	var failed error
	for i, sc := range list {
		l.say("\n[%d of %d] %s, after %v", i+1, len(list), sc.title, time.Since(start).Round(time.Second))
		section, err := l.play(ctx, sc)
		if ctx.Err() != nil {
			return errors.Join(failed, errors.New("interrupted; the report has what was measured before"))
		}
		if err != nil {
			l.say("FAILED: %v", err)
			failed = errors.Join(failed, err)
			continue
		}
		if o.profiles != "" {
			continue
		}
		found.Took = time.Since(start)
		found.add(section)
		if err := errors.Join(found.report(o.out), found.write(file)); err != nil {
			return errors.Join(failed, err)
		}
	}
	if o.profiles != "" {
		return failed
	}
	if o.against != "" {
		found.writeBudgets(os.Stdout)
	}
	l.say("written: %s", filepath.Join(o.out, "benchmarks.md"))
	return failed
}
