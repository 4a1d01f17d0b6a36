package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oda/internal/engine/audit"
	"oda/internal/test/must"
)

// unstopped returns an archive as a process leaves it that is killed after so many stores,
// each in a transaction of its own.
func unstopped(t *testing.T, stores int) (database, log []byte) {
	t.Helper()
	s := fresh(t)
	for i := range stores {
		mustPut(t, s, put(t, fmt.Sprintf("eb-%d", i), `{"name":"`+strings.Repeat("x", 3000)+`"}`, 0))
	}
	return must.Get(os.ReadFile(s.file.path))(t), must.Get(os.ReadFile(s.file.path + "-wal"))(t)
}

// laid puts an archive into a folder of its own.
func laid(t *testing.T, database, log []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "archive.db")
	for name, content := range map[string][]byte{path: database, path + "-wal": log} {
		must.Do(t, os.WriteFile(name, content, 0o640))
	}
	return path
}

// A bit that flips in the log would make SQLite forget what is behind it. The archive says
// so and is not opened, so that nothing is written over what may still be saved.
func TestADamagedLogIsNotTakenForAShortOne(t *testing.T) {
	t.Parallel()
	database, log := unstopped(t, 20)
	for _, at := range []float64{0.2, 0.5, 0.8} {
		for what, place := range map[string]int{"the text": 1000, "its size": frameSize + 3, "the salt": 10, "its checksum": 18} {
			frames := (len(log) - logHeader) / (frameHeader + 4096)
			damaged := bytes.Clone(log)
			damaged[logHeader+int(float64(frames)*at)*(frameHeader+4096)+place] ^= 1
			path := laid(t, database, damaged)
			if err := tryOpen(t, path); !strings.Contains(err.Error(), "is damaged behind byte") {
				t.Errorf("%s at %.1f of the log: opening says %v", what, at, err)
				continue
			}
			if _, err := BackupFile(t.Context(), path, new(bytes.Buffer), "test"); err == nil {
				t.Errorf("%s at %.1f of the log: it is backed up", what, at)
			}
			var faults []string
			report := audit.NewReport(10, func(f audit.Fault) { faults = append(faults, f.Detail) })
			if err := Verify(t.Context(), path, report); err != nil || len(faults) == 0 || !strings.Contains(faults[0], "its write-ahead log") {
				t.Errorf("%s at %.1f of the log: verifying says %v, %q", what, at, err, faults)
			}
			// What the sentence says helps.
			broken := checkLog(path).(*brokenLog)
			must.Do(t, os.Truncate(path+"-wal", broken.at))
			if err := open(t, path).Close(); err != nil {
				t.Error(err)
			}
			wantWhole(t, path)
		}
	}
}

// A log that a power cut tore in its last transaction is read up to there, wherever it
// was torn.
func TestALogIsTornInItsLastTransaction(t *testing.T) {
	t.Parallel()
	database, log := unstopped(t, 6)
	const frame = frameHeader + 4096
	last := (len(log) - logHeader) / frame * frame // the place of the last frame's end, without the header
	begin := last
	for n := 0; n < 2; { // the last frame of the transaction before
		begin -= frame
		if !bytes.Equal(log[logHeader+begin+frameSize:][:4], make([]byte, 4)) {
			n++
		}
	}
	for torn := begin + frame; torn < last; torn += frame {
		for _, content := range [][]byte{
			log[:logHeader+torn+frame/2],
			append(append(bytes.Clone(log[:logHeader+torn]), make([]byte, frame)...), log[logHeader+torn+frame:]...),
		} {
			if err := checkLog(laid(t, database, content)); err != nil {
				t.Errorf("torn at %d of %d: %v", torn, last, err)
			}
		}
	}
	for name, content := range map[string][]byte{"no log": {}, "half a header": log[:16], "a torn header": append(make([]byte, 16), log[16:]...)} {
		if err := checkLog(laid(t, database, content)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
