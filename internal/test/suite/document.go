package suite

import (
	"bytes"
	"strings"
	"sync"

	"oda"
	"oda/api"
	"oda/internal/contract"
	"oda/summary"
)

// maxDepth is the maximum nesting of a document.
const maxDepth = 100

// TB is what the helpers need of a test. Ordinary tests and property tests both
// have it.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// description compiles the API description once for all tests.
var description = sync.OnceValues(func() (*contract.Description, error) {
	return contract.Load(api.JSON(), "Record")
})

// Read parses a text as the body of an operation: store or create. Like a request,
// it is checked against the API description.
func Read(operation string, kind oda.Kind, text []byte) (*oda.Document, error) {
	d, err := description()
	if err != nil {
		return nil, err
	}
	index, err := d.Operation(operation+kind.Short()).CheckWatched(text, maxDepth, summary.Watched)
	if err != nil {
		return nil, err
	}
	return oda.NewDocument(kind, text, index, 0, ""), nil
}

// worded gives a note that says nothing something to say, for scenarios of every kind.
func worded(kind oda.Kind, text string) string {
	members, isObject := strings.CutPrefix(text, "{")
	if kind != oda.Note || !isObject || strings.Contains(text, `"text":`) {
		return text
	}
	if strings.TrimSpace(members) != "}" {
		members = "," + members
	}
	return `{"text":"a word"` + members
}

// Document parses a text as the body with which an entity of this kind is stored by
// identifier.
func Document(tb TB, kind oda.Kind, text string) *oda.Document {
	tb.Helper()
	d, err := Read("store", kind, []byte(worded(kind, text)))
	if err != nil {
		tb.Fatalf("the document %s: %v", text, err)
	}
	return d
}

// Record checks a text against the API description of a record, and returns it
// as it is stored.
func Record(tb TB, text string) []byte {
	tb.Helper()
	d, err := description()
	if err != nil {
		tb.Fatalf("the API description: %v", err)
	}
	if _, err := d.Operation("recordPost").CheckBody([]byte(text), maxDepth); err != nil {
		tb.Fatalf("the record %s: %v", text, err)
	}
	return []byte(text)
}

// Put returns the write of a document under this identifier, by this user at
// this instant.
func Put(d *oda.Document, id, user string, at oda.Instant) oda.Put {
	return oda.Put{
		Ref: oda.Ref{Kind: d.Kind, ID: id}, Body: d.Body(id), Expected: d.Metadata, Compare: oda.AllFields,
		Creator: user, Modifier: user, At: at, Pointer: d.Pointer, Records: d.Records, Listed: d.Listed, Extract: summary.OfDocument(d),
	}
}

// Render returns the document of an entity as in an answer.
func Render(tb TB, e *oda.Entity) string {
	tb.Helper()
	var b bytes.Buffer
	n, err := e.WriteTo(&b)
	if err != nil {
		tb.Fatalf("render %s %s: %v", e.Kind, e.ID, err)
	}
	if n != int64(b.Len()) {
		tb.Fatalf("render %s %s: %d bytes were written, but %d returned", e.Kind, e.ID, b.Len(), n)
	}
	return b.String()
}
