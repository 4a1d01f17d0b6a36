package web_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The boxes of the drawing have the titles of their pages, and blocks say when they began:
// the runs of one SBDefinition have the same name.
func TestRelativesAreToldApart(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/sbds/sbd-1", `{"telescope":"ska_mid","name":"Abell 3667"}`)
	s.store(t, "/sbis/sbi-1", `{"telescope":"ska_mid","sbd_ref":"sbd-1"}`)
	s.store(t, "/ebs/eb-1", `{"telescope":"ska_mid","sbd_ref":"sbd-1","sbi_ref":"sbi-1","request_responses":[`+callIn("m.f", 3600, 3601, false)+`]}`)
	s.store(t, "/ebs/eb-2", `{"telescope":"ska_mid","sbi_ref":"sbi-1","request_responses":[`+callIn("m.f", -1, 60, false)+`]}`)
	s.store(t, "/ebs/eb-3", `{"telescope":"ska_mid","name":"Its own name","sbi_ref":"sbi-1"}`)
	sbd, sbi := "Abell 3667|sbd-1", "Abell 3667|sbi-1"
	first, second, third := "Abell 3667|eb-1|2026-03-01 21:00", "Abell 3667|eb-2|2026-03-01 20:01", "Its own name|eb-3"
	for at, want := range map[string][]string{
		"sbds/sbd-1": {sbd, sbi, first},
		"sbis/sbi-1": {sbd, sbi, first, second, third},
		"ebs/eb-1":   {sbd, sbi, first},
		"ebs/eb-2":   {sbd, sbi, second},
		"ebs/eb-3":   {sbd, sbi, third},
	} {
		var got []string
		for _, box := range regexp.MustCompile(`<svg x="\d+" y="\d+"[^>]*>(.*)</svg>`).FindAllStringSubmatch(s.get(t, at).Text(), -1) {
			var lines []string
			for _, line := range regexp.MustCompile(`<text[^>]*>([^<]*)</text>`).FindAllStringSubmatch(box[1], -1) {
				lines = append(lines, line[1])
			}
			got = append(got, strings.Join(lines, "|"))
		}
		if !cmp.Equal(got, want) {
			t.Errorf("/%s has the boxes %q, want %q", at, got, want)
		}
	}
}
