package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oda"
	"oda/client"
	"oda/internal/rawjson"
)

// running prints the calls that are running.
type running struct {
	Telescope string `narrows:"" placeholder:"NAME" complete:"telescope" help:"Only this telescope."`
	Follow    bool   `short:"f" help:"Print them again whenever they change, until interrupted with Ctrl-C."`
	Output    string `short:"o" default:"auto" enum:"auto,table,json,yaml,csv" placeholder:"FORMAT" help:"Print a table (default on a terminal), json: one call per line (default elsewhere), or with --follow all on one line, yaml or csv."`
	coloring
	remote
}

// Help is what "oda running --help" says besides the flags.
func (*running) Help() string {
	return `These are calls that a recorder has announced and not recorded yet. A silent one has not
been heard of for longer than its recorder had promised: it hangs, or its program has died.`
}

// Validate checks that flags fit together.
func (r *running) Validate() error {
	if r.Follow && (r.Output == "yaml" || r.Output == "csv") {
		return errors.New("with --follow, choose --output table or json")
	}
	return nil
}

// Run prints the calls.
func (r *running) Run(ctx context.Context, archive *client.Client, to streams) error {
	look := r.look(to.out)
	explained := func(err error) error { return explain(archive, "what is running", err) }
	if !r.Follow {
		calls, err := archive.Running(ctx, r.Telescope)
		if err != nil {
			return explained(err)
		}
		print := printer[oda.RunningCall]{
			look: look, single: true, ends: true, header: runningHeader, row: runningRow,
			json: func(one oda.RunningCall) []byte {
				text, _ := rawjson.Marshal(one) // it came as JSON
				return text
			},
			columns: []string{"eb_id", "key", "request", "sent_at", "since", "renewed_on", "lease_until", "silent", "device", "telescope", "by"},
		}
		return print.all(to.out, r.Output, func(yield func(oda.RunningCall, error) bool) {
			for _, one := range calls {
				if !yield(one, nil) {
					return
				}
			}
		}, explained)
	}
	for calls, err := range archive.FollowRunning(ctx, r.Telescope) {
		if err != nil {
			return explained(err)
		}
		if err := r.show(look, calls, to); err != nil {
			return err
		}
	}
	return nil
}

// show prints all calls at once.
func (r *running) show(look look, calls []oda.RunningCall, to streams) error {
	if r.Output == "json" || r.Output == "auto" && !look.people {
		text, err := oda.RunningCalls{Running: calls}.JSON()
		if err == nil {
			_, err = fmt.Fprintf(to.out, "%s\n", text)
		}
		return err
	}
	fmt.Fprintf(to.out, "%s UTC: %s running\n", when(oda.InstantOf(time.Now())), manyOf(int64(len(calls)), "call"))
	all := &table{look: look, header: runningHeader, ends: true}
	for _, one := range calls {
		all.add(runningRow(one)...)
	}
	return all.flush(to.out)
}

var runningHeader = []string{"BLOCK", "SENT (UTC)", "STATE", "TELESCOPE", "DEVICE", "WHO", "REQUEST"}

func runningRow(one oda.RunningCall) []cell {
	device := "-"
	if one.Device != nil {
		device = *one.Device
	}
	row := plainCells(one.Block, when(oda.Instant(one.SentAt)), "running", one.At(), device, one.By, one.Request)
	row[0].ink, row[2].ink = cyan, blue
	if one.Silent {
		row[2] = cell{"silent", red}
	}
	return row
}
