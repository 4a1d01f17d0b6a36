package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"strings"

	"oda"
	"oda/client"
)

// remote says which archive a command uses.
type remote struct {
	URL string `name:"url" env:"ODA_URL,ODA_URI" placeholder:"URL" help:"Address of the archive, with or without /api/v1 (default ${archive})."`
}

// defaultArchive is the default address of "oda serve".
const defaultArchive = "http://127.0.0.1:8080"

// archive returns a client for the archive.
func (r remote) archive(context.Context) (*client.Client, error) { return r.as("") }

// as returns a client for the archive that acts as a user.
func (r remote) as(user string) (*client.Client, error) {
	if r.URL == "" {
		r.URL = defaultArchive
	}
	archive, err := client.New(r.URL, client.WithUser(user))
	if refused, ok := errors.AsType[*oda.Error](err); ok {
		return nil, &failure{exitUsage, refused.Detail}
	}
	if err != nil {
		return nil, &failure{exitUsage, fmt.Sprintf("%v (set it with --url or ODA_URL)", err)}
	}
	return archive, nil
}

// acting says which user a command acts as.
type acting struct {
	remote
	User string `env:"ODA_USER" placeholder:"NAME" help:"User to act as (default without a token: your name in JupyterHub or in the operating system)."`
}

// archive returns a client that acts as the user. A token may be bound to its owner. The
// archive then ignores the user that a request names, so such a command is refused.
func (a acting) archive(ctx context.Context) (*client.Client, error) {
	name, from := a.acting()
	archive, err := a.as(name)
	if err != nil || a.User == "" || !hasToken() {
		return archive, err
	}
	switch caller, err := archive.Whoami(ctx); {
	case oda.CodeOf(err) == oda.NoSuchPath: // an older archive, or none
		return archive, nil
	case err != nil:
		return nil, explain(archive, from, err)
	case caller.User != name:
		return nil, &failure{exitUsage, fmt.Sprintf("your token belongs to %s and may not act as %s; "+
			"leave out %s, or use a token made with \"oda token create --may-name-user\"", visible(caller.User), visible(name), from)}
	}
	return archive, nil
}

// hasToken reports whether requests carry a token.
func hasToken() bool { return os.Getenv("ODA_TOKEN") != "" || os.Getenv("ODA_TOKEN_FILE") != "" }

// acting returns the acting user, and where the name comes from. It is empty if the
// archive decides: it knows the owner of a token.
func (a acting) acting() (name, from string) {
	switch {
	case a.User != "":
		return a.User, "--user or ODA_USER"
	case hasToken():
		return "", ""
	}
	if name = strings.TrimSpace(os.Getenv("JUPYTERHUB_USER")); oda.ValidUser(name) {
		return name, "JUPYTERHUB_USER"
	}
	if own, err := user.Current(); err == nil && oda.ValidUser(own.Username) {
		return own.Username, "the operating system"
	}
	return "", ""
}

// failure is an error with its own exit code. Only its text is printed.
type failure struct {
	exit int
	text string
}

func (f *failure) Error() string { return f.text }

// failureOf returns an error as a failure.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	return &failure{exitFailed, err.Error()}
}

// lost reports whether the request was sent but its answer not received.
func lost(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, client.ErrNoAnswer) && !(ok && op.Op == "dial")
}

// explain turns an error of the client into a message for a person at a
// terminal.
func explain(archive *client.Client, about string, err error) error {
	refused, ours := errors.AsType[*oda.Error](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, client.ErrNoAnswer):
		hint := "; is it running? Set its address with --url or ODA_URL"
		if lost(err) {
			hint = ""
		}
		if errors.Is(err, http.ErrSchemeMismatch) {
			hint = "; write http:// instead of https:// in its address"
		}
		if broken, ok := errors.AsType[*url.Error](err); ok {
			err = broken.Err // without the request, which the user did not write
		}
		return &failure{exitFailed, fmt.Sprintf("%s: no answer from the archive at %s: %s%s",
			about, archive.Address(), strings.TrimPrefix(err.Error(), client.ErrNoAnswer.Error()+": "), hint)}
	case !ours:
		return &failure{exitFailed, fmt.Sprintf("%s: %v", about, err)}
	}
	text := refused.Detail
	for _, fault := range refused.Faults {
		if !strings.Contains(refused.Detail, fault.Detail) {
			place := fault.Pointer
			if name, ok := strings.CutPrefix(place, "query:"); ok { // which a person has written as a flag
				place = "--" + name
			}
			text += fmt.Sprintf(" %s: %s.", place, strings.TrimSuffix(fault.Detail, "."))
		}
	}
	text = fmt.Sprintf("%s: %s (%s", about, strings.Join(strings.Fields(text), " "), refused.Code)
	if answer, ok := errors.AsType[*client.Answer](err); ok && answer.Status >= 500 && answer.RequestID != "" {
		text += ", request id " + answer.RequestID
	}
	text += ")"
	switch status := client.Status(err); {
	case refused.Code == oda.NotFound:
		return &failure{exitNotFound, text}
	case status == http.StatusPreconditionFailed || status == http.StatusUnprocessableEntity:
		return &failure{exitConflict, text}
	case status == http.StatusUnauthorized:
		text += "; the token is taken from ODA_TOKEN, or from the file that ODA_TOKEN_FILE names"
	case refused.Code == oda.NoSuchPath && strings.HasPrefix(refused.Detail, "There is nothing at this path"): // a backup says why itself
		text += fmt.Sprintf("; the address is %s; set it with --url or ODA_URL", archive.Address())
	case refused.Code == oda.Internal && status != http.StatusInternalServerError:
		text += fmt.Sprintf("; the address is %s", archive.Address())
	}
	return &failure{exitFailed, text}
}

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
		return &failure{exitFailed, fmt.Sprintf("the archive at %s does not say: the address is wrong (set it with --url or ODA_URL), or it runs an old version of oda", archive.Address())}
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
		text = "nothing: the archive is open and accepts any name"
		if from != "" {
			text += "; this one is from " + from
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
