package recorder_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/client"
	"oda/client/recorder"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// content reads a file of a session.
func content(t testing.TB, session, name string) string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(session, name)))(t)
	return string(text)
}

// leftOver returns a spool with one session of records 1 to last, for a block
// whose archive has received none of them.
func leftOver(t *testing.T, last int) (c *client.Client, dir, session, block string) {
	t.Helper()
	network := newRelay(t)
	archive := env.Start(t)
	network.point(archive.Addr())
	c = clientOf(t, network.address())
	dir = t.TempDir()
	rec, _ := opened(t, c, recorder.Options{Dir: dir})
	network.point("")
	recordNumbers(t, rec, 1, last)
	leave(t, rec)
	network.point(archive.Addr())
	return c, dir, sessionsIn(t, dir)[0], rec.BlockID()
}

// resumed resumes a spool with so many sessions, and returns their outcomes.
func resumed(t testing.TB, ctx context.Context, dir string, sessions int, options recorder.ResumeOptions) []recorder.Resumed {
	t.Helper()
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	results := must.Get(recorder.Resume(ctx, dir, options))(t)
	if len(results) != sessions {
		t.Fatalf("%d sessions were resumed, want %d: %+v", len(results), sessions, results)
	}
	return results
}

// resumeAll resumes a spool with one session, and returns its outcome.
func resumeAll(t testing.TB, dir string, log *env.Journal) recorder.Resumed {
	t.Helper()
	return resumed(t, patient(t), dir, 1, recorder.ResumeOptions{Logger: log.Logger()})[0]
}

func TestTheSpoolHasTheDocumentedFormat(t *testing.T) {
	t.Parallel()
	c := clientOf(t, away(t), client.WithUser("ada"))
	dir := t.TempDir()
	rec, _ := opened(t, c, recorder.Options{Dir: dir, CreateTimeout: time.Millisecond, Document: []byte(`{"telescope": "<mid>"}`)})
	for _, record := range []string{`{"request":"a b"}`, `{ "request": "é" }`} {
		must.Do(t, rec.RecordJSON([]byte(record)))
	}
	leave(t, rec)
	session := sessionsIn(t, dir)[0]
	block, id, _ := strings.Cut(filepath.Base(session), ".")
	if block != rec.BlockID() || len(id) != 16 || strings.Trim(id, "0123456789abcdef") != "" {
		t.Errorf("the session is %s", session)
	}
	want := fmt.Sprintf(`{"spool":2,"eb_id":%q,"url":%q,"user":"ada","create":{"telescope":"<mid>"}}`+"\n", block, c.Address())
	if diff := cmp.Diff(want, content(t, session, "block.json")); diff != "" {
		t.Errorf("block.json (-want +got):\n%s", diff)
	}
	lines := strings.Split(content(t, session, "00000001.log"), "\n")
	if len(lines) != 3 || lines[2] != "" || lines[0][8:] != " "+id+`-1 record {"request":"a b"}` || lines[1][8:] != " "+id+`-2 record {"request":"é"}` {
		t.Errorf("the segment has %q", lines)
	}
	if info, err := os.Stat(session); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("other users can read the session: %v %v", info.Mode(), err)
	}
}

// This session was written by another program, byte for byte.
func TestASessionOfAnotherProgramIsShipped(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	dir := t.TempDir()
	session := filepath.Join(dir, "eb-a.b-1.0123456789abcdef")
	for name, text := range map[string]string{
		"block.json":   `{"create": {"telescope": "\u006did", "request_responses": []}, "spool": 2, "eb_id": "eb-a.b-1", "url": "` + archive.URL() + `"}`,
		"00000003.log": "a663ea7e 0123456789abcdef-1 record {\"request\":\"scan\"}\n",
	} {
		must.Do(t, errors.Join(os.MkdirAll(session, 0o700), os.WriteFile(filepath.Join(session, name), []byte(text), 0o600)))
	}
	if got := resumeAll(t, dir, &env.Journal{}); got.Err != nil || got.Stored != 1 {
		t.Fatalf("the session was resumed with %+v", got)
	}
	records := recordsOf(t, connect(t, archive), "eb-a.b-1")
	if len(records) != 1 || records[0].Key != "0123456789abcdef-1" || string(records[0].Text) != `{"request":"scan"}` {
		t.Errorf("the block has %+v", records)
	}
}

func TestADamagedSpoolIsShippedExceptItsDamagedLines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		damage  func(segment []byte) []byte
		missing []int  // numbers that cannot be shipped
		reason  string // in damaged.log
		kept    int    // lines there
	}{
		"cut off in the middle of the last record": {
			func(s []byte) []byte { return s[:len(s)-20] }, []int{10}, "the line is cut off", 1,
		},
		"a flipped bit in a record": {
			func(s []byte) []byte { s[line(s, 4)+60] ^= 0x04; return s }, []int{4}, "the checksum does not match", 1,
		},
		"a flipped bit in a checksum": {
			func(s []byte) []byte { s[line(s, 4)+3] ^= 0x01; return s }, []int{4}, "the checksum does not match", 1,
		},
		"a flipped bit in a line break": {
			func(s []byte) []byte { s[line(s, 5)-1] ^= 0x10; return s }, []int{4, 5}, "the checksum does not match", 1,
		},
		"a hole of zeros at the end": {
			func(s []byte) []byte { return append(s, make([]byte, 4096)...) }, nil, "the line is cut off", 1,
		},
		"lines of something else": {
			func(s []byte) []byte { return append(append([]byte("\n#\nhello\n"), s...), "bye\n"...) }, nil, "not a line of a spool", 4,
		},
		"a line of another session": {
			func(s []byte) []byte {
				return append(s, "a663ea7e 0123456789abcdef-1 record {\"request\":\"scan\"}\n"...)
			},
			nil, "the key is not one of this session", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const last = 10
			c, dir, session, block := leftOver(t, last)
			path := filepath.Join(session, "00000001.log")
			damaged := test.damage([]byte(content(t, session, "00000001.log")))
			must.Do(t, os.WriteFile(path, bytes.Clone(damaged), 0o600))
			var want []int
			for n := 1; n <= last; n++ {
				if len(test.missing) == 0 || n < test.missing[0] || n > test.missing[len(test.missing)-1] {
					want = append(want, n)
				}
			}
			log := &env.Journal{}
			got := resumeAll(t, dir, log)
			if got.Err != nil || got.Stored != int64(len(want)) || got.Damaged != int64(test.kept) || got.Left != 0 {
				t.Errorf("the session was resumed with %+v", got)
			}
			if diff := cmp.Diff(want, stored(t, c, block)); diff != "" {
				t.Errorf("records in the archive (-want +got):\n%s", diff)
			}
			if text := content(t, session, "damaged.log"); strings.Count(text, "# 1 ") != test.kept || !strings.Contains(text, test.reason) {
				t.Errorf("damaged.log has:\n%s", text)
			}
			if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), test.reason) {
				t.Errorf("the log says: %s", log)
			}
			// Resuming again changes nothing.
			kept := content(t, session, "damaged.log")
			if again := resumeAll(t, dir, log); again.Err != nil || again.Stored != 0 || again.Damaged != 0 {
				t.Errorf("the session was resumed again with %+v", again)
			}
			if content(t, session, "damaged.log") != kept {
				t.Error("damaged.log has changed")
			}
		})
	}
}

// line returns where line n of a segment begins.
func line(segment []byte, n int) int {
	at := 0
	for range n - 1 {
		at += bytes.IndexByte(segment[at:], '\n') + 1
	}
	return at
}

func TestALostOrWrongPositionLosesNoRecord(t *testing.T) {
	t.Parallel()
	for name, note := range map[string]string{
		"empty": "", "rubbish": "\x00\x00", "negative": "1 -5\n", "of no segment": "0 0\n", "half": "1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, dir, session, block := leftOver(t, 20)
			must.Do(t, os.WriteFile(filepath.Join(session, "shipped"), []byte(note), 0o600))
			if got := resumeAll(t, dir, &env.Journal{}); got.Err != nil {
				t.Error(got.Err)
			}
			wantNumbers(t, c, block, 20)
		})
	}
}

func TestUnknownFilesInASpoolAreLeftAlone(t *testing.T) {
	t.Parallel()
	c, dir, session, block := leftOver(t, 5)
	for name, text := range map[string]string{
		"readme.txt":                           "mine",
		"eb-1.0123456789ABCDEF/block.json":     "{}",
		"eb-1/block.json":                      "{}",
		"eb-2.0123456789abcdef/00000001.log":   "hello",
		"eb-3.0123456789abcdef/block.json":     "{",
		"eb-4.0123456789abcdef/block.json":     `{"spool": 3, "eb_id": "eb-4"}`,
		"eb-5.0123456789abcdef/block.json":     `{"spool": 2, "eb_id": "eb-6"}`,
		filepath.Base(session) + "/notes.log":  "hello",
		filepath.Base(session) + "/1.log":      "hello",
		filepath.Base(session) + "/shipped.go": "hello",
	} {
		path := filepath.Join(dir, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	results := must.Get(recorder.Resume(patient(t), dir, recorder.ResumeOptions{Logger: (&env.Journal{}).Logger()}))(t)
	failed := make(map[string]bool)
	for _, r := range results {
		failed[filepath.Base(r.Dir)[:4]] = r.Err != nil
	}
	want := map[string]bool{"eb-2": true, "eb-3": true, "eb-4": true, "eb-5": true, block[:4]: false}
	if diff := cmp.Diff(want, failed); diff != "" {
		t.Errorf("sessions that could not be resumed (-want +got):\n%s", diff)
	}
	wantNumbers(t, c, block, 5)
	if text := content(t, dir, "readme.txt"); text != "mine" {
		t.Errorf("readme.txt has %q", text)
	}
	if got := len(sessionsIn(t, dir)); got != 7 {
		t.Errorf("%d entries are left, want 7", got)
	}
}

func TestASpoolIsFreedOfWhatKilledProcessesWereMakingOrRemoving(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{".done-1": 0, ".new-2": 2 * time.Hour, ".new-3": 0, "notes": 2 * time.Hour} {
		path := filepath.Join(dir, name)
		must.Do(t, os.Mkdir(path, 0o700))
		must.Do(t, os.WriteFile(filepath.Join(path, "lock"), nil, 0o600))
		at := time.Now().Add(-age)
		must.Do(t, os.Chtimes(path, at, at))
	}
	must.Get(recorder.Resume(t.Context(), dir, recorder.ResumeOptions{Logger: slog.New(slog.DiscardHandler)}))(t)
	if got, want := sessionsIn(t, dir), []string{filepath.Join(dir, ".new-3"), filepath.Join(dir, "notes")}; !slices.Equal(got, want) {
		t.Errorf("the spool has %v, want %v", got, want)
	}
}

func TestTheStatusOfASpoolShowsWhatWaits(t *testing.T) {
	t.Parallel()
	c := clientOf(t, "http://ada:secret@"+away(t)) // which is not shown
	dir := t.TempDir()
	left, _ := opened(t, c, recorder.Options{Dir: dir, CreateTimeout: time.Millisecond})
	recordNumbers(t, left, 1, 7)
	bytes := left.Lag().Bytes
	leave(t, left)
	session := sessionsIn(t, dir)[0]
	aside := "# 400 urn:oda:problem:invalid-request no\n00000000 x-1 {}\n"
	must.Do(t, os.WriteFile(filepath.Join(session, "refused.log"), []byte(aside+aside), 0o600))
	running, _ := opened(t, c, recorder.Options{Dir: dir, CreateTimeout: time.Millisecond})
	recordNumbers(t, running, 1, 3)
	got := must.Get(recorder.Status(dir))(t)
	want := []recorder.SessionStatus{
		{Dir: session, Block: left.BlockID(), URL: c.Address(), Records: 7, Bytes: bytes, Refused: 2},
		{Block: running.BlockID(), URL: c.Address(), Held: true, Records: 3, Bytes: running.Lag().Bytes},
	}
	if len(got) == 2 {
		want[1].Dir = got[1].Dir
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
	if _, err := recorder.Status(filepath.Join(dir, "none")); err == nil {
		t.Error("a missing spool has a status")
	}
	if kind := oda.ExecutionBlock; !strings.HasPrefix(got[0].Block, kind.Prefix()) {
		t.Errorf("the block is %s", got[0].Block)
	}
}
