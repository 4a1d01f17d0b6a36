package recorder_test

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/client"
	"oda/client/recorder"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// statusesOf returns the statuses of a block, the first one first.
func statusesOf(t testing.TB, c *client.Client, block string) []oda.Status {
	t.Helper()
	var all []oda.Status
	for s, err := range c.Statuses(patient(t), oda.Ref{Kind: oda.ExecutionBlock, ID: block}) {
		must.Do(t, err)
		all = append(all, s)
	}
	slices.Reverse(all)
	return all
}

// wantStatuses checks what was said of a block.
func wantStatuses(t testing.TB, c *client.Client, block string, want ...string) {
	t.Helper()
	var got []string
	for _, e := range statusesOf(t, c, block) {
		got = append(got, e.Text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statuses of the block (-want +got):\n%s", diff)
	}
}

func TestAStatusIsSentInItsPlaceAmongTheRecords(t *testing.T) {
	t.Parallel()
	archive := env.Start(t).Forward()
	var mu sync.Mutex
	var heard []string
	refusals := 3
	between := newSwitchboard(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		_, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/ebs/"), "/")
		if what == "request_responses" && refusals > 0 {
			refusals--
			env.Answering(503, "")(w, r)
			return
		}
		if strings.HasPrefix(what, "request_responses") {
			heard = append(heard, fmt.Sprint(strings.Count(string(body), `"request"`), " records"))
		} else if what == "status" {
			heard = append(heard, r.Header.Get("Idempotency-Key")[16:]+" "+what)
		}
		archive.ServeHTTP(w, r)
	}))
	network := newRelay(t)
	c := clientOf(t, network.address())
	dir := t.TempDir()
	rec, _ := opened(t, c, recorder.Options{Dir: dir, CreateTimeout: 50 * time.Millisecond})
	must.Do(t, rec.Say("Executing", ""))
	recordNumbers(t, rec, 1, 3)
	must.Do(t, rec.Say("Paused", ""))
	must.Do(t, rec.Say("Executing", ""))
	recordNumbers(t, rec, 4, 5)
	must.Do(t, rec.End("Observed", ""))
	if got := rec.Lag().Records; got != 9 {
		t.Errorf("%d records and statuses wait, want 9", got)
	}
	network.point(between.Listener.Addr().String())
	closeRecorder(t, rec)
	want := []string{"-1 status", "3 records", "-5 status", "-6 status", "2 records", "-9 status"}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("what was accepted (-want +got):\n%s", diff)
	}
	wantNumbers(t, c, rec.BlockID(), 5)
	wantStatuses(t, c, rec.BlockID(), "Executing", "Paused", "Executing", "Observed")
	wantSent(t, dir)
}

// What is delivered late has the time at which it was said.
func TestALateStatusDoesNotUndoWhatWasSaidSince(t *testing.T) {
	t.Parallel()
	network := newRelay(t)
	archive := env.Start(t)
	network.point(archive.Addr())
	c := clientOf(t, network.address(), client.WithUser("ada"))
	rec, _ := opened(t, c, recorder.Options{})
	block := oda.Ref{Kind: oda.ExecutionBlock, ID: rec.BlockID()}
	must.Do(t, rec.Say("Executing", ""))
	must.Do(t, rec.Flush(patient(t)))
	network.point("")
	before := oda.InstantOf(time.Now())
	must.Do(t, rec.End("Failed", "no beam\n\x1b[31m"+strings.Repeat("é", 2000)))
	after := oda.InstantOf(time.Now())
	must.Get(connect(t, archive).Say(patient(t), block, client.NewStatus{Status: "Observed"}))(t)
	network.point(archive.Addr())
	closeRecorder(t, rec)
	wantStatuses(t, c, rec.BlockID(), "Executing", "Observed", "Failed")
	failed := statusesOf(t, c, rec.BlockID())[2]
	if failed.At < before || failed.At > after || failed.On <= after || failed.By != "ada" {
		t.Errorf("the late one is %+v", failed)
	}
	if want := "no beam\n [31m" + strings.Repeat("é", 1987); failed.Reason != want {
		t.Errorf("the reason is %q", failed.Reason)
	}
	if now := must.Get(c.Status(patient(t), block))(t); now.Text != "Observed" {
		t.Errorf("the current status is %+v", now)
	}
}

func TestABlockEndsOnce(t *testing.T) {
	t.Parallel()
	c := connect(t, env.Start(t))
	rec, _ := opened(t, c, recorder.Options{})
	for _, wrong := range []string{"", strings.Repeat("é", 65), "a\nb", "\xff"} {
		if err := rec.End(wrong, ""); oda.CodeOf(err) != oda.InvalidRequest {
			t.Errorf("the status %q: %v", wrong, err)
		}
	}
	must.Do(t, rec.End(strings.Repeat("é", 64), "\xff"))
	must.Do(t, rec.End("Aborted", "a deferred call"))
	must.Do(t, rec.Record(numbered(1)))
	must.Do(t, rec.Say("Failed", "a second look"))
	closeRecorder(t, rec)
	wantNumbers(t, c, rec.BlockID(), 1)
	wantStatuses(t, c, rec.BlockID(), strings.Repeat("é", 64), "Failed")
	if err := rec.Say("Executing", ""); !errors.Is(err, recorder.ErrClosed) {
		t.Errorf("after Close, Say returns %v", err)
	}
}

func TestAStatusIsStoredOnceIfItsAnswerIsLost(t *testing.T) {
	t.Parallel()
	network := newRelay(t)
	network.point(env.Start(t).Addr())
	c := clientOf(t, network.address())
	rec, _ := opened(t, c, recorder.Options{})
	must.Do(t, rec.Flush(patient(t)))
	for n := 1; n <= 5; n++ {
		network.lose(2)
		must.Do(t, rec.Say("Executing", fmt.Sprint(n)))
		env.Await(t, "the loss of an answer", func() bool { return network.answersLost() == 2 })
		must.Do(t, rec.Flush(patient(t)))
	}
	for i, e := range statusesOf(t, c, rec.BlockID()) {
		if e.Reason != fmt.Sprint(i+1) {
			t.Errorf("status %d is %+v", i+1, e)
		}
	}
	closeRecorder(t, rec)
	wantStatuses(t, c, rec.BlockID(), slices.Repeat([]string{"Executing"}, 5)...)
}

func TestOnlyTheArchiveItselfTakesAStatus(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"a portal's page":              env.Answering(200, "<html></html>"),
		"unrelated JSON":               env.Answering(200, `{"sequence":1}`),
		"a gateway's 422":              env.Answering(422, "{}"),
		"a problem of a newer release": env.Answering(422, `{"type":"urn:oda:problem:moon-phase","detail":"No."}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			between := newSwitchboard(t, env.Start(t).Forward())
			c := clientOf(t, between.URL)
			rec, log := opened(t, c, recorder.Options{})
			between.set(answer)
			must.Do(t, rec.End("Observed", ""))
			env.Await(t, "a message about it", func() bool { return strings.Contains(log.String(), "wait in the spool") })
			if got := rec.Lag().Records; got != 1 || rec.Refused() != 0 {
				t.Errorf("%d statuses wait, %d are refused:\n%s", got, rec.Refused(), log)
			}
			between.set(nil)
			closeRecorder(t, rec)
			wantStatuses(t, c, rec.BlockID(), "Observed")
		})
	}
}

// written returns the text of a segment with these lines, each without checksum and key.
func written(session string, lines ...string) []byte {
	var text []byte
	for n, line := range lines {
		body := fmt.Sprintf("%s-%d %s", session[len(session)-16:], n+1, line)
		text = fmt.Appendf(text, "%08x %s\n", crc32.ChecksumIEEE([]byte(body)), body)
	}
	return text
}

func TestARefusedStatusIsPutAside(t *testing.T) {
	t.Parallel()
	c, dir, session, block := leftOver(t, 1)
	refused := []string{`status {"status":""}`, `status {"status":"x","version":7}`, `status {"status":"x","previous":"Observed"}`, `status {"status":"x","moon":1}`}
	lines := append([]string{`status {"status":"Executing"}`, `record {"request":"scan","request_args":{"n":1}}`}, refused...)
	lines = append(lines, `status {"status":"Observed","class":"done"}`, `status {"status":`, `{"request":"scan"}`)
	must.Do(t, os.WriteFile(filepath.Join(session, "00000001.log"), written(session, lines...), 0o600))
	log := &env.Journal{}
	got := resumeAll(t, dir, log)
	if got.Err != nil || got.Stored != 3 || got.Refused != 4 || got.Damaged != 2 || got.Left != 0 {
		t.Errorf("the session was resumed with %+v", got)
	}
	wantNumbers(t, c, block, 1)
	wantStatuses(t, c, block, "Executing", "Observed")
	aside := content(t, session, "refused.log")
	for _, line := range refused {
		if !strings.Contains(aside, " "+line+"\n") {
			t.Errorf("refused.log lacks %s:\n%s", line, aside)
		}
	}
	if text := content(t, session, "damaged.log"); !strings.Contains(text, "the status is not JSON") || !strings.Contains(text, "it does not say what it is") {
		t.Errorf("damaged.log has:\n%s", text)
	}
	if !strings.Contains(log.String(), "the archive refuses a status") {
		t.Errorf("the log says: %s", log)
	}
}

// A newer program may write what this one cannot send. What comes before is sent, and
// nothing overtakes it.
func TestALineOfAnUnknownSortIsLeftToANewerProgram(t *testing.T) {
	t.Parallel()
	c, dir, session, block := leftOver(t, 1)
	const segment = "00000001.log"
	text := written(session, `record {"request":"scan","request_args":{"n":1}}`, "moon phase=full", `status {"status":"Observed"}`)
	must.Do(t, os.WriteFile(filepath.Join(session, segment), text, 0o600))
	for _, stored := range []int64{1, 0} {
		got := resumeAll(t, dir, &env.Journal{})
		if got.Err == nil || !strings.Contains(got.Err.Error(), `"moon"`) || got.Stored != stored || got.Left != 2 || got.Damaged+got.Refused != 0 {
			t.Errorf("the session was resumed with %+v", got)
		}
	}
	wantNumbers(t, c, block, 1)
	wantStatuses(t, c, block)
	if content(t, session, segment) != string(text) {
		t.Error("the segment has changed")
	}
}

func TestASpoolOfAnotherFormIsLeftAloneAndNamed(t *testing.T) {
	t.Parallel()
	c, dir, session, block := leftOver(t, 1)
	file := content(t, session, "block.json")
	before := content(t, session, "00000001.log")
	for _, form := range []string{"1", "3"} {
		must.Do(t, os.WriteFile(filepath.Join(session, "block.json"), []byte(strings.Replace(file, `"spool":2`, `"spool":`+form, 1)), 0o600))
		got := resumeAll(t, dir, &env.Journal{})
		status := must.Get(recorder.Status(dir))(t)
		for _, err := range []error{got.Err, status[0].Err} {
			if err == nil || !strings.Contains(err.Error(), "of form "+form) || got.Dir != session || status[0].Dir != session {
				t.Errorf("a spool of form %s: %+v %+v", form, got, status)
			}
		}
		if content(t, session, "00000001.log") != before {
			t.Error("the segment has changed")
		}
	}
	wantNumbers(t, c, block, 0)
}
