package web_test

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// A search that finds nothing says which filter to loosen.
func TestASearchThatFindsNothingSaysWhatToLoosen(t *testing.T) {
	s := newSite(t, "")
	s.store(t, "/sbds/sbd-a", `{"name":"alpha beta","telescope":"ska_mid"}`)
	s.store(t, "/sbds/sbd-b", `{"name":"gamma","telescope":"ska_low"}`)
	for asked, want := range map[string]struct{ says, without string }{
		"q=gamma&telescope=ska_mid":                              {"Something is found without one of these", "telescope ska_mid"},
		"q=alpha+gamma":                                          {"Something is found without one of these", "the word gamma"},
		"q=alpha+nothing&telescope=ska_mid":                      {"Something is found without one of these", "the word nothing"},
		"q=nothing&telescope=ska_mars":                           {"Each of these filters finds nothing, even alone", "telescope ska_mars"},
		"q=gamma&telescope=ska_mid&user=nobody":                  {"This filter finds nothing, even alone", "created by nobody"},
		"ref=x&ref_version=2&user=a&user_match_type=starts_with": {"Each of these filters finds nothing", "created by, starts with a"},
	} {
		says := func() (string, bool) {
			page := s.get(t, "sbds?"+asked).Text()
			return page, strings.Contains(page, "Nothing was found") && strings.Contains(page, want.says) && strings.Contains(page, "without “"+want.without+"”")
		}
		page, ok := says()
		for tries := 1; !ok && tries < 20; tries++ { // a busy machine has no time for hints
			page, ok = says()
		}
		if !ok {
			_, notice, _ := strings.Cut(page, "Nothing was found")
			notice, _, _ = strings.Cut(notice, "</div>")
			t.Errorf("%s says\n%s", asked, notice)
		}
	}
	// The link to the search without a word keeps the other filters.
	page := s.get(t, "sbds?q=alpha+nothing&telescope=ska_mid").Text()
	if want := "sbds?q=alpha&amp;telescope=ska_mid"; !strings.Contains(page, want) {
		t.Errorf("the page does not lead to %s", want)
	}
	if found := s.get(t, "sbds?"+url.Values{"q": {"alpha"}, "telescope": {"ska_mid"}}.Encode()).Text(); !strings.Contains(found, "sbd-a") {
		t.Error("nothing is found there")
	}
}

// A filter with a date says that the day begins there: what was created on a day was not
// created until its midnight.
func TestAFilterWithADateSaysItsTime(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/sbds/sbd-1", `{"name":"First"}`)
	today := time.Now().UTC().Format(time.DateOnly)
	for query, want := range map[string]string{
		"created_before=" + today:             "</span> " + today + " 00:00<",
		"last_modified_after=" + today:        "</span> " + today + " 00:00<",
		"created_before=" + today + "T18:00Z": "</span> " + today + "T18:00Z<",
		"q=" + today:                          "</span> " + today + "<",
	} {
		s.says(t, "sbds?"+query, want)
	}
}
