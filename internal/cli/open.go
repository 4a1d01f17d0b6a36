package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"oda"
)

// opening opens a page.
type opening struct {
	ID    string `arg:"" name:"id" complete:"id" help:"Identifier."`
	Print bool   `help:"Print the address of the page, instead of opening it."`
	remote
}

// Help is what "oda open --help" says besides the flags.
func (*opening) Help() string {
	return `The browser is that of the variable BROWSER, else that of the desktop. Where there is
none, the address is printed.`
}

// Run opens the page, if there is such an entity.
func (o *opening) Run(ctx context.Context, kind oda.Kind, to streams) error {
	archive, err := o.archive("")
	if err != nil {
		return err
	}
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
		fmt.Fprintln(to.err, "oda: no browser could be opened; this is the address (choose a browser with BROWSER, or print the address with --print)")
	}
	_, err = fmt.Fprintln(to.out, page)
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

// browsers returns the commands that open an address: those of the variable, as other
// programs take it, or else that of the desktop.
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

// kindNamed returns the kind of an identifier by its first part, for a command.
func kindNamed(id, verb string) (oda.Kind, error) {
	prefix, _, _ := strings.Cut(id, "-")
	for _, kind := range oda.Kinds {
		if kind.Prefix() == prefix {
			return kind, nil
		}
	}
	return 0, &failure{exitUsage, fmt.Sprintf("%s: an identifier of an unknown kind; say which, as in \"oda sbds %s %s\"", visible(id), verb, visible(id))}
}

// openAny is opening for an identifier that says its kind.
type openAny struct {
	opening
}

// Run opens the page.
func (o *openAny) Run(ctx context.Context, to streams) error {
	kind, err := kindNamed(o.ID, "open")
	if err != nil {
		return err
	}
	return o.opening.Run(ctx, kind, to)
}

// editAny is edit for an identifier that says its kind.
type editAny struct {
	edit
}

// Run edits the entity.
func (e *editAny) Run(ctx context.Context, to streams) error {
	kind, err := kindNamed(e.ID, "edit")
	if err != nil {
		return err
	}
	return e.edit.Run(ctx, kind, to)
}
