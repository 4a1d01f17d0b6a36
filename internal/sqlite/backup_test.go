package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oda"
	"oda/internal/backup"
	"oda/internal/test/must"
)

// madeFrom restores a backup and returns the path of the archive, which is whole.
func madeFrom(t *testing.T, content []byte) string {
	t.Helper()
	path := archivePath(t)
	if _, _, err := Restore(bytes.NewReader(content), path, func(int64, int64) {}); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, path)
	return path
}

// checkpoint brings everything into the file, so that copying that takes many parts.
func checkpoint(t *testing.T, s *Store) {
	t.Helper()
	var err error
	if failed := s.between(t.Context(), func() { err = s.writer.script("PRAGMA wal_checkpoint(PASSIVE)") }); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
}

// receiving receives a backup. It does something before it takes each part.
type receiving struct {
	bytes.Buffer
	before func(part int)
	parts  int
}

func (r *receiving) Write(p []byte) (int, error) {
	r.before(r.parts)
	r.parts++
	return r.Buffer.Write(p)
}

// While the backup is received, more is written than the write-ahead log can hold. So
// the log starts again meanwhile, and what was written takes several rounds.
func TestABackupShowsOneMomentWhileOthersWrite(t *testing.T) {
	s := fresh(t)
	text := fmt.Sprintf(`{"note":%q}`, strings.Repeat("the wind was strong ", 25_000))
	mustPut(t, s, put(t, "before", text, 1))
	for i := range 40 { // so that it has more parts than are read ahead
		mustPut(t, s, put(t, fmt.Sprintf("before-%d", i), text, 1))
	}
	checkpoint(t, s)
	log := touched{path: s.file.path + "-wal", pageSize: 4096}
	log.note(wholeLog)
	defer log.close()
	begin := log.salts
	stored := 0
	r := &receiving{before: func(part int) {
		for range 20 {
			if part > 0 && stored < 120 {
				mustPut(t, s, put(t, fmt.Sprintf("during-%d", stored), text, 2))
				stored++
			}
		}
	}}
	must.Do(t, s.Backup(t.Context(), r, "test"))
	if log.note(wholeLog); log.salts == begin {
		t.Error("the write-ahead log has not started again, so this test shows little")
	}
	if s.touched != nil {
		t.Error("the writer goes on noting pages after the backup")
	}
	copied := open(t, madeFrom(t, r.Bytes()))
	if _, err := copied.Get(t.Context(), block("before")); err != nil {
		t.Error(err)
	}
	// What was stored before the last part was asked for may be there or not, but
	// nothing is there without what came before it.
	there := 0
	for i := range stored {
		_, err := copied.Get(t.Context(), block(fmt.Sprintf("during-%d", i)))
		if err == nil && there < i {
			t.Fatalf("document %d is in the backup, but %d is not", i, there)
		}
		if err == nil {
			there++
		}
	}
	if there == 0 || stored < 120 {
		t.Errorf("of %d documents that were stored meanwhile, %d are in the backup", stored, there)
	}
	mustPut(t, copied, put(t, "after", `{}`, 3)) // it goes on as an archive does
}

// A write that fails while a backup is taken is not in it.
func TestABackupLeavesOutWhatWasRolledBack(t *testing.T) {
	s := fresh(t)
	mustPut(t, s, put(t, "a", fmt.Sprintf(`{"note":%q}`, strings.Repeat("more than is read ahead ", 400_000)), 1))
	checkpoint(t, s)
	large := strings.Repeat("x", 24<<20) // more than SQLite keeps in memory, so that it is in the log
	r := &receiving{before: func(part int) {
		if part != 1 {
			return
		}
		refused := errors.New("refused")
		err := s.submit(t.Context(), 0, func(tx *txn) error {
			_ = tx.exec("INSERT INTO call_days (entity, day, part, first) VALUES (1, 1, 1, 1)")
			_ = tx.exec("CREATE TABLE rolled_back AS SELECT ? AS text", large)
			return tx.failed(refused)
		})
		if err == nil {
			t.Error("the write was stored")
		}
		mustPut(t, s, put(t, "b", `{"note":"later"}`, 2))
	}}
	must.Do(t, s.Backup(t.Context(), r, "test"))
	copied := open(t, madeFrom(t, r.Bytes()))
	for _, id := range []string{"a", "b"} {
		if _, err := copied.Get(t.Context(), block(id)); err != nil {
			t.Error(err)
		}
	}
}

func TestABackupThatIsNotReceivedEnds(t *testing.T) {
	s := fresh(t)
	mustPut(t, s, put(t, "a", `{}`, 1))
	gone := errors.New("the client has gone")
	r, w := io.Pipe()
	r.CloseWithError(gone)
	if err := s.Backup(t.Context(), w, "test"); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	during := &receiving{before: func(part int) {
		if part > 0 {
			return
		}
		err := s.Backup(t.Context(), io.Discard, "test")
		if oda.CodeOf(err) != oda.Overloaded {
			t.Errorf("a second backup at the same time gives %v", err)
		}
	}}
	must.Do(t, s.Backup(t.Context(), during, "test"))
	madeFrom(t, during.Bytes())
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Backup(ctx, &receiving{before: func(int) { cancel() }}, "test")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a backup that nobody wants any more gives %v", err)
	}
}

// The newest changes of an archive whose server was killed are in its write-ahead
// log.
func TestABackupOfAFileHasItsLog(t *testing.T) {
	s := fresh(t)
	mustPut(t, s, put(t, "a", `{"note":"kept"}`, 1))
	path := filepath.Join(t.TempDir(), "killed.db")
	for _, suffix := range []string{"", "-wal"} {
		content := must.Get(os.ReadFile(s.file.path + suffix))(t)
		must.Do(t, os.WriteFile(path+suffix, content, 0o600))
	}
	var out bytes.Buffer
	if end, err := BackupFile(t.Context(), path, &out, "test"); err != nil || end.Position != 1 {
		t.Fatal(end, err)
	}
	if _, err := open(t, madeFrom(t, out.Bytes())).Get(t.Context(), block("a")); err != nil {
		t.Error(err)
	}
	_, err := BackupFile(t.Context(), s.file.path, io.Discard, "test")
	if err == nil || !strings.Contains(err.Error(), "leave --db out") {
		t.Errorf("a file that a server has open gives %v", err)
	}
}

func TestARestoreReplacesNothingAndLeavesNothingHalf(t *testing.T) {
	s := fresh(t)
	mustPut(t, s, put(t, "a", `{"note":"kept"}`, 1))
	var out bytes.Buffer
	must.Do(t, s.Backup(t.Context(), &out, "test"))
	restore := func(path string, content []byte) error {
		_, _, err := Restore(bytes.NewReader(content), path, func(int64, int64) {})
		return err
	}
	folder := filepath.Join(t.TempDir(), "new")
	path := filepath.Join(folder, "archive.db")
	for name, content := range map[string][]byte{
		"cut off": out.Bytes()[:out.Len()/2], "without its end": out.Bytes()[:out.Len()-1],
		"changed": bytes.Replace(out.Bytes(), []byte("kept"), []byte("lost"), 1),
	} {
		if err := restore(path, content); err == nil {
			t.Errorf("a backup that is %s is restored", name)
		} else if _, ok := errors.AsType[*backup.Damage](err); !ok {
			t.Errorf("a backup that is %s gives %v, which names no place", name, err)
		}
		if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a backup that is %s leaves something: %v", name, err)
		}
	}
	must.Do(t, os.Mkdir(folder, 0o750))
	// As a restore that was killed leaves it.
	must.Do(t, os.WriteFile(path+".restoring", bytes.Repeat([]byte("half"), 1<<20), 0o600))
	must.Do(t, restore(path, out.Bytes()))
	wantWhole(t, path)
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	if err := restore(path, out.Bytes()); err == nil || !strings.Contains(err.Error(), "already there") {
		t.Errorf("a second restore gives %v", err)
	}
	// As somebody leaves it who wants another file to be overwritten.
	precious, linked := filepath.Join(folder, "precious"), filepath.Join(folder, "linked.db")
	must.Do(t, errors.Join(os.WriteFile(precious, []byte("precious"), 0o600), os.Symlink(precious, linked+".restoring"), restore(linked, out.Bytes())))
	if content, err := os.ReadFile(precious); err != nil || string(content) != "precious" {
		t.Errorf("a restore has written through a link: %.20q (%v)", content, err)
	}
	wantWhole(t, linked)
	if err := restore(s.file.path, out.Bytes()); err == nil || !strings.Contains(err.Error(), "another oda has it open") {
		t.Errorf("a restore over a running archive gives %v", err)
	}
	wantWhole(t, path)
}
