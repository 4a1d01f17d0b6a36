// Command bench measures the archive beside the limits of the machine and
// beside what people would pick instead, and writes the report:
// docs/benchmarks.md with its plots and raw numbers. Run it in the folder
// bench, or by make:
//
//	make bench         everything, about 40 minutes
//	make bench-quick   under two minutes, into bench/out
//	make bench-scale   an archive of 10,000,000 records, about 15 minutes
//
// What is measured is in package work. It builds and starts everything itself
// and ends it again, also when it is interrupted.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"oda/bench/peers"
	"oda/bench/report"
	"oda/bench/work"
)

func main() {
	// Some of the servers that are measured against are this program itself.
	handled, err := peers.RunChild(os.Args[1:])
	if !handled {
		err = run(os.Args[1:])
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	scale bool
	out   string
	work.Options
}

func parse(args []string) (settings, error) {
	s := settings{Options: work.Options{Progress: os.Stderr}}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&s.Quick, "quick", false, "small counts and short times, under two minutes, without what must be downloaded")
	flags.BoolVar(&s.scale, "scale", false, "instead of the work list, generate an archive of many records on each engine")
	flags.StringVar(&s.out, "out", "", "folder for the report (default ../docs, with -quick out)")
	flags.StringVar(&s.Dir, "work", filepath.Join("out", "work"), "folder for what is built and stored, up to 20 GB; programs stay there for the next run")
	only := flags.String("only", "", "run the scenarios whose name matches this expression, and put them into the report that is there")
	flags.StringVar(&s.Profile, "profile", "", "instead of a report, write into this folder where the CPU time of oda went")
	flags.StringVar(&s.Version, "version", "dev", "version of oda to name in the report")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("%q was not understood; see bench -help", flags.Arg(0))
	}
	switch {
	case s.out != "":
	case s.Quick:
		s.out = "out"
	default:
		s.out = filepath.Join("..", "docs")
	}
	if *only != "" {
		var err error
		if s.Only, err = regexp.Compile(*only); err != nil {
			return s, fmt.Errorf("-only: %w", err)
		}
	}
	return s, nil
}

func run(args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second interrupt ends it at once
	for _, dir := range []string{s.Dir, filepath.Join(s.out, "benchmarks")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
	}
	if s.scale {
		return s.runScale(ctx)
	}
	return s.runList(ctx)
}

// runList runs the work list and writes the report.
func (s settings) runList(ctx context.Context) error {
	earlier, err := s.earlier()
	if err != nil {
		return err
	}
	result, err := work.Run(ctx, s.Options)
	if result == nil {
		return err
	}
	if s.Profile != "" {
		return err
	}
	if ctx.Err() != nil {
		return errors.Join(errors.New("interrupted; the report was left as it is"), err)
	}
	// Where a scenario failed, what the others found is put into the report
	// that is there, as with -only.
	if (s.Only != nil || err != nil) && earlier != nil {
		result = work.Merge(earlier, result)
	} else if scale, _, found := s.readScale(); found {
		result.Sections = append(result.Sections, scale.Section)
	}
	return errors.Join(err, s.write(result))
}

// runScale generates a large archive, keeps what was found and puts it into the
// report, if there is one.
func (s settings) runScale(ctx context.Context) error {
	earlier, err := s.earlier()
	if err != nil {
		return err
	}
	scale, err := work.RunScale(ctx, s.Options)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(scale, "", "  ")
	if err != nil {
		return fmt.Errorf("writing what was found as JSON: %w", err)
	}
	_, path, _ := s.readScale()
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("keeping what was found: %w", err)
	}
	fmt.Fprintln(s.Progress, "written:", path)
	if earlier == nil {
		return nil
	}
	return s.write(work.Merge(earlier, &report.Result{Sections: []report.Section{scale.Section}}))
}

// earlier is the report that is there, nil where there is none. Where this run
// is to be put into it, both must be of one kind.
func (s settings) earlier() (*report.Result, error) {
	earlier, err := report.Read(filepath.Join(s.out, "benchmarks", "results.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if earlier.Quick != s.Quick {
		if s.Only != nil || s.scale {
			return nil, errors.New("the report that is there is of a full run and this one is quick, or the other way round; give another folder with -out")
		}
		return nil, nil
	}
	return earlier, nil
}

// readScale reads what a run with -scale found, if there was one of this kind.
func (s settings) readScale() (scale work.Scale, path string, found bool) {
	path = filepath.Join(s.out, "benchmarks", "scale.json")
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &scale) != nil {
		return scale, path, false
	}
	return scale, path, scale.Quick == s.Quick
}

func (s settings) write(result *report.Result) error {
	if err := report.Write(s.out, result); err != nil {
		return err
	}
	fmt.Fprintln(s.Progress, "written:", filepath.Join(s.out, "benchmarks.md"))
	return nil
}
