package auditlog_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oda"
	"oda/internal/auditlog"
	"oda/internal/test/env"
)

// open opens a log in a new folder, and closes it after the test.
func open(t *testing.T, path string, mayFail bool, to io.Writer) *auditlog.Log {
	t.Helper()
	log, err := auditlog.Open(path, mayFail, slog.New(slog.NewTextHandler(to, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}

// write begins and ends a write of an entity.
func write(log *auditlog.Log, entity string) error {
	if err := log.Begin(1); err != nil {
		return err
	}
	defer log.End(1)
	log.Write(auditlog.Entry{Entity: entity, Operation: "storeSBD", Status: 200})
	return nil
}

// entities returns the entities that the lines of a file name.
func entities(t *testing.T, path string) string {
	t.Helper()
	var names []string
	for _, line := range env.AuditLines(t, path, "") {
		names = append(names, fmt.Sprint(line["entity"]))
	}
	return strings.Join(names, " ")
}

func TestALineForEachWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	log := open(t, path, false, io.Discard)
	var writers sync.WaitGroup
	for range 20 {
		writers.Go(func() {
			for range 50 {
				if err := write(log, "sbd-1"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	if got := len(env.AuditLines(t, path, "")); got != 1000 {
		t.Errorf("there are %d lines, want 1000", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the log is %v: %v", info.Mode(), err)
	}
}

func TestALogGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte("{\"entity\":\"a\"}\n{\"entity\":\"cut o"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := open(t, path, false, io.Discard)
	if err := write(log, "b"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(string(text), "\n"); len(got) != 4 || !strings.Contains(got[2], `"entity":"b"`) {
		t.Errorf("after a line that was cut off, the log is %q", got)
	}
}

func TestARenamedLogIsReopened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	log := open(t, path, false, io.Discard)
	for _, step := range []func() error{
		func() error { return write(log, "a") },
		func() error { return os.Rename(path, path+".1") },
		func() error { return write(log, "b") }, // not reopened yet
		log.Reopen,
		func() error { return write(log, "c") },
		func() error { return os.Truncate(path, 0) }, // logrotate's copytruncate
		func() error { return write(log, "d") },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if got := entities(t, path+".1") + "|" + entities(t, path); got != "a b|d" {
		t.Errorf("the files have %s", got)
	}
	if err := os.Rename(path, path+".2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := log.Reopen(); err == nil {
		t.Error("a folder was opened as the log")
	}
	if err := write(log, "e"); err != nil {
		t.Errorf("after a failed reopening, the old file is not used: %v", err)
	}
}

// What is appended to a file that was removed is lost, so a new one is begun.
func TestARemovedLogIsBegunAnew(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "folder")
	path := filepath.Join(folder, "audit.log")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	var said env.Journal
	log := open(t, path, false, &said)
	if err := write(log, "a"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := write(log, "b"); oda.CodeOf(err) != oda.Unaudited {
		t.Errorf("a write whose line has no place is answered with %v", err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := write(log, "c"); err != nil {
		t.Fatal(err)
	}
	if got := entities(t, path); got != "c" {
		t.Errorf("the new file has %q, want c", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	env.Await(t, "a new file without a write", func() bool { _, err := os.Stat(path); return err == nil })
	if !strings.Contains(said.String(), "the audit log was removed") {
		t.Errorf("the log of the server does not say it: %s", said.String())
	}
}

func TestNoWriteGoesUnaudited(t *testing.T) {
	t.Parallel()
	disk := env.SmallDisk(t, 1<<20)
	path := filepath.Join(disk, "audit.log")
	var said env.Journal
	log := open(t, path, false, &said)
	if err := log.Begin(3); err != nil {
		t.Fatal(err)
	}
	empty := env.FillDisk(t, disk)
	// The disk has filled up between a write and its lines. They still fit.
	for _, entity := range []string{"a", "b", "c"} {
		log.Write(auditlog.Entry{Entity: entity, User: strings.Repeat("u", 256), Operation: "storeSBD", Status: 200})
	}
	log.End(3)
	if got := entities(t, path); got != "a b c" || log.Err() != nil {
		t.Fatalf("on a disk that filled up, the log has %q: %v", got, log.Err())
	}
	// Until the space that was reserved is used up, and no further.
	stored := 3
	for ; stored < 1e5; stored++ {
		if err := write(log, "x"); err != nil {
			if oda.CodeOf(err) != oda.Unaudited {
				t.Errorf("the error is %v", err)
			}
			break
		}
	}
	if got := len(env.AuditLines(t, path, "")); got != stored {
		t.Errorf("%d writes were allowed, and there are %d lines", stored, got)
	}
	if log.Err() == nil || write(log, "refused") == nil {
		t.Error("a write is allowed on a full disk")
	}
	if got := strings.Count(said.String(), "writes are refused"); got != 1 {
		t.Errorf("that writes are refused is said %d times: %s", got, said.String())
	}
	empty()
	if err := write(log, "last"); err != nil || log.Err() != nil {
		t.Errorf("with room again: %v", err)
	}
	if got := len(env.AuditLines(t, path, "")); got != stored+1 {
		t.Errorf("there are %d lines, want %d", got, stored+1)
	}
}

// As long as writes are refused, the log says so: also at the start, in a new file, and
// while nobody writes.
func TestAFullDiskIsNoticedUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	disk := env.SmallDisk(t, 1<<20)
	path := filepath.Join(disk, "audit.log")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := env.FillDisk(t, disk)
	synctest.Test(t, func(t *testing.T) {
		log := open(t, path, false, io.Discard)
		full := func(when string) {
			t.Helper()
			if log.Err() == nil {
				t.Errorf("%s, a full disk is not noticed", when)
			}
			if err := write(log, "refused"); oda.CodeOf(err) != oda.Unaudited {
				t.Errorf("%s: %v", when, err)
			}
		}
		full("at the start")
		time.Sleep(5 * time.Second)
		full("some seconds later")
		if err := log.Reopen(); err != nil {
			t.Fatal(err)
		}
		full("in a new file")
		empty()
		time.Sleep(5 * time.Second)
		if err := log.Err(); err != nil {
			t.Errorf("with room again: %v", err)
		}
	})
}

// A line that cannot be written although there was room, as on a disk that fails,
// is written later, and no write begins before.
func TestALineThatCannotBeWrittenIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	var said env.Journal
	log := open(t, path, false, &said)
	if err := write(log, "refused"); oda.CodeOf(err) != oda.Unaudited {
		t.Errorf("at the start: %v", err)
	}
	log.Write(auditlog.Entry{Entity: "done", Status: 200}) // of a write that had begun before
	if !strings.Contains(said.String(), `\"entity\":\"done\"`) {
		t.Errorf("the log of the server lacks the line: %s", said.String())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := log.Reopen(); err != nil {
		t.Fatal(err)
	}
	if err := write(log, "next"); err != nil {
		t.Error(err)
	}
	if got := entities(t, path); got != "done next" {
		t.Errorf("the log has %q", got)
	}
}

func TestWritesGoOnIfToldSo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	log := open(t, path, true, io.Discard)
	const many = 20_000 // more than are kept
	for range many {
		if err := write(log, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if log.Err() != nil {
		t.Error("the archive is not ready")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := log.Reopen(); err != nil {
		t.Fatal(err)
	}
	kept, lost := 0, 0.0
	for _, line := range env.AuditLines(t, path, "") {
		if n, ok := line["lost"].(float64); ok {
			lost += n
		} else {
			kept++
		}
	}
	if kept == 0 || lost == 0 || kept+int(lost) != many {
		t.Errorf("%d lines are there, %v are said to be lost, of %d", kept, lost, many)
	}
}

// A pipe holds only so much. When nobody reads it, writes are refused, and soon, and
// when somebody does, nothing is missing.
func TestAPipeThatNobodyReads(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	log := open(t, path, false, io.Discard)
	stored := 0
	for ; stored < 1e5; stored++ {
		if err := write(log, "x"); err != nil {
			if oda.CodeOf(err) != oda.Unaudited {
				t.Errorf("the error is %v", err)
			}
			break
		}
	}
	if stored == 0 || stored == 1e5 {
		t.Fatalf("%d writes were allowed", stored)
	}
	began := time.Now()
	for range 1000 {
		if write(log, "refused") == nil {
			t.Fatal("a write is allowed while nobody reads")
		}
	}
	if took := time.Since(began); took > env.AtMost(10*time.Second) {
		t.Errorf("a thousand refusals took %v", took)
	}
	pipe, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	found := make(chan string, 1<<16)
	go func() {
		defer close(found)
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			found <- lines.Text()
		}
	}()
	for deadline := time.Now().Add(time.Minute); write(log, "last") != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("while somebody reads, writes are still refused")
		}
	}
	got := 0
	for line := range found {
		if strings.Contains(line, `"last"`) {
			break
		}
		got += strings.Count(line, `"entity":"x"`)
	}
	if got != stored {
		t.Errorf("%d writes were allowed, and there are %d lines", stored, got)
	}
}

// Every line has a number, which grows: also in the next file, after a restart, and if
// the clock was set back meanwhile.
func TestLinesAreNumbered(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	var last float64
	check := func(in string, want int) (first float64) {
		t.Helper()
		lines := env.AuditLines(t, in, "")
		if len(lines) != want {
			t.Fatalf("there are %d lines, want %d", len(lines), want)
		}
		for i, line := range lines {
			number, _ := line["number"].(float64)
			if number <= last || i > 0 && number != last+1 {
				t.Errorf("after the number %.0f comes %v", last, line)
			}
			if last = number; i == 0 {
				first = number
			}
		}
		return first
	}
	log, err := auditlog.Open(path, false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := write(log, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := log.Reopen(); err != nil {
		t.Fatal(err)
	}
	log.Denied("192.0.2.1", 401)
	if err := write(log, "b"); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	check(path+".1", 3)
	before := last
	if first := check(path, 2); first != before+1 {
		t.Errorf("after %.0f the next file begins with %.0f", before, first)
	}

	if err := os.Rename(path, path+".2"); err != nil {
		t.Fatal(err)
	}
	again := open(t, path, false, io.Discard) // a restart with an empty file
	if err := write(again, "c"); err != nil {
		t.Fatal(err)
	}
	check(path, 1)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	future := filepath.Join(t.TempDir(), "audit.log") // the clock was set back
	if err := os.WriteFile(future, []byte(strings.Replace(string(text), `{"number":1`, `{"number":2`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	ahead := open(t, future, false, io.Discard)
	if err := write(ahead, "d"); err != nil {
		t.Fatal(err)
	}
	last = 0
	check(future, 2)
}

func TestALineIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	log := open(t, path, false, io.Discard)
	log.Write(auditlog.Entry{Caller: strings.Repeat("é", 10_000), Operation: "GET /" + strings.Repeat("x", 10_000), Status: 403})
	line := env.AuditLines(t, path, "")[0]
	if got := line["caller"].(string); len(got) > 512 || !strings.HasPrefix(got, "éé") || strings.Contains(got, "\ufffd") {
		t.Errorf("the caller has %d bytes", len(got))
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 4096 {
		t.Errorf("the line has %d bytes: %v", info.Size(), err)
	}
}

func TestAFileThatCannotBeOpenedIsSaidAtTheStart(t *testing.T) {
	t.Parallel()
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "no", "such", "folder")} {
		if _, err := auditlog.Open(path, false, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "--audit-log") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestWithoutALogNothingIsKeptOrRefused(t *testing.T) {
	t.Parallel()
	var log *auditlog.Log
	log.Denied("192.0.2.1", 401)
	log.Refused(auditlog.Entry{})
	if err := write(log, "x"); err != nil || log.Err() != nil || log.Reopen() != nil || log.Close() != nil {
		t.Error("a log that is not there fails")
	}
}

func BenchmarkWrite(b *testing.B) {
	log, err := auditlog.Open(filepath.Join(b.TempDir(), "audit.log"), false, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := write(log, "sbd-1"); err != nil {
				b.Error(err)
			}
		}
	})
}
