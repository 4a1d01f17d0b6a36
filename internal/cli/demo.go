package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oda/client"
	"oda/internal/demo"
)

// demonstration fills an archive with a made-up week.
type demonstration struct {
	Live    bool   `help:"Then go on recording, at a human pace, until interrupted."`
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
that is meant for it: an archive that is not empty is refused without --add.`
}

// Validate checks what the flag types cannot.
func (d *demonstration) Validate() error {
	if d.Longest < demo.MinLongest || d.Longest > demo.MaxLongest {
		return fmt.Errorf("--longest must be from %d to %d", demo.MinLongest, demo.MaxLongest)
	}
	return nil
}

// Run fills the archive, and goes on if that was asked for.
func (d *demonstration) Run(ctx context.Context, to streams) error {
	archive, err := d.archive("")
	if err != nil {
		return err
	}
	err = d.run(ctx, to, archive)
	if err != nil && ctx.Err() != nil {
		return errors.New("stopped before the week was stored; the archive may have a part of it. Use a new archive, or add another week with --add and another --seed")
	}
	return explain(archive, "demo", err)
}

func (d *demonstration) run(ctx context.Context, to streams, archive *client.Client) error {
	empty, err := demo.Empty(ctx, archive)
	if err != nil {
		return err
	}
	if !empty && !d.Add {
		return errors.New("the archive at " + archive.Address() + " is not empty, and nothing is ever removed from an archive; " +
			"use one that is meant for it, or give --add")
	}
	options := demo.Options{
		Seed: d.Seed, Now: time.Now(), Longest: d.Longest,
		Progress: func(text string) { fmt.Fprintln(to.err, text) },
	}
	done, err := demo.Fill(ctx, d.archive, options)
	switch {
	case errors.Is(err, demo.ErrPresent) && !d.Live:
		return fmt.Errorf("the archive has the week of --seed=%d already, or a part of it; give another --seed", d.Seed)
	case err != nil && !errors.Is(err, demo.ErrPresent):
		return err
	case err == nil:
		if _, err := fmt.Fprintf(to.out, "Stored %v.\n", done); err != nil {
			return err
		}
	}
	if !d.Live {
		return nil
	}
	if err := demo.Live(ctx, d.archive, options, demo.Sleep); ctx.Err() == nil {
		return err
	}
	return nil // it was asked to stop
}
