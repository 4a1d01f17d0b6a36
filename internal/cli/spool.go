package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"oda/client"
	"oda/client/recorder"
)

// spool are the commands for spools.
type spool struct {
	Drain   drain       `cmd:"" help:"Send the records that ended processes left in a spool."`
	Status  spoolStatus `cmd:"" reads:"" help:"Print the sessions of a spool."`
	Discard discard     `cmd:"" help:"Remove records that can never be sent from a spool."`
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
	t := table{header: []string{"BLOCK", "STATE", "RECORDS", "BYTES", "REFUSED", "DAMAGED", "FOLDER"}}
	for _, l := range lines {
		row := []string{l.Block, l.State}
		for _, n := range []int64{l.Records, l.Bytes, l.Refused, l.Damaged} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		row = append(row, l.Dir)
		if l.Problem != "" {
			row = []string{"-", l.State, "-", "-", "-", "-", l.Dir + ": " + l.Problem}
		}
		t.add(plainCells(row...)...)
	}
	return t.flush(to.out)
}

// nothingWaits tells a person that a spool is empty. A program gets no line.
func nothingWaits(out io.Writer) {
	if (coloring{}).look(out).people {
		fmt.Fprintln(out, "the spool is empty")
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

// discard removes what can never be sent from a spool.
type discard struct {
	Dir string `arg:"" optional:"" help:"Folder of the spool (default as for status), or of one session in it."`
	Yes bool   `short:"y" help:"Do not ask."`
}

// Help is what "oda record discard --help" says besides the flags.
func (*discard) Help() string {
	return `Shows the sessions in which only records are left that can never be sent, because the
archive refused them or because they are damaged, and sessions that cannot be read.
Then it asks, and moves them to the folder .discarded of the spool, where they stay
until you remove them. Records that wait to be sent are left alone, unless you name
their session.`
}

// Run shows the sessions, asks, and moves them.
func (d *discard) Run(to streams) error {
	sessions, err := d.sessions()
	if err != nil {
		return err
	}
	if len(sessions) == 0 {
		_, err := fmt.Fprintln(to.out, "there is nothing to discard")
		return err
	}
	for _, s := range sessions {
		showSession(to, s)
	}
	if !d.Yes {
		if !to.terminal() {
			return errors.New("there is no terminal to ask on, so nothing was discarded; run the command in a terminal, or add --yes")
		}
		if answer := to.ask(fmt.Sprintf("Discard %s? A copy stays in the folder .discarded of the spool. [y/N] ", manyOf(int64(len(sessions)), "session"))); answer != "y" && answer != "yes" {
			return errors.New("nothing was discarded")
		}
	}
	var failed error
	for _, s := range sessions {
		kept, err := recorder.Discard(s.Dir)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if _, err := fmt.Fprintf(to.out, "%s: discarded, a copy is in %s\n", filepath.Base(s.Dir), kept); err != nil {
			return err
		}
	}
	return failed
}

// sessions returns those to discard.
func (d *discard) sessions() ([]recorder.SessionStatus, error) {
	spool := spoolIn{d.Dir}
	named := recorder.IsSession(d.Dir)
	if named {
		spool.Dir = filepath.Dir(filepath.Clean(d.Dir))
	}
	all, err := spool.sessions()
	var some []recorder.SessionStatus
	for _, s := range all {
		switch {
		case named && filepath.Base(s.Dir) != filepath.Base(filepath.Clean(d.Dir)):
		case named && s.Held:
			return nil, fmt.Errorf("%s: a running process works on it; end it first", s.Dir)
		case named, !s.Held && s.Records == 0 && s.Refused+s.Damaged > 0, s.Err != nil:
			some = append(some, s)
		}
	}
	return some, err
}

// asideShown is how many of the records of a session are shown.
const asideShown = 10

// showSession shows what would be discarded.
func showSession(to streams, s recorder.SessionStatus) {
	if s.Err != nil {
		fmt.Fprintf(to.out, "%s: %s; records may wait in it\n", filepath.Base(s.Dir), visible(s.Err.Error()))
	} else {
		fmt.Fprintf(to.out, "%s: %d waiting, %d refused, %d damaged\n", filepath.Base(s.Dir), s.Records, s.Refused, s.Damaged)
	}
	for _, name := range []string{"refused.log", "damaged.log"} {
		showAside(to, s.Dir, name)
	}
}

// showAside shows the first records of a file, each below the reason why it cannot be
// sent.
func showAside(to streams, session, name string) {
	f, err := recorder.OpenAside(session, name)
	if err != nil {
		return // the number of its records has been printed
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	for range 2 * asideShown {
		line, err := lines.ReadString('\n')
		line = strings.TrimSpace(line)
		const most = 200
		if r := []rune(line); len(r) > most {
			line = string(r[:most]) + "…"
		}
		if line != "" {
			fmt.Fprintf(to.out, "  %s\n", visible(line))
		}
		if err != nil {
			return
		}
	}
	if _, err := lines.Peek(1); err == nil {
		fmt.Fprintf(to.out, "  … and more in %s\n", filepath.Join(session, name))
	}
}
