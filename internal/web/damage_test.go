package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// An entity that is damaged does not hide the others from lists and from the search box.
func TestDamageHidesNothingElse(t *testing.T) {
	path := t.TempDir() + "/archive.db"
	use := func(c *app.Config) { c.Database = "sqlite:" + path }
	s := emptySite(t, use)
	for at, name := range map[string]string{"/sbds/sbd-1": "galaxy", "/sbds/sbd-2": "nebula", "/sbds/sbd-3": "galaxy", "/prjs/prj-1": "nebula"} {
		s.Must("PUT", at, `{"name":"`+name+`"}`)
	}
	for _, id := range []string{"note-1", "note-2"} {
		s.Must("PUT", "/notes/"+id, `{"text":"a word","about":[{"kind":"sbds","id":"sbd-1"}]}`)
	}
	must.Do(t, s.Stop())
	conn := must.Get(sqlite.OpenConn(path, sqlite.OpenReadWrite))(t)
	must.Do(t, sqlitex.ExecuteScript(conn, `UPDATE catalogue SET summary = x'01' WHERE entity IN (SELECT entity FROM heads WHERE identifier IN ('sbd-2', 'note-2'))`, nil))
	must.Do(t, conn.Close())

	s = emptySite(t, use)
	next := regexp.MustCompile(`<a href="([^"]*)" rel="next">`)
	at := "sbds?sort=id"
	for _, want := range []struct {
		status int
		text   string
	}{
		{http.StatusOK, `href="./sbds/sbd-1"`},
		{http.StatusInternalServerError, "SBDefinition sbd-2 is damaged"},
		{http.StatusOK, `href="./sbds/sbd-3"`},
	} {
		page := s.get(t, at)
		if page.Status != want.status || !strings.Contains(page.Text(), want.text) || strings.Contains(page.Text(), "stopped after a second") {
			t.Fatalf("%s is answered %d, without %q:\n%s", at, page.Status, want.text, page.Text())
		}
		if found := next.FindStringSubmatch(page.Text()); found != nil {
			at = strings.ReplaceAll(found[1], "&amp;", "&")
		}
	}
	page := s.get(t, "search?q=nebula")
	for _, want := range []string{`href="./prjs/prj-1"`, "SBDefinition sbd-2 is damaged"} {
		if page.Status != http.StatusOK || !strings.Contains(page.Text(), want) {
			t.Errorf("the search is answered %d, without %q:\n%s", page.Status, want, page.Text())
		}
	}
	if page := s.get(t, "sbds/sbd-1"); page.Status != http.StatusOK || !strings.Contains(page.Text(), "All notes about it") {
		t.Errorf("what a damaged note is about is answered %d:\n%s", page.Status, page.Text())
	}
	s.mustBeSound(t, env.Browser(t), "search?q=nebula", "light")
}
