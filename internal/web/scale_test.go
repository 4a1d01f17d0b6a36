//go:build !race

package web_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"oda/internal/test/env"
	"oda/internal/test/fault"
)

// What a large archive has.
const (
	manyEntities = 100_000
	manyCalls    = 50_000  // in its longest block, all in one night
	busyNight    = 900     // blocks in another night
	longDocument = 5 << 20 // bytes
)

// serverTime is what a page may take of a processor, apart from checking the digest of
// the longest document: some processors have no instructions for that.
const serverTime = 50 * time.Millisecond

// fillLarge stores a large archive: half of it SBDefinitions, which have a word in
// common, a block with many calls, a night with many blocks, and a long document.
func fillLarge(t *testing.T, s site) {
	t.Helper()
	put := func(collection string, n int, document func(i int) string) {
		for first := 0; first < n; first += 5000 {
			var body strings.Builder
			body.WriteString(`{"` + collection + `":[`)
			for i := first; i < min(n, first+5000); i++ {
				if i > first {
					body.WriteByte(',')
				}
				body.WriteString(document(i))
			}
			body.WriteString(`]}`)
			s.Must("PUT", "/", body.String())
		}
	}
	telescope := func(i int) string { return []string{"ska_mid", "ska_low"}[i%2] }
	put("sbds", manyEntities/2, func(i int) string {
		return fmt.Sprintf(`{"sbd_id":"sbd-%d","name":"Survey field %d","telescope":"%s","description":"Deep survey of the southern sky, pass %d",
			"targets":[{"name":"field %d","ra":%d.5,"dec":-%d.5}]}`, i, i, telescope(i), i%7, i, i%360, i%90)
	})
	put("sbis", manyEntities/4, func(i int) string {
		return fmt.Sprintf(`{"sbi_id":"sbi-%d","telescope":"%s","sbd_ref":"sbd-%d","eb_ref":"eb-%d"}`, i, telescope(i), i, i)
	})
	put("ebs", manyEntities/4-1000-busyNight, func(i int) string {
		return fmt.Sprintf(`{"eb_id":"eb-%d","telescope":"%s","sbd_ref":"sbd-%d","sbi_ref":"sbi-%d","request_responses":[
			{"request":"control.scan","request_sent_at":"%s","status":"%s"}]}`,
			i, telescope(i), i, i, time.Date(2024, 1, 1, 12, i/1000, 0, 0, time.UTC).AddDate(0, 0, i%700).Format(time.RFC3339), []string{"OK", "ERROR"}[i/99%2])
	})
	put("ebs", busyNight, func(i int) string {
		var calls []string
		for j := range 20 {
			calls = append(calls, fmt.Sprintf(`{"request":"control.scan","request_sent_at":"%s","status":"%s"}`,
				time.Date(2026, 3, 1, 12, i, j, 0, time.UTC).Format(time.RFC3339), []string{"OK", "ERROR"}[i*j%99/98]))
		}
		return fmt.Sprintf(`{"eb_id":"eb-night-%d","telescope":"%s","sbd_ref":"sbd-%d","request_responses":[%s]}`, i, telescope(i), i, strings.Join(calls, ","))
	})
	put("prjs", 1000, func(i int) string {
		return fmt.Sprintf(`{"prj_id":"prj-%d","name":"Survey %d","obs_blocks":[{"obs_block_id":"ob-%d","sbd_ids":["sbd-%d"]}]}`, i, i, i, i)
	})
	var calls []string
	for i := range manyCalls {
		calls = append(calls, fmt.Sprintf(`{"request":"control.point","request_args":{"kwargs":{"dish":%d}},"request_sent_at":"2026-02-01T12:00:00Z","status":"OK"}`, i))
	}
	s.Must("PUT", "/ebs/eb-long", `{"telescope":"ska_mid","sbd_ref":"sbd-1","request_responses":[`+strings.Join(calls, ",")+`]}`)
	const value = `{"name":"a value","numbers":[1,2,3.5],"text":"some text that is not short"},`
	s.Must("PUT", "/sbds/sbd-huge", `{"name":"Long","list":[`+strings.Repeat(value, longDocument/len(value))+`0]}`)
}

// Every page takes little of the server, however much there is in the archive. It is
// the processor that is measured, and the least of several tries: what other programs
// on the machine, the garbage collector or the first look at a page add is not the
// page's.
func TestEveryPageIsQuickInALargeArchive(t *testing.T) {
	env.ProofOnly(t)
	s := emptySite(t)
	fillLarge(t, s)
	digest, document := time.Hour, make([]byte, longDocument)
	for range 5 {
		before := fault.ProcessorTime()
		sha256.Sum256(document)
		digest = min(digest, fault.ProcessorTime()-before)
	}
	for _, at := range []string{
		"", "sbds", "sbis", "ebs", "prjs", "sbds?sort=id", "sbds?sort=-modified", "ebs?telescope=ska_low",
		"sbds?q=survey", "sbds?q=sur", "sbds?q=deep+survey", "sbds?q=survey+4711", "sbds?q=southern+sky&telescope=ska_mid", "sbds?q=survey&sort=created", "sbds?q=survey&sort=id",
		"sbds?q=survey&user=nobody", "sbds?cone=201.5,-43.5,1", "sbds?ref=nothing", "ebs?ref=sbd-17", "sbds?q=nothinglikethis", "sbds?q=nothinglikethis&telescope=ska_mid&user=x",
		"sbds?q=survey&telescope=ska_mars", "ebs?created_after=2001-01-01&created_before=2002-01-01&telescope=ska_mid",
		"search?q=survey", "search?q=sbd-17+field", "search?q=nothinglikethis", "search?q=sur",
		"sbds/sbd-17", "sbis/sbi-17", "ebs/eb-17", "ebs/eb-long", "ebs/eb-long?calls=failed", "ebs/eb-long?function=control.none", fmt.Sprintf("ebs/eb-long?after=%d", manyCalls*4/5), "sbds/sbd-huge", "prjs/prj-17",
		"compare?from=sbds/sbd-1@1&to=sbds/sbd-2@1", "compare?from=ebs/eb-long@1&to=ebs/eb-1@1", "compare?from=ebs/eb-long@1&to=ebs/eb-long@1&what=calls&after=2000",
		"night?date=2024-06-17", "night?date=2026-02-01", "night?date=2026-03-01", "night?date=2001-01-01", "changes",
	} {
		var took []time.Duration
		for range 3 {
			before := fault.ProcessorTime()
			reply := s.get(t, at, "Accept-Encoding", "gzip")
			took = append(took, fault.ProcessorTime()-before)
			if reply.Status != http.StatusOK && reply.Status != http.StatusSeeOther {
				t.Fatalf("%s answers %d", at, reply.Status)
			}
		}
		first := took[0]
		slices.Sort(took)
		t.Logf("%-60s %v, at first %v", at, took[0].Round(100*time.Microsecond), first.Round(100*time.Microsecond))
		if most := serverTime + digest; took[0] > most {
			t.Errorf("%s takes %v of a processor, more than %v", at, took, most)
		}
	}
}
