package web_test

import (
	"net/http"
	"strings"
	"testing"
)

// A telescope can be written in a filter as the pages write it, and the address then has it
// as documents do.
func TestFiltersKnowATelescopeAsPagesWriteIt(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-mid", []string{callIn("m.f", 0, 1, false)})
	for _, written := range []string{"SKA-Mid", "ska+mid", "+Ska_Mid+"} {
		for at, want := range map[string]string{
			"ebs?telescope=":                   "ebs?telescope=ska_mid",
			"night?date=2026-03-01&telescope=": "night?date=2026-03-01&telescope=ska_mid",
		} {
			s.leads(t, at+written, want)
			s.says(t, want, "/ebs/eb-mid")
		}
	}
}

// A form with a condition also sends the empty field for another one.
func TestAnEmptyConditionIsLeftOut(t *testing.T) {
	s := emptySite(t)
	s.leads(t, "ebs?where=/n+%3D+1&where=", "ebs?where=/n+%3D+1")
}

// Blanks around what somebody fills in mean nothing: the keyboard of a phone adds one after
// a word, and who copies an identifier easily copies one with it.
func TestBlanksAroundAFilterMeanNothing(t *testing.T) {
	s := emptySite(t)
	s.Must("PUT", "/sbds/sbd-1", `{"name":"First","telescope":"ska_mid"}`)
	s.storeCalls(t, "eb-1", []string{`{"request":" spaced ","status":"OK","request_sent_at":"2026-03-01T20:00:00Z"}`})
	for at, want := range map[string]string{
		"changes?id=%20eb-1%20":                    "changes?id=eb-1",
		"night?date=2026-03-01%20":                 "night?date=2026-03-01",
		"night?date=2026-03-01&zone=Etc/UTC%C2%A0": "night?date=2026-03-01&zone=Etc/UTC",
		"sbds?telescope=ska_mid%20&q=first%20":     "sbds?q=first&telescope=ska_mid",
		"sbds?created_after=2026-01-01%20":         "sbds?created_after=2026-01-01",
		"ebs/eb-1?at=2999-01-01%20":                "eb-1?at=2999-01-01",
	} {
		s.leads(t, at, want)
	}
	// The name of a function is not filled in, and may have any.
	at := "ebs/eb-1?function=%20spaced%20"
	if answer := s.get(t, at); answer.Status != http.StatusOK || !strings.Contains(answer.Text(), `id="call-1"`) {
		t.Errorf("%s is answered %d, without the call", at, answer.Status)
	}
}
