package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda/internal/app"
	"oda/internal/test/must"
)

// renamed starts an archive with blocks that ran before and after their SBDefinition was
// renamed, in all the ways to refer to it.
func renamed(t *testing.T) site {
	t.Helper()
	s := emptySite(t)
	call := `"request_responses":[` + callIn("m.f", 0, 1, false) + `]}`
	s.store(t, "/sbds/sbd-1", `{"telescope":"ska_mid","name":"Before"}`)
	s.store(t, "/sbis/sbi-old", `{"telescope":"ska_mid","sbd_ref":"sbd-1","sbd_version":1}`)
	s.store(t, "/sbis/sbi-silent", `{"telescope":"ska_mid","sbd_ref":"sbd-1"}`)
	s.store(t, "/ebs/eb-named", `{"telescope":"ska_mid","sbd_ref":"sbd-1","sbd_version":1,`+call)
	s.store(t, "/ebs/eb-silent", `{"telescope":"ska_mid","sbd_ref":"sbd-1",`+call)
	s.store(t, "/sbds/sbd-1", `{"telescope":"ska_mid","name":"After"}`)
	s.store(t, "/ebs/eb-late", `{"telescope":"ska_mid","sbd_id":"sbd-1","sbd_version":1,`+call) // as older documents name it
	s.store(t, "/ebs/eb-through", `{"telescope":"ska_mid","sbi_ref":"sbi-old",`+call)
	s.store(t, "/ebs/eb-both", `{"telescope":"ska_mid","sbi_ref":"sbi-old","sbd_ref":"sbd-1",`+call)
	s.store(t, "/ebs/eb-new", `{"telescope":"ska_mid","sbd_ref":"sbd-1","sbd_version":2,`+call)
	s.store(t, "/ebs/eb-now", `{"telescope":"ska_mid","sbi_ref":"sbi-silent",`+call)
	return s
}

// ranAs are the names that blocks and instances of the renamed SBDefinition have.
var ranAs = map[string]string{
	"sbi-old": "Before", "sbi-silent": "Before", "eb-named": "Before", "eb-silent": "Before", "eb-late": "Before", "eb-through": "Before", "eb-both": "Before",
	"eb-new": "After", "eb-now": "After",
}

// A later version of an SBDefinition has another name. What ran before keeps the name that
// it ran under, wherever it is shown.
func TestThePastKeepsItsName(t *testing.T) {
	s := renamed(t)
	named := regexp.MustCompile(`<span class="name">([^<]*)</span> <span class="id">([a-z0-9-]+)</span>`)
	for at, rows := range map[string]int{
		"ebs": 7, "sbis": 2, "": 15, "changes": 11, "search?q=after": 8, "night?date=2026-03-01": 7,
	} {
		page := s.get(t, at)
		found := named.FindAllStringSubmatch(page.Text(), -1)
		if len(found) != rows {
			t.Errorf("/%s has %d names, want %d: %q", at, len(found), rows, found)
		}
		for _, one := range found {
			if want, ran := ranAs[one[2]]; ran && one[1] != want {
				t.Errorf("/%s calls %s %q, want %q", at, one[2], one[1], want)
			}
		}
	}
	night := s.get(t, "night?date=2026-03-01").Text()
	for id, want := range ranAs {
		page := s.get(t, kindOf(id)+id).Text()
		if heading := "<h1>" + want + "</h1>"; !strings.Contains(page, heading) {
			t.Errorf("the page of %s does not have %s", id, heading)
		}
		if strings.HasPrefix(id, "eb-") && !strings.Contains(night, "<title>"+want+" "+id+":") {
			t.Errorf("the drawing of the night does not call %s %q", id, want)
		}
	}
}

// The drawing on the page of a Project goes on to what ran.
func TestThePastKeepsItsNameInTheDrawingOfAProject(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/prjs/prj-1", `{"obs_blocks":[{"sbd_ids":["sbd-1"]}]}`)
	s.store(t, "/sbds/sbd-1", `{"name":"Before"}`)
	s.store(t, "/sbis/sbi-1", `{"sbd_ref":"sbd-1","sbd_version":1}`)
	s.store(t, "/ebs/eb-1", `{"sbi_ref":"sbi-1"}`)
	s.store(t, "/sbds/sbd-1", `{"name":"After"}`)
	page := s.get(t, "prjs/prj-1").Text()
	for _, title := range []string{"SBDefinition sbd-1: After", "SBInstance sbi-1: Before", "ExecutionBlock eb-1: Before"} {
		if !strings.Contains(page, "<title>"+title) {
			t.Errorf("the drawing has no %q", title)
		}
	}
}

func kindOf(id string) string {
	if strings.HasPrefix(id, "sbi") {
		return "sbis/"
	}
	return "ebs/"
}

// Around a block, its SBDefinition is the version that ran, and its other blocks have
// their own names.
func TestAGraphShowsWhatRan(t *testing.T) {
	s := renamed(t)
	for at, want := range map[string][]string{
		"ebs/eb-named":   {"Before|sbd-1|./../sbds/sbd-1?version=1", "Before|eb-named|"},
		"ebs/eb-silent":  {"Before|sbd-1|./../sbds/sbd-1?version=1", "Before|eb-silent|"},
		"ebs/eb-new":     {"After|sbd-1|./../sbds/sbd-1", "After|eb-new|"},
		"ebs/eb-through": {"Before|sbd-1|./../sbds/sbd-1?version=1", "Before|sbi-old|./../sbis/sbi-old", "Before|eb-through|"},
		"sbis/sbi-old":   {"Before|sbd-1|./../sbds/sbd-1?version=1", "Before|sbi-old|", "Before|eb-both|./../ebs/eb-both", "Before|eb-through|./../ebs/eb-through"},
		"sbis/sbi-silent": {
			"Before|sbd-1|./../sbds/sbd-1?version=1", "Before|sbi-silent|", "After|eb-now|./../ebs/eb-now",
		},
		"sbds/sbd-1": {
			"After|sbd-1|", "Before|sbi-old|./../sbis/sbi-old", "Before|sbi-silent|./../sbis/sbi-silent",
			"After|eb-new|./../ebs/eb-new", "Before|eb-both|./../ebs/eb-both", "Before|eb-late|./../ebs/eb-late", "Before|eb-named|./../ebs/eb-named", "Before|eb-silent|./../ebs/eb-silent",
		},
	} {
		if got := boxes(s.get(t, at).Text()); !cmp.Equal(got, want) {
			t.Errorf("/%s has the boxes\n%q, want\n%q", at, got, want)
		}
	}
	for _, id := range []string{"eb-named", "eb-silent"} {
		if page := s.get(t, "ebs/"+id).Text(); !strings.Contains(page, `<dt>sbd_ref</dt><dd>Before <a class="id" href="./../sbds/sbd-1?version=1">`) {
			t.Errorf("the reference of %s does not lead to the version that ran, with its name", id)
		}
	}
	if page := s.get(t, "sbds/sbd-1?version=1").Text(); !strings.Contains(page, "<h1>Before</h1>") {
		t.Error("the older version has not its own name")
	}
}

// boxes are the boxes of a drawing: name, identifier, and where they lead.
func boxes(page string) (all []string) {
	for _, box := range regexp.MustCompile(`(?:<a href="([^"]*)" class="box">\s*)?<title>[^<]*</title>\s*<rect[^>]*>\s*<svg x="\d+" y="\d+"[^>]*>(.*)</svg>`).FindAllStringSubmatch(page, -1) {
		lines := regexp.MustCompile(`<text[^>]*>([^<]*)</text>`).FindAllStringSubmatch(box[2], -1)
		all = append(all, lines[0][1]+"|"+lines[1][1]+"|"+box[1])
	}
	return all
}

// A comparison names both sides as they ran.
func TestAComparisonNamesWhatRan(t *testing.T) {
	s := renamed(t)
	s.store(t, "/ebs/eb-named", `{"telescope":"ska_mid","sbd_ref":"sbd-1","sbd_version":2}`)
	heads := regexp.MustCompile(`<h2><a href="[^"]*">([^<]*)</a></h2>`)
	for at, want := range map[string][2]string{
		"from=ebs/eb-silent@1&to=ebs/eb-new@1":               {"Before", "After"},
		"from=ebs/eb-silent@1&to=ebs/eb-new@1&what=document": {"Before", "After"},
		"from=ebs/eb-named@1&to=ebs/eb-named@2":              {"Before", "After"},
		"from=ebs/eb-through@1&to=ebs/eb-now@1":              {"Before", "After"},
		"from=sbds/sbd-1@1&to=sbds/sbd-1@2":                  {"Before", "After"},
	} {
		var got []string
		for _, head := range heads.FindAllStringSubmatch(s.get(t, "compare?"+at).Text(), -1) {
			got = append(got, head[1])
		}
		if !cmp.Equal(got, want[:]) {
			t.Errorf("%s has the heads %q, want %q", at, got, want)
		}
	}
}

// A change that stored a version has the name of that version.
func TestAChangeHasTheNameOfItsVersion(t *testing.T) {
	s := renamed(t)
	s.store(t, "/prjs/prj-1", `{"name":"A survey"}`, `{"name":"The survey"}`)
	var got []string
	for _, row := range regexp.MustCompile(`<span class="name">([^<]*)</span> <span class="id">((?:sbd|prj)-1)</span>`).FindAllStringSubmatch(s.get(t, "changes").Text(), -1) {
		got = append(got, row[1])
	}
	if want := []string{"The survey", "A survey", "After", "Before"}; !cmp.Equal(got, want) {
		t.Errorf("the changes are of %q, want %q", got, want)
	}
}

// A version that is damaged is called what the SBDefinition is called today, and hides nothing.
func TestADamagedVersionHasTheCurrentName(t *testing.T) {
	path := t.TempDir() + "/archive.db"
	use := func(c *app.Config) { c.Database = "sqlite:" + path }
	s := emptySite(t, use)
	s.store(t, "/sbds/sbd-1", `{"name":"Before"}`, `{"name":"Between"}`, `{"name":"After"}`)
	s.store(t, "/ebs/eb-1", `{"sbd_ref":"sbd-1","sbd_version":1}`)
	s.store(t, "/ebs/eb-2", `{"sbd_ref":"sbd-1","sbd_version":2}`)
	must.Do(t, s.Stop())
	conn := must.Get(sqlite.OpenConn(path, sqlite.OpenReadWrite))(t)
	must.Do(t, sqlitex.ExecuteScript(conn, `UPDATE versions SET text = CAST(replace(CAST(text AS TEXT), 'Before', 'Behind') AS BLOB) WHERE CAST(text AS TEXT) LIKE '%Before%'`, nil))
	if conn.Changes() != 1 {
		t.Fatalf("%d versions are damaged", conn.Changes())
	}
	must.Do(t, conn.Close())
	s = emptySite(t, use)
	for at, names := range map[string][]string{"ebs?sort=id": {"After", "Between"}, "ebs/eb-1": {"After"}, "ebs/eb-2": {"Between"}} {
		page := s.get(t, at)
		for _, name := range names {
			if page.Status != http.StatusOK || !strings.Contains(page.Text(), ">"+name+"<") {
				t.Errorf("/%s is answered %d, without %q", at, page.Status, name)
			}
		}
	}
}
