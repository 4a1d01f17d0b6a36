package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"oda/internal/auth"
)

// tokens are the commands for the file of tokens.
type tokens struct {
	Create tokenCreate `cmd:"" help:"Make a token and print it, once. The file keeps only its hash."`
	List   tokenList   `cmd:"" help:"List the tokens of a file."`
	Revoke tokenRevoke `cmd:"" help:"Remove a token. Servers refuse it within two seconds."`
}

// tokensIn names the file of tokens.
type tokensIn struct {
	File string `required:"" env:"ODA_TOKENS" placeholder:"FILE" help:"File of tokens, as given to \"oda serve --tokens\"."`
}

// tokenCreate makes a token.
type tokenCreate struct {
	tokensIn    `embed:""`
	Name        string    `required:"" placeholder:"NAME" help:"Name of the token. It is the acting user of what is stored with it."`
	Role        auth.Role `required:"" placeholder:"ROLE" help:"What the token allows: reader, recorder, editor or admin. Each includes the ones before."`
	Telescope   names     `placeholder:"T,..." complete:"telescope" help:"Telescopes that the token may write for (default all)."`
	Expires     lifetime  `placeholder:"TIME" help:"How long the token is good, such as 90d, 12h, 30m or 45s (default for ever)."`
	MayNameUser bool      `help:"Let requests with the token name the acting user in X-Forwarded-User."`
}

// Run makes the token and prints it alone, so that a script can take it.
func (t *tokenCreate) Run(s streams) error {
	now := time.Now().UTC().Truncate(time.Second)
	token := auth.Token{Name: t.Name, Role: t.Role, Telescopes: t.Telescope, MayNameUser: t.MayNameUser, Created: now}
	if t.Expires > 0 {
		token.Expires = time.Now().UTC().Add(time.Duration(t.Expires))
	}
	secret, err := auth.CreateToken(t.File, token)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintln(s.out, secret); err != nil {
		// Nobody knows the token, so it must not remain.
		return errors.Join(fmt.Errorf("the token cannot be printed, so there is none: %w", err), auth.RevokeToken(t.File, t.Name))
	}
	return nil
}

// tokenList lists tokens.
type tokenList struct {
	tokensIn `embed:""`
}

// Run prints one line for each token.
func (l *tokenList) Run(s streams) error {
	list, err := auth.ReadTokens(l.File)
	if err != nil {
		return err
	}
	t := table{header: []string{"NAME", "ROLE", "TELESCOPES", "CREATED", "EXPIRES", "MAY NAME USER"}}
	for _, one := range list {
		telescopes, expires, named := "all", "never", "no"
		if len(one.Telescopes) > 0 {
			telescopes = strings.Join(one.Telescopes, ",")
		}
		if !one.Expires.IsZero() {
			expires = one.Expires.Format(time.RFC3339)
		}
		if one.Expired(time.Now()) {
			expires += " (expired)"
		}
		if one.MayNameUser {
			named = "yes"
		}
		t.add(plainCells(one.Name, one.Role.String(), telescopes, one.Created.Format(time.RFC3339), expires, named)...)
	}
	return t.flush(s.out)
}

// tokenRevoke removes a token.
type tokenRevoke struct {
	tokensIn `embed:""`
	Name     string `required:"" placeholder:"NAME" help:"Name of the token."`
}

// Run removes the token.
func (t *tokenRevoke) Run() error { return auth.RevokeToken(t.File, t.Name) }

// names is a list of names, without an empty one: a variable of a script that is
// empty by mistake must not make a token for all telescopes.
type names []string

// UnmarshalText parses a list of names.
func (n *names) UnmarshalText(text []byte) error {
	*n = nil
	for name := range strings.SplitSeq(string(text), ",") {
		if name = strings.TrimSpace(name); name == "" {
			return fmt.Errorf("%q has an empty name; write it as NAME or NAME,NAME", text)
		}
		*n = append(*n, name)
	}
	return nil
}

// lifetime is how long a token is good: a whole number of s, m, h or d.
type lifetime time.Duration

// UnmarshalText parses a lifetime.
func (l *lifetime) UnmarshalText(text []byte) error {
	units := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	if len(text) > 0 {
		unit, known := units[string(text[len(text)-1:])]
		n, err := strconv.ParseInt(string(text[:len(text)-1]), 10, 64)
		if known && err == nil && n > 0 && n <= math.MaxInt64/int64(unit) {
			*l = lifetime(time.Duration(n) * unit)
			return nil
		}
	}
	return fmt.Errorf("%q is not a time; write it as 45s, 30m, 12h or 90d", text)
}
