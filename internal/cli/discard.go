package cli

import (
	"bufio"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"oda/client/recorder"
)

// discard takes out of a spool what can never be sent.
type discard struct {
	Dir string `arg:"" optional:"" help:"Folder of the spool (default as for status), or of one session in it."`
	Yes bool   `short:"y" help:"Do not ask."`
}

// Help is what "oda record discard --help" says besides the flags.
func (*discard) Help() string {
	return `Shows the sessions that have nothing but records that can never be sent, because the
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
			return errors.New("nobody can be asked, and nothing was discarded; call the command on a terminal, or give --yes")
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
