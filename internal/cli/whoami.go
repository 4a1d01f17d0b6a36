package cli

import (
	"context"
	"fmt"
	"strings"

	"oda"
	"oda/client"
)

// whoami prints who the archive takes the caller for.
type whoami struct {
	Output string `short:"o" default:"auto" enum:"auto,json,yaml,csv" placeholder:"FORMAT" help:"Print json, yaml or csv, instead of text for people."`
	coloring
	acting
}

// Run asks the archive.
func (w *whoami) Run(ctx context.Context, archive *client.Client, to streams) error {
	caller, err := archive.Whoami(ctx)
	if oda.CodeOf(err) == oda.NoSuchPath {
		return &failure{exitFailed, fmt.Sprintf("the archive at %s cannot be asked: the address is wrong (set it with --url or ODA_URL), or its version of oda is too old", archive.Address())}
	}
	if err != nil {
		return explain(archive, "whoami", err)
	}
	look := w.look(to.out)
	if w.Output != "auto" {
		return look.printDocument(to.out, w.Output, caller.JSON)
	}
	_, from := w.acting.acting()
	_, err = fmt.Fprintf(to.out, "user:      %s\nknown by:  %s\nmay:       %s\narchive:   %s\n",
		look.safe(caller.User), look.safe(known(caller, from)), look.safe(rights(caller)), archive.Address())
	return err
}

// known says how the archive knows the caller.
func known(c *client.Caller, from string) string {
	text := ""
	switch c.Means {
	case "open":
		text = "nothing: the archive is open, and believes any name"
		if from != "" {
			text += "; this one comes from " + from
		}
	case "token":
		text = "the token " + c.Name
	case "oidc":
		text = "a token of the OpenID provider for " + c.Name
	default:
		text = "the " + c.Means + " as " + c.Name
	}
	if c.Ends != nil {
		text += ", until " + when(oda.InstantOf(*c.Ends)) + " UTC"
	}
	return text
}

// rights says what the caller may do. A role that is bound to a telescope lets it
// read everything, and write for that telescope.
func rights(c *client.Caller) string {
	var all []string
	if c.Role != "" {
		means := map[string]string{
			"reader": "read", "recorder": "read and record", "editor": "read, record and store", "admin": "do everything",
		}
		all = append(all, fmt.Sprintf("%s (%s)", means[c.Role], c.Role))
	} else if len(c.Telescopes) > 0 {
		all = append(all, "read everything")
	}
	for _, bound := range c.Telescopes {
		means := map[string]string{"recorder": "record", "editor": "record and store", "admin": "record and store"}
		if writes, ok := means[bound.Role]; ok {
			all = append(all, fmt.Sprintf("%s for %s (%s)", writes, bound.Telescope, bound.Role))
		}
	}
	return strings.Join(all, "; ")
}
