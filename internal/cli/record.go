package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"oda/client"
	"oda/client/recorder"
)

// spool are the commands for spools.
type spool struct {
	Drain   drain       `cmd:"" help:"Send the records that ended processes left in a spool."`
	Status  spoolStatus `cmd:"" reads:"" help:"Print the sessions of a spool."`
	Discard discard     `cmd:"" help:"Take records out of a spool that can never be sent."`
}

// spoolIn names a spool.
type spoolIn struct {
	Dir string `arg:"" optional:"" help:"Folder of the spool (default $$ODA_SPOOL, else the one that scripts use: ~/.local/state/oda/spool)."`
}

// dirs returns the folders to look into. A spool that nobody has used yet does not
// exist, and has nothing in it; one that was named must exist.
func (s spoolIn) dirs() ([]string, error) {
	if s.Dir != "" {
		return []string{s.Dir}, nil
	}
	return recorder.Spools()
}

// drain sends the records that ended processes left.
type drain struct {
	spoolIn
	URL     string        `name:"url" placeholder:"URL" help:"Address of the archive to send to, instead of the one in the spool."`
	Timeout time.Duration `default:"1m" placeholder:"TIME" help:"How long to try while an archive is unavailable (default ${default}); 0 tries until everything is sent."`
	logging `embed:""`
}

// Validate checks what the flag types cannot.
func (d *drain) Validate() error {
	if d.Timeout < 0 {
		return errors.New("--timeout must not be negative")
	}
	if d.URL == "" {
		return nil
	}
	_, err := client.New(d.URL)
	return err
}

// Run sends the records, and prints a line for each session.
func (d *drain) Run(ctx context.Context, to streams) error {
	if d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Timeout)
		defer cancel()
	}
	log, _ := d.logger(to.err)
	dirs, err := d.dirs()
	if err != nil {
		return err
	}
	sessions, err := recorder.ResumeAll(ctx, dirs, recorder.ResumeOptions{URL: d.URL, Logger: log})
	return errors.Join(err, d.report(to, dirs, sessions))
}

// report prints a line for each session, and returns an error if something is left.
func (d *drain) report(to streams, dirs []string, sessions []recorder.Resumed) error {
	if len(sessions) == 0 {
		nothingWaits(to.out)
		return nil
	}
	spool := strings.Join(dirs, " and ")
	unsent, aside := 0, int64(0)
	for _, s := range sessions {
		reason := ""
		if s.Err != nil {
			reason = ": " + visible(strings.Join(strings.Fields(s.Err.Error()), " "))
			unsent++
		}
		aside += s.Refused + s.Damaged
		_, err := fmt.Fprintf(to.out, "%s: %d sent, %d left, %d refused, %d damaged%s\n",
			filepath.Base(s.Dir), s.Stored, s.Left, s.Refused, s.Damaged, reason)
		if err != nil {
			return err
		}
	}
	switch {
	case unsent > 0:
		return fmt.Errorf("%d of %s could not be sent; their records stay in %s", unsent, manyOf(int64(len(sessions)), "session"), spool)
	case aside > 0:
		return fmt.Errorf("%s refused or damaged; look at refused.log and damaged.log in the sessions of %s, and remove them with %q", manyOf(aside, "record"), spool, strings.TrimSpace("oda record discard "+d.Dir))
	}
	return nil
}

// sessions returns the sessions of the spool.
func (s spoolIn) sessions() ([]recorder.SessionStatus, error) {
	dirs, err := s.dirs()
	if err != nil {
		return nil, err
	}
	var all []recorder.SessionStatus
	for _, dir := range dirs {
		some, err := recorder.Status(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// spoolStatus prints the sessions of a spool.
type spoolStatus struct {
	spoolIn
	reporting
}

// sessionStatus is a session as printed.
type sessionStatus struct {
	Block   string `json:"eb_id"`
	State   string `json:"state"`
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"`
	Refused int64  `json:"refused"`
	Damaged int64  `json:"damaged"`
	URL     string `json:"url"`
	Dir     string `json:"folder"`
	Problem string `json:"problem,omitempty"`
}

// Run prints a line for each session, or nothing if there is none.
func (s *spoolStatus) Run(to streams) error {
	sessions, err := s.sessions()
	if err != nil {
		return err
	}
	lines := make([]sessionStatus, len(sessions))
	for i, found := range sessions {
		lines[i] = sessionStatus{
			found.Block, state(found), found.Records, found.Bytes, found.Refused, found.Damaged, found.URL, found.Dir, "",
		}
		if found.Err != nil {
			lines[i].Problem = found.Err.Error()
		}
	}
	look := coloring{}.look(to.out)
	switch format := s.format(); format {
	case "csv":
		columns := []string{"eb_id", "state", "records", "bytes", "refused", "damaged", "url", "folder", "problem"}
		return printRows(look, to.out, columns, lines)
	case "json", "yaml":
		return look.printResult(to.out, format, lines)
	}
	if len(lines) == 0 {
		nothingWaits(to.out)
		return nil
	}
	table := tabwriter.NewWriter(to.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BLOCK\tSTATE\tRECORDS\tBYTES\tREFUSED\tDAMAGED\tFOLDER")
	for _, l := range lines {
		if l.Problem != "" {
			fmt.Fprintf(table, "-\t%s\t-\t-\t-\t-\t%s\n", l.State, visible(l.Dir+": "+l.Problem))
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%s\n", l.Block, l.State, l.Records, l.Bytes, l.Refused, l.Damaged, visible(l.Dir))
	}
	return table.Flush()
}

// nothingWaits tells a person that a spool is empty. A program gets no line.
func nothingWaits(out io.Writer) {
	if (coloring{}).look(out).people {
		fmt.Fprintln(out, "nothing waits in the spool")
	}
}

// state returns the state of a session in one word.
func state(s recorder.SessionStatus) string {
	switch {
	case s.Err != nil:
		return "unusable"
	case s.Held:
		return "running" // a process records into it or drains it
	case s.Records > 0:
		return "left"
	}
	return "kept" // drain removes it, or leaves it for a person to look at
}
