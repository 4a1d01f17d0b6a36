package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda"
	"oda/internal/test/disk"
	"oda/internal/test/must"
	"oda/internal/test/suite"
)

// tryOpen opens an archive that must be refused, and returns the error.
func tryOpen(t *testing.T, path string) error {
	t.Helper()
	s, err := Open(context.Background(), path, slog.New(slog.DiscardHandler))
	if err == nil {
		_ = s.Close() // the test has already failed
		t.Fatal("the archive was opened")
	}
	return err
}

// script runs SQL on a file that no engine has open.
func script(t *testing.T, path, text string) {
	t.Helper()
	c := must.Get(sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate))(t)
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	must.Do(t, sqlitex.ExecuteScript(c, text, nil))
}

// made makes an archive that is not empty and closes it.
func made(t *testing.T, path string) {
	t.Helper()
	s := open(t, path)
	mustPut(t, s, put(t, "b", `{"request_responses":[{"request":"one"}]}`, 1000))
	must.Do(t, s.Close())
}

// edited makes an archive, and runs SQL on it.
func edited(text string) func(*testing.T, string) {
	return func(t *testing.T, path string) { made(t, path); script(t, path, text) }
}

// foreign makes a database as another program does.
func foreign(text string) func(*testing.T, string) {
	return func(t *testing.T, path string) { script(t, path, text) }
}

// overwrite damages a part of a file.
func overwrite(t *testing.T, path string, at int64, length int) {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_WRONLY, 0))(t)
	must.Get(f.WriteAt(bytes.Repeat([]byte{'x'}, length), at))(t)
	must.Do(t, f.Close())
}

func TestAnUnusableArchiveIsRefusedInOneSentence(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(t *testing.T, path string)
		want    string
	}{
		"another engine has it open, in this very process": {
			func(t *testing.T, path string) { open(t, path) },
			fmt.Sprintf("another oda has it open (process %d); stop that one", os.Getpid()),
		},
		"it is newer than the program": {
			edited("INSERT INTO migrations SELECT max(number) + 1, 'later', 'x', 'y' FROM migrations"),
			"install a newer version of oda",
		},
		"its first step is another":           {edited("UPDATE migrations SET checksum = 'x'"), "export it with that program"},
		"somebody added an index":             {edited("CREATE INDEX extra ON heads (created_by)"), "changed by something other than oda"},
		"somebody dropped a table":            {edited("DROP TABLE records"), "changed by something other than oda"},
		"it is a database of another program": {foreign("CREATE TABLE photos (name TEXT)"), "not an archive of oda"},
		"it has another encoding": {
			foreign(fmt.Sprintf("PRAGMA encoding = 'UTF-16le'; PRAGMA application_id = %d; CREATE TABLE heads (identifier TEXT)", applicationID)),
			"its texts are in UTF-16le, so oda has not made it; restore it from a backup that oda made",
		},
		"it is a text": {func(t *testing.T, path string) { must.Do(t, os.WriteFile(path, []byte("dear diary,\n"), 0o600)) }, "not an archive of oda"},
		"its beginning is damaged": {func(t *testing.T, path string) {
			made(t, path)
			overwrite(t, path, 0, 100)
		}, "not an archive of oda"},
		"its directory is a file": {
			func(t *testing.T, path string) {
				must.Do(t, os.Remove(filepath.Dir(path)), os.WriteFile(filepath.Dir(path), nil, 0o600))
			},
			"not a directory",
		},
		"it is a directory": {func(t *testing.T, path string) { must.Do(t, os.Mkdir(path, 0o700)) }, "it is a directory; name a file in it with --db, such as "},
		"it is a pipe":      {func(t *testing.T, path string) { must.Do(t, syscall.Mkfifo(path, 0o600)) }, "it is not a regular file"},
		"it is empty": {
			func(t *testing.T, path string) { must.Do(t, os.WriteFile(path, nil, 0o600)) },
			"the file is empty, and oda never leaves one empty; if it was an archive, restore it from a backup, else remove it",
		},
		"it is an empty database": {foreign("PRAGMA user_version = 1"), "not an archive of oda"},
		"it is a link to nothing": {
			func(t *testing.T, path string) { must.Do(t, os.Symlink("/nowhere/archive.db", path)) },
			"it is a symbolic link to /nowhere/archive.db, which does not exist",
		},
		"it is a link that leads back to itself": {
			func(t *testing.T, path string) { must.Do(t, os.Symlink(filepath.Base(path), path)) },
			"it is a symbolic link that leads back to itself; name the file itself with --db",
		},
		"it is gone, and its log is not": {
			func(t *testing.T, path string) {
				must.Do(t, os.WriteFile(path+"-wal", []byte("what was answered last"), 0o600))
			},
			"its write-ahead log archive.db-wal does; restore the file it belongs to",
		},
		"a page in the middle is damaged": {func(t *testing.T, path string) {
			made(t, path)
			overwrite(t, path, 4096, 4096) // the first page after the one with the schema
		}, "the file is damaged (SQLITE_CORRUPT); keep a copy of it and of its -wal file, and restore it from a backup"},
		"its directory cannot be written": {func(t *testing.T, path string) {
			if os.Getuid() == 0 {
				t.Skip("root may write everywhere")
			}
			must.Do(t, os.Chmod(filepath.Dir(path), 0o500))
		}, "permission denied"},
		"its log was cut off": {
			edited("UPDATE state SET last_position = last_position + 1"),
			"its log of changes ends at position 2, but should end at 3; restore it from a backup",
		},
		"its log is longer than it should be": {edited("UPDATE state SET last_position = 1"), "its log of changes ends at position 2, but should end at 1"},
	} {
		t.Run(name, func(t *testing.T) {
			path := archivePath(t)
			test.prepare(t, path)
			started := time.Now()
			text := tryOpen(t, path).Error()
			if !strings.HasPrefix(text, "cannot open the archive "+path+": ") || !strings.Contains(text, test.want) {
				t.Errorf("got %q, want the file and %q", text, test.want)
			}
			if strings.Contains(text, "\n") || strings.Contains(text, "sqlite:") {
				t.Errorf("%q is not one clear sentence", text)
			}
			if took := time.Since(started); took > 30*time.Second {
				t.Errorf("the refusal took %v", took)
			}
			if _, err := os.Lstat(path + ".lock"); err == nil && !strings.Contains(test.want, "another oda") {
				t.Error("a lock file was left behind")
			}
		})
	}
}

func TestARefusedFileIsLeftAsItWas(t *testing.T) {
	path := archivePath(t)
	script(t, path, "CREATE TABLE photos (name TEXT); INSERT INTO photos VALUES ('sunset')")
	before := must.Get(os.ReadFile(path))(t)
	tryOpen(t, path)
	after := must.Get(os.ReadFile(path))(t)
	if !bytes.Equal(before, after) {
		t.Error("the database of another program was changed")
	}
}

func TestANewArchiveIsNotForEverybody(t *testing.T) {
	s := fresh(t)
	mustPut(t, s, put(t, "eb-1", `{}`, 1))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(s.file.path + suffix)
		if err != nil || info.Mode().Perm()&0o007 != 0 {
			t.Errorf("%q: %v, %v", suffix, info.Mode(), err)
		}
	}
}

func TestAClosedArchiveCanBeOpenedAgain(t *testing.T) {
	path := archivePath(t)
	s := open(t, path)
	tryOpen(t, path)
	// A process that is being started has the descriptors of this one for a moment.
	shared := must.Get(syscall.Dup(int(s.file.self.Fd())))(t)
	defer syscall.Close(shared)
	must.Do(t, s.Close())
	open(t, path)
}

// A first start that is cut off before the archive has its name leaves files that
// nothing looks at. After that, it leaves an archive whose log may end anywhere.
func TestTheNextStartFinishesAFirstStartThatWasCutOff(t *testing.T) {
	path := archivePath(t)
	s := open(t, path)
	// The log is not checkpointed before it is long, so it has every commit.
	wal := must.Get(os.ReadFile(path + "-wal"))(t)
	file := must.Get(os.ReadFile(path))(t)
	must.Do(t, s.Close())
	left := []map[string][]byte{
		{".new": {}},
		{".new": file[:100], ".new-wal": wal[:50], ".new-shm": {}},
		{".new": file, ".lock": []byte("123\n")},
		{"": file},
	}
	const header, frame = 32, 24 + 4096
	for end := header; end <= len(wal); end += frame {
		left = append(left, map[string][]byte{"": file, "-wal": wal[:end]})
	}
	if len(left) < 10 {
		t.Fatalf("the log has %d bytes, which is not what this test is about", len(wal))
	}
	for i, files := range left {
		path := archivePath(t)
		for suffix, content := range files {
			must.Do(t, os.WriteFile(path+suffix, content, 0o600))
		}
		s, err := Open(context.Background(), path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatalf("cut off at %d: %v", i, err)
		}
		mustPut(t, s, put(t, "b", `{}`, 1))
		must.Do(t, s.Close())
		if there, err := filepath.Glob(path + "*"); err != nil || !slices.Equal(there, []string{path}) {
			t.Errorf("cut off at %d: there are %v, %v", i, there, err)
		}
	}
}

func TestAReopenedArchiveHoldsEverything(t *testing.T) {
	path := archivePath(t)
	s := open(t, path)
	ctx := context.Background()
	key := &oda.Key{Value: "key"}
	for _, kind := range oda.Kinds {
		for i := range 3 {
			d := suite.Document(t, kind, fmt.Sprintf(`{"n": %d}`, i))
			must.Get(s.Put(ctx, []oda.Put{suite.Put(d, fmt.Sprintf("e%d", i), "anna", oda.Instant(i))}))(t)
		}
	}
	must.Get(s.Create(ctx, put(t, "created", `{"request_responses":[]}`, 5), key))(t)
	records := []oda.NewRecord{{Key: "key", Text: []byte(`{"request":"one"}`)}}
	first := must.Get(s.Append(ctx, oda.Append{Block: "created", By: "bob", At: 9, Records: records}))(t)
	read := must.Get(s.Get(ctx, block("created")))(t)
	mustPut(t, s, put(t, "created", suite.Render(t, read), 10))
	said := must.Get(s.Say(ctx, oda.NewStatus{Ref: block("created"), Text: "Done", By: "bob", Now: 11}))(t)

	look := func(s *Store) (all []string) {
		for _, kind := range oda.Kinds {
			err := s.List(ctx, oda.Query{Kind: kind, Order: oda.ByModification}, func(id string, at oda.Instant) error {
				e, err := s.Get(ctx, oda.Ref{Kind: kind, ID: id})
				if err != nil {
					return err
				}
				all = append(all, fmt.Sprintf("%d %s", at, suite.Render(t, e)))
				return nil
			})
			must.Do(t, err)
		}
		counts := must.Get(s.Counts(ctx))(t)
		created := must.Get(s.Created(ctx, oda.ExecutionBlock, *key))(t)
		same := must.Get(s.Status(ctx, block("created")))(t)
		return append(all, fmt.Sprint(counts), suite.Render(t, created), fmt.Sprint(*same == *said))
	}
	before := look(s)
	for range 2 {
		must.Do(t, s.Close())
		s = open(t, path)
		if diff := cmp.Diff(before, look(s)); diff != "" {
			t.Fatalf("the archive has changed:\n%s", diff)
		}
	}
	again, err := s.Append(ctx, oda.Append{Block: "created", By: "carol", At: 90, Records: records})
	if err != nil || !slices.Equal(again, first) {
		t.Errorf("a retry got %+v, %v, want %+v", again, err, first)
	}
	if r, err := record(s, "created", `{"request":"two"}`); err != nil || r.Sequence != 2 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A start reads its way down a few trees, which are a little deeper in a large
// archive. Work that grows with the archive would read far more.
func TestStartingReadsLittleOfALargeArchive(t *testing.T) {
	start := func(entities int) int {
		path := archivePath(t)
		made(t, path)
		script(t, path, fmt.Sprintf(`
			WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO heads (entity, kind, identifier, version, created_by, created_on, last_modified_by, last_modified_on, last_sequence, position, summary_hash)
				SELECT i, 1, 'sbd-' || i, 1, 'anna', i, 'anna', i, 0, i, 0 FROM n;
			INSERT INTO catalogue SELECT entity, x'00' FROM heads WHERE entity >= 10;
			INSERT INTO versions (position, entity, version, stored_by, stored_on, sequence_before, sequence_after, slots, digest, seal, text)
				SELECT entity, entity, 1, 'anna', created_on, 0, 0, x'', x'', x'', CAST('{}' AS BLOB) FROM heads WHERE entity >= 10;
			UPDATE state SET last_position = (SELECT max(position) FROM versions), indexed_entity = (SELECT max(entity) FROM heads);
			INSERT OR REPLACE INTO counts VALUES (1, %d)`, entities, entities))
		d := disk.Watch(t, path)
		s := open(t, path)
		must.Do(t, s.Close())
		return d.PagesRead()
	}
	const deeper = 8 // pages
	small, large := start(1000), start(largeArchive)
	t.Logf("starting read %d pages with 1,000 entities and %d with %d", small, large, largeArchive)
	if small == 0 || large > small+deeper {
		t.Errorf("starting read %d pages with 1,000 entities and %d with %d", small, large, largeArchive)
	}
}
