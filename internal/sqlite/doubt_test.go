package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oda"
	"oda/internal/test/disk"
	"oda/internal/test/must"
)

// inDoubt reports whether an answer leaves the outcome of a write open. Otherwise it
// must say that nothing was stored.
func inDoubt(t *testing.T, err error) bool {
	t.Helper()
	if oda.CodeOf(err) != oda.Unavailable {
		t.Fatalf("a write on a failing disk got %v", err)
	}
	switch text := err.Error(); {
	case strings.Contains(text, "may or may not be stored"):
		return true
	case strings.Contains(text, "Nothing was stored"):
		return false
	}
	t.Fatalf("%q does not say whether the write is stored", err)
	return false
}

// holds opens an archive and checks that these blocks are stored and those are not.
func holds(t *testing.T, archive string, there, absent []string) {
	t.Helper()
	s := open(t, archive)
	defer s.Close()
	for _, id := range there {
		if !stored(t, s, id) {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
	for _, id := range absent {
		if stored(t, s, id) {
			t.Errorf("%s was answered with \"Nothing was stored\", but it is stored", id)
		}
	}
}

func TestACommitThatFailedOnceIsCertainlyNotStored(t *testing.T) {
	path := archivePath(t)
	d := disk.Watch(t, path)
	s := open(t, path)
	mustPut(t, s, put(t, "before", `{}`, 1))
	d.Refuse(1)
	_, err := s.Put(t.Context(), []oda.Put{put(t, "failed", `{}`, 1)})
	if inDoubt(t, err) {
		t.Errorf("the disk works again, but the answer is %v", err)
	}
	holds(t, disk.AfterKill(t, path), []string{"before"}, []string{"failed"})
	holds(t, d.AfterPowerCut(t, path), []string{"before"}, []string{"failed"})
	mustPut(t, s, put(t, "failed", `{}`, 1))
	holds(t, d.AfterPowerCut(t, path), []string{"before", "failed"}, nil)
}

// While a disk fails, a crash may bring back a write that was tried. Later writes
// must neither be acknowledged nor come back.
func TestAnAnswerClaimsNoMoreThanIsKnownWhileTheDiskFails(t *testing.T) {
	path := archivePath(t)
	d := disk.Watch(t, path)
	s := open(t, path)
	mustPut(t, s, put(t, "before", `{}`, 1))
	must.Get(record(s, "before", `{"request":"first"}`))(t)
	const forever = 1 << 30
	d.Refuse(forever)
	_, err := s.Put(t.Context(), []oda.Put{put(t, "doubtful", `{}`, 1)})
	if !inDoubt(t, err) {
		// The write is in the log, and a start after a kill finds it.
		holds(t, disk.AfterKill(t, path), nil, []string{"doubtful"})
		t.Fatalf("the outcome of the write is unknown, but the answer is %v", err)
	}
	_, err = s.Put(t.Context(), []oda.Put{put(t, "refused", `{}`, 1)})
	if inDoubt(t, err) {
		t.Errorf("a write that was never tried got %v", err)
	}
	if _, err := record(s, "before", `{"request":"second"}`); inDoubt(t, err) {
		t.Errorf("a record that was never tried got %v", err)
	}
	if d.Failures() < 4 {
		t.Errorf("%d syncs failed; the engine must try whether the disk works", d.Failures())
	}
	if e, err := s.Get(t.Context(), block("before")); err != nil || e.Metadata.Version != 1 {
		t.Errorf("reading must still work: %v", err)
	}
	for _, read := range []func() error{
		func() error { _, err := s.Get(t.Context(), block("doubtful")); return err },
		func() error { _, err := s.Records(t.Context(), "doubtful", 0, 1); return err },
	} {
		if err := read(); oda.CodeOf(err) != oda.Unavailable {
			t.Errorf("the outcome of the write is unknown, but a reader gets %v", err)
		}
	}
	holds(t, disk.AfterKill(t, path), []string{"before"}, []string{"refused"})
	holds(t, d.AfterPowerCut(t, path), []string{"before"}, []string{"refused"})

	d.Refuse(0)
	r, err := record(s, "before", `{"request":"second"}`)
	if err != nil || r.Sequence != 2 {
		t.Fatalf("the disk works again, but a record got %+v, %v", r, err)
	}
	mustPut(t, s, put(t, "after", `{}`, 1))
	if stored(t, s, "doubtful") {
		t.Error("the write came back without a crash")
	}
	acknowledged := []string{"before", "after"}
	holds(t, disk.AfterKill(t, path), acknowledged, []string{"doubtful", "refused"})
	holds(t, d.AfterPowerCut(t, path), acknowledged, []string{"doubtful", "refused"})
	counts, err := s.Counts(t.Context())
	if err != nil || counts[oda.ExecutionBlock] != 2 {
		t.Errorf("there are %v, %v", counts, err)
	}
	must.Do(t, s.Close())
	holds(t, path, acknowledged, []string{"doubtful", "refused"})
}

func TestADoubtEndsWithoutAnotherWrite(t *testing.T) {
	t.Parallel() // it waits until the engine tries again
	path := archivePath(t)
	d := disk.Watch(t, path)
	s := open(t, path)
	d.Refuse(2) // the commit, and the one that would end the doubt
	if _, err := s.Put(t.Context(), []oda.Put{put(t, "doubtful", `{}`, 1)}); !inDoubt(t, err) {
		t.Fatalf("got %v", err)
	}
	for {
		_, err := s.Get(t.Context(), block("doubtful"))
		if oda.CodeOf(err) == oda.NotFound {
			break
		}
		if oda.CodeOf(err) != oda.Unavailable {
			t.Fatalf("got %v", err)
		}
		time.Sleep(time.Millisecond)
	}
	holds(t, disk.AfterKill(t, path), nil, []string{"doubtful"})
	holds(t, d.AfterPowerCut(t, path), nil, []string{"doubtful"})
}

// The disk fails now and then while many clients write, and the machine may lose
// power at any time.
func TestNothingAcknowledgedIsLostOnADiskThatFailsNowAndThen(t *testing.T) {
	path := archivePath(t)
	d := disk.Watch(t, path)
	s := open(t, path)
	const writers, writes = 4, 60
	var acknowledged, absent [writers][]string
	for round := range 4 {
		var group sync.WaitGroup
		for w := range writers {
			puts := make([]oda.Put, writes)
			for i := range puts {
				puts[i] = put(t, fmt.Sprintf("b-%d-%d-%d", round, w, i), `{}`, 1)
			}
			group.Go(func() {
				for i, p := range puts {
					if i%7 == w {
						d.Refuse(1 + i%4)
					}
					_, err := s.Put(context.Background(), []oda.Put{p})
					switch {
					case err == nil:
						acknowledged[w] = append(acknowledged[w], p.ID)
					case strings.Contains(err.Error(), "Nothing was stored"):
						absent[w] = append(absent[w], p.ID)
					}
				}
			})
		}
		group.Wait()
		for _, crashed := range []string{disk.AfterKill(t, path), d.AfterPowerCut(t, path)} {
			holds(t, crashed, slices.Concat(acknowledged[:]...), slices.Concat(absent[:]...))
		}
	}
	if d.Failures() < 20 || len(acknowledged[0]) < 20 {
		t.Errorf("%d syncs failed, and %d writes of one writer succeeded: that proves little", d.Failures(), len(acknowledged[0]))
	}
}

// cachedFile behaves like a file on Linux: writes go to memory, and a sync brings
// the parts that were written since the last sync to disk.
type cachedFile struct {
	memory, disk []byte
	dirty        []bool
	refuses      bool
}

func (f *cachedFile) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(f.memory).ReadAt(p, at)
}

func (f *cachedFile) WriteAt(p []byte, at int64) (int, error) {
	for i := range copy(f.memory[at:], p) {
		f.dirty[int(at)+i] = true
	}
	return len(p), nil
}

func (f *cachedFile) Sync() error {
	for i, dirty := range f.dirty {
		if dirty && !f.refuses {
			f.disk[i] = f.memory[i]
		}
		f.dirty[i] = false
	}
	if f.refuses {
		return errors.New("the disk fails")
	}
	return nil
}

// A sync that succeeds after a failed one does not bring to disk what the first
// should have. The log that a start finds may have such parts.
func TestALogThatIsOnlyInMemoryIsWrittenToDisk(t *testing.T) {
	const size = 3<<20 + 17
	f := &cachedFile{memory: bytes.Repeat([]byte("frame"), size/5+1)[:size], disk: make([]byte, size), dirty: make([]bool, size)}
	if err := f.Sync(); err != nil || bytes.Equal(f.disk, f.memory) {
		t.Fatal("a sync brought parts to disk that were not written since the last one")
	}
	f.refuses = true
	if err := rewrite(f); err == nil {
		t.Error("the disk failed, but there is no error")
	}
	f.refuses = false
	before := bytes.Clone(f.memory)
	must.Do(t, rewrite(f))
	if !bytes.Equal(f.memory, before) || !bytes.Equal(f.disk, f.memory) {
		t.Error("what is on disk is not what is read")
	}
	if err := rewrite(&cachedFile{}); err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("an empty file: %v", err)
	}
}

func TestAStartRewritesTheLogThatItFinds(t *testing.T) {
	path := archivePath(t)
	s := open(t, path)
	mustPut(t, s, put(t, "b", `{}`, 1))
	crashed := disk.AfterKill(t, path)
	long := time.Now().Add(-time.Hour)
	must.Do(t, os.Chtimes(crashed+"-wal", long, long))
	again := must.Get(Open(t.Context(), crashed, slog.New(slog.DiscardHandler)))(t)
	defer again.Close()
	info := must.Get(os.Stat(crashed + "-wal"))(t)
	if info.ModTime().Equal(long) {
		t.Error("what the crash left was not rewritten")
	}
	if !stored(t, again, "b") {
		t.Error("an acknowledged write is lost")
	}
}
