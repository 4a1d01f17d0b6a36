package recorder

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"oda/client"
)

// archives are the archives that sessions name, each with one client.
type archives struct {
	options  ResumeOptions
	tokenFor string // the server that the token is for; empty if none is named
	known    map[archiveOf]archive
}

type archiveOf struct{ url, user string }

// archive is an archive to send a session to.
type archive struct {
	*client.Client
	withheld bool // it gets no token
}

func newArchives(options ResumeOptions) *archives {
	own := cmp.Or(options.URL, options.TokenFor, os.Getenv("ODA_URL"), os.Getenv("ODA_URI"))
	server, _ := serverOf(own) // of what is no address there is none
	return &archives{options: options, tokenFor: server, known: make(map[archiveOf]archive)}
}

// of returns the archive of a session. Whoever could write to the spool must not choose
// who gets the token: it is sent to no server but the one that the caller has named.
func (a *archives) of(file blockFile) (archive, error) {
	to := archiveOf{cmp.Or(a.options.URL, file.URL), file.User}
	if known, ok := a.known[to]; ok {
		return known, nil
	}
	server, err := serverOf(to.url)
	if err != nil {
		return archive{}, err
	}
	options := append([]client.Option{client.WithUser(to.user), client.WithLogger(a.options.Logger)}, a.options.Client...)
	withheld := server != a.tokenFor
	if withheld {
		options = append(options, client.WithToken(""))
	}
	made, err := client.New(to.url, options...)
	if err != nil {
		return archive{}, err
	}
	a.known[to] = archive{made, withheld}
	return a.known[to], nil
}

func (a *archives) close() {
	for _, one := range a.known {
		one.CloseIdleConnections()
	}
}

// explain says why an archive that wants a token got none.
func (a archive) explain(err error) error {
	if !a.withheld || client.Status(err) != http.StatusUnauthorized {
		return err
	}
	return &stuckError{fmt.Errorf("%w (no token was sent to %s, which only the spool names; if it is your archive, set ODA_URL to its address)", err, a.Address())}
}

// serverOf returns scheme, host and port of the address of an archive.
func serverOf(address string) (string, error) {
	c, err := client.New(address)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(c.URL())
	if err != nil {
		return "", err
	}
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return fmt.Sprintf("%s://%s:%s", u.Scheme, strings.ToLower(u.Hostname()), cmp.Or(u.Port(), port)), nil
}
