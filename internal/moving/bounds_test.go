package moving

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"oda"
	"oda/internal/test/must"
)

// longLine is how a line of an export begins whose document is endless.
const longLine = `{"kind":"sbds","id":"sbd-1","version":1,"by":"ada","on":"2022-10-01T10:00:00.000000Z","created_by":"ada","check":"0123456789abcdef","document":"`

// expandingTo returns content that is a few kilobytes when it is compressed.
func expandingTo(tb testing.TB, begin string, bytes int) []byte {
	tb.Helper()
	var out strings.Builder
	w := must.Get(zstd.NewWriter(&out))(tb)
	part := strings.Repeat("0", 1<<20)
	must.Get(io.WriteString(w, begin))(tb)
	for ; bytes > 0; bytes -= len(part) {
		must.Get(io.WriteString(w, part))(tb)
	}
	must.Do(tb, w.Close())
	return []byte(out.String())
}

func TestASmallExportThatBecomesLargeTakesLittleMemory(t *testing.T) {
	const size = 64 << 20
	for name, test := range map[string]struct {
		begin       string
		maxDocument int64
		want        string
	}{
		"no line of an export": {"", 1 << 40, "damaged at line 2: it ends there"},
		"a document":           {longLine, 1 << 40, "damaged at line 2: it ends there"},
		"values":               {longLine[:20], 1 << 40, "damaged at line 2: it ends there"},
		"beyond the bound":     {longLine, 8 << 20, "line 2 of the export has more than 26214400 bytes; if it is not damaged there, give a larger --max-body"},
	} {
		t.Run(name, func(t *testing.T) {
			content := expandingTo(t, form+"\n"+test.begin, size)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := check(t.Context(), bytes.NewReader(content), maxLine(test.maxDocument))
			runtime.ReadMemStats(&after)
			if _, damaged := errors.AsType[*Damage](err); !damaged || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > size/4 {
				t.Errorf("%d bytes of memory are taken for %d bytes that become %d", taken, len(content), size)
			}
		})
	}
}

// Whoever checks an export reads long lines in parts, and must see the same as if it had
// read them as a whole, wherever a part ends.
func TestALongLineIsSummedUpInParts(t *testing.T) {
	for pad := range 80 {
		text := longLine[:20] + strings.Repeat("x", pad) + longLine[20:] + `00000000000000000000000000000000000000"}`
		sums := func(buffer int) string {
			r := &reader{lines: bufio.NewReaderSize(strings.NewReader(text+"\n"), buffer), maxLine: 1 << 20, sum: sha256.New(), crc: crc32.New(castagnoli)}
			if manifest, err := r.pass(); err != nil || manifest != nil || r.read != 1 {
				t.Fatalf("padded by %d, with a buffer of %d bytes: %s, %v", pad, buffer, manifest, err)
			}
			return fmt.Sprintf("%x %x", r.sum.Sum(nil), r.crc.Sum(nil))
		}
		for _, buffer := range []int{16, 17, 50, 64, 128} {
			if diff := cmp.Diff(sums(4096), sums(buffer)); diff != "" {
				t.Fatalf("padded by %d, with a buffer of %d bytes: %s", pad, buffer, diff)
			}
		}
	}
}

func TestALineWithoutACheckEndsTheCheckOfAnExport(t *testing.T) {
	for name, line := range map[string]string{
		"empty": "", "short": `{"kind":"sbds"}`, "long": strings.Repeat("0", 3<<20), "cut off": longLine[:strings.Index(longLine, "abcdef")],
	} {
		t.Run(name, func(t *testing.T) {
			content := io.MultiReader(strings.NewReader(form+"\n"+line+"\n"), endless{})
			if _, err := check(t.Context(), content, maxLine(8<<20)); err == nil || !strings.Contains(err.Error(), "damaged at line 2: it is not a line of an export") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// endless has more lines than anybody can read.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	return len(p), nil
}

func TestDocumentsInFilesAreBounded(t *testing.T) {
	const most = 1000
	document := func(id string, size int) string {
		begin := fmt.Sprintf(`{"sbd_id":%q,"filler":"`, id)
		return begin + strings.Repeat("x", size-len(begin)-2) + `"}`
	}
	compress := func(text string) string {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		must.Get(io.WriteString(w, text))(t)
		must.Do(t, w.Close())
		return out.String()
	}
	const large = "it is too large: it has more than 1000 bytes; if the archive is to take such documents, start its servers and this import with a larger --max-body"
	for name, test := range map[string]struct{ file, content, want string }{
		"a document of the size": {"a.json", document("sbd-1", most), "sbd-1"},
		"one that is larger":     {"a.json", document("sbd-1", most+1), ": " + large},
		"compressed":             {"a.json.gz", compress(document("sbd-1", most+1)), ": " + large},
		"lines":                  {"a.ndjson", document("sbd-1", most) + "\r\n" + document("sbd-2", most+1) + "\n" + document("sbd-3", most), "sbd-1\n:2: " + large + "\nsbd-3"},
		"a last line":            {"a.ndjson", "{}\n" + strings.Repeat("x", 3<<20), ":1: it has none of eb_id, sbi_id, sbd_id, prj_id and note_id, so its kind is unknown\n:2: " + large},
		"lines that never end":   {"a.ndjson.zst", string(expandingTo(t, document("sbd-1", most)+"\n", 32<<20)), "sbd-1\n:2: it cannot be read from here on: it is more than 1000 times as large as the file; if that is meant so, decompress the file, and import the result"},
		"one that never ends":    {"a.json.zst", string(expandingTo(t, "", 32<<20)), ": " + large},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), test.file)
			must.Do(t, os.WriteFile(path, []byte(test.content), 0o600))
			var got []string
			report := NewReport(nil, func(s SetAside) {
				got = append(got, strings.TrimPrefix(s.Origin.String(), path)+": "+s.Reason)
			})
			from := &files{most, report, func(f *found) error {
				got = append(got, f.ID)
				return nil
			}}
			must.Do(t, from.source(t.Context(), path))
			if diff := cmp.Diff(test.want, strings.Join(got, "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Of a line that is escaped, a document may be half.
func TestTheLineOfTheLargestDocumentIsNotTooLong(t *testing.T) {
	document := []byte(`{"sbd_id":"sbd-1","name":"` + strings.Repeat(`\"`, 1<<18) + `"` + strings.Repeat("\n\t\r", 1<<19) + `}`)
	parser := must.Get(newParser())(t)
	d := must.Get(parser.parse(oda.SBDefinition, document))(t)
	e := oda.LogEntry{Ref: oda.Ref{Kind: oda.SBDefinition, ID: "sbd-1"}, Version: 1, By: "ada", CreatedBy: "ada", Body: d.Body("sbd-1")}
	var l lines
	must.Do(t, l.add(&e))
	if n, most := int64(len(l.text)), maxLine(int64(e.Size())); n > most {
		t.Errorf("a document of %d bytes has a line of %d, more than %d", e.Size(), n, most)
	}
	r := &reader{lines: bufio.NewReader(bytes.NewReader(l.text)), maxLine: maxLine(int64(e.Size()))}
	line := must.Get(r.next())(t)
	if got, _, err := parseLine(line); err != nil || !bytes.Equal(got.Body.Text, e.Body.Text) {
		t.Errorf("the line is not read as it was written: %v", err)
	}
}
