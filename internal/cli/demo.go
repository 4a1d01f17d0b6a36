package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"oda/client"
	"oda/internal/app"
	"oda/internal/demo"
)

// demonstration fills an archive with a made-up week.
type demonstration struct {
	Serve   string `placeholder:"DIR" help:"Serve an archive from this folder, fill it if it is new, and keep recording."`
	Listen  string `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address to listen on, with --serve (default ${default}). Port 0 picks a free port."`
	Live    bool   `help:"Then keep recording, at a human pace, until interrupted."`
	Add     bool   `help:"Add to an archive that is not empty."`
	Seed    uint64 `default:"1" placeholder:"N" help:"Which week to make up; the same number on the same day gives the same one (default ${default})."`
	Longest int    `default:"${longest}" placeholder:"N" help:"Calls of the longest ExecutionBlock, from 10 to 100000 (default ${default})."`
	remote
}

// Help is what "oda demo --help" says besides the flags.
func (*demonstration) Help() string {
	return `Stores Projects, SBDefinitions in several versions, SBInstances, and
ExecutionBlocks with their calls, some of which failed, as they could have been
made in the last seven days. Nothing is ever removed from an archive, so use one
that is meant for it: an archive that is not empty is refused without --add.

With --serve it makes an archive of its own in DIR, or continues with the one that is
there, and serves it until interrupted.`
}

// Validate checks what the flag types cannot.
func (d *demonstration) Validate() error {
	if d.Longest < demo.MinLongest || d.Longest > demo.MaxLongest {
		return fmt.Errorf("--longest must be from %d to %d", demo.MinLongest, demo.MaxLongest)
	}
	if d.Serve != "" && d.URL != "" {
		return errors.New("--serve makes an archive of its own; leave out --url and ODA_URL, or --serve")
	}
	return nil
}

// Run fills the archive, and keeps recording if asked to.
func (d *demonstration) Run(ctx context.Context, to streams) error {
	if d.Serve != "" {
		return d.serve(ctx, to)
	}
	return d.play(ctx, to)
}

// serve serves an archive of its own while it is filled and recorded into.
func (d *demonstration) serve(ctx context.Context, to streams) error {
	database := "sqlite:" + filepath.Join(d.Serve, "archive.db")
	read, err := parsed("serve", "--listen", d.Listen, "--db", database, "--log-level", "warn")
	if err != nil {
		return err
	}
	log, _ := read.Serve.logger(to.err)
	cfg, err := read.Serve.config(to.version, log)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a, err := app.Start(ctx, cfg)
	if err != nil {
		return err
	}
	d.URL, d.Live, d.Add = "http://"+a.Addr(), true, true
	_, err = fmt.Fprintf(to.out, "Open %s/ in a browser. The data is in %s; Ctrl-C ends it.\n", d.URL, d.Serve)
	if err == nil {
		err = d.play(ctx, to)
	}
	stop()
	return errors.Join(err, a.Wait())
}

// play stores the week, and keeps recording if asked to.
func (d *demonstration) play(ctx context.Context, to streams) error {
	archive, err := d.archive(ctx)
	if err != nil {
		return err
	}
	err = d.fill(ctx, to, archive)
	if err != nil && ctx.Err() != nil {
		return errors.New("stopped before the week was stored; the archive may have a part of it. " +
			"Use a new archive, or add another week with --add and another --seed")
	}
	if err == nil && d.Live {
		err = demo.Live(ctx, d.as, d.options(to), demo.Sleep)
		if ctx.Err() != nil { // it was asked to stop
			return nil
		}
	}
	return explain(archive, "demo", err)
}

// options say what to make up.
func (d *demonstration) options(to streams) demo.Options {
	return demo.Options{
		Seed: d.Seed, Now: time.Now(), Longest: d.Longest,
		Progress: func(text string) { fmt.Fprintln(to.err, text) },
	}
}

// fill stores the week, unless it is there and more is to be recorded.
func (d *demonstration) fill(ctx context.Context, to streams, archive *client.Client) error {
	empty, err := demo.Empty(ctx, archive)
	if err != nil {
		return err
	}
	if !empty && !d.Add {
		return errors.New("the archive at " + archive.Address() + " is not empty, and nothing is ever removed from an archive; " +
			"use one that is meant for it, or give --add")
	}
	done, err := demo.Fill(ctx, d.as, d.options(to))
	switch {
	case errors.Is(err, demo.ErrPresent) && d.Live:
		return nil
	case errors.Is(err, demo.ErrPresent):
		return fmt.Errorf("the archive has the week of --seed=%d already, or a part of it; give another --seed", d.Seed)
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(to.out, "Stored %v.\n", done)
	return err
}
