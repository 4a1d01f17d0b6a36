package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"oda"
	"oda/client"
)

// named names an entity whose identifier may tell its kind.
type named struct {
	ID   string `arg:"" name:"id" complete:"id" help:"Identifier."`
	Kind string `narrows:"" enum:"sbds,sbis,ebs,prjs,notes," default:"" placeholder:"KIND" help:"Its kind, if the identifier does not tell it: sbds, sbis, ebs, prjs or notes."`
}

// kind returns the kind of the entity.
func (n *named) kind() (oda.Kind, error) {
	kind, ok := oda.KindOf(n.Kind)
	if !ok {
		kind, ok = kindOf(n.ID)
	}
	if !ok {
		return 0, &failure{exitUsage, visible(n.ID) + ": the identifier does not tell the kind; add --kind=sbds, sbis, ebs, prjs or notes"}
	}
	return kind, nil
}

// kindOf returns the kind that an identifier tells by its first part.
func kindOf(id string) (oda.Kind, bool) {
	prefix, _, _ := strings.Cut(id, "-")
	for _, kind := range oda.Kinds {
		if kind.Prefix() == prefix {
			return kind, true
		}
	}
	return 0, false
}

// opening opens a page.
type opening struct {
	named
	Print bool `help:"Print the address of the page, instead of opening it."`
	remote
}

// Help is what "oda open --help" says besides the flags.
func (*opening) Help() string {
	return `The browser is the one in the variable BROWSER, else the one of the desktop. If there
is none, the address is printed.`
}

// Run opens the page, if there is such an entity.
func (o *opening) Run(ctx context.Context, archive *client.Client, kind oda.Kind, to streams) error {
	for _, err := range archive.Versions(ctx, kind, o.ID) {
		if err != nil {
			return explain(archive, o.ID, err)
		}
		break
	}
	page := archive.Page(kind, o.ID)
	if !o.Print {
		if browse(ctx, page, to) {
			return nil
		}
		fmt.Fprintln(to.err, "oda: no browser could be opened; this is the address (choose a browser with BROWSER, or use --print)")
	}
	_, err := fmt.Fprintln(to.out, page)
	return err
}

// browse opens an address in the first browser that works.
func browse(ctx context.Context, address string, to streams) bool {
	for _, browser := range browsers() {
		words := strings.Fields(browser)
		if len(words) == 0 {
			continue
		}
		if !strings.Contains(browser, "%s") {
			words = append(words, "%s")
		}
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "%s", address)
		}
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)   // #nosec G204 -- the browser is the user's
		cmd.Stdin, cmd.Stdout, cmd.Stderr = to.in, to.out, to.err // it may be one for the terminal
		if cmd.Run() == nil {
			return true
		}
	}
	return false
}

// browsers returns the commands that open an address, from the variable BROWSER or else
// for the desktop.
func browsers() []string {
	own := os.Getenv("BROWSER")
	switch {
	case own != "":
		return strings.Split(own, string(os.PathListSeparator))
	case runtime.GOOS == "darwin":
		return []string{"open"}
	case os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "":
		return []string{"xdg-open"}
	}
	return nil
}
