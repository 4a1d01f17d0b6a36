package suite

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/must"
)

// meter is a room that notes what is taken. It refuses what is more than most.
type meter struct {
	most, held, highest int64
}

var errFull = errors.New("there is no room")

func (m *meter) Take(_ context.Context, bytes int64) error {
	if m.held+bytes > m.most {
		return errFull
	}
	m.held += bytes
	m.highest = max(m.highest, m.held)
	return nil
}

func (m *meter) Give(bytes int64) { m.held -= bytes }

func (m *meter) Keep(context.Context, int64) error { return nil }

// padded returns a document with a text of that many bytes.
func padded(size int) string { return `{"request":"` + strings.Repeat("x", size) + `"}` }

// room has the rules for large texts: there is room for one before it is read.
var room = []scenario{
	{"a text takes room from a certain size on", func(t *testing.T, d *desk) {
		frame := len(d.mustPut(sbd("none"), padded(0)).Body.Text)
		for id, more := range map[string]int{"some": 0, "much": 1} {
			size := oda.LargeText + more
			d.mustPut(sbd(id), padded(size-frame))
			m := &meter{most: 1 << 20}
			must.Get(d.engine.Get(oda.WithRoom(d.ctx, m), sbd(id)))(t)
			same(t, "the room", m.held, int64(more*size))
		}
	}},
	{"a large document is not read before there is room", func(t *testing.T, d *desk) {
		first := d.mustPut(sbd("large"), padded(300<<10))
		for name, read := range map[string]func(context.Context) (*oda.Entity, error){
			"Get":     func(ctx context.Context) (*oda.Entity, error) { return d.engine.Get(ctx, sbd("large")) },
			"Version": func(ctx context.Context) (*oda.Entity, error) { return d.engine.Version(ctx, sbd("large"), 1) },
			"AsOf": func(ctx context.Context) (*oda.Entity, error) {
				return d.engine.AsOf(ctx, sbd("large"), first.Metadata.LastModifiedOn)
			},
		} {
			if _, err := read(oda.WithRoom(d.ctx, &meter{})); !errors.Is(err, errFull) {
				t.Errorf("%s without room: %v", name, err)
			}
			m := &meter{most: 1 << 20}
			e, err := read(oda.WithRoom(d.ctx, m))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			same(t, "the document", Render(t, e), Render(t, first))
			if m.held < 300<<10 {
				t.Errorf("%s has taken %d bytes", name, m.held)
			}
		}
	}},
	{"the records of a block take room one by one", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{"request_responses":[]}`)
		for range 3 {
			for _, text := range []string{padded(300 << 10), padded(10)} {
				d.mustRecord("b", text)
			}
		}
		e, err := d.engine.Get(oda.WithRoom(d.ctx, &meter{}), eb("b"))
		if err == nil { // an engine may also read some of the records at once
			_, err = e.WriteTo(io.Discard)
		}
		if !errors.Is(err, errFull) {
			t.Errorf("without room: %v", err)
		}
		m := &meter{most: 1 << 20}
		if e, err = d.engine.Get(oda.WithRoom(d.ctx, m), eb("b")); err != nil {
			t.Fatal(err)
		}
		same(t, "the document", Render(t, e), d.text(eb("b")))
		if m.held != 0 || m.highest < 300<<10 || m.highest > 301<<10 {
			t.Errorf("it has taken %d bytes, and holds %d at the end", m.highest, m.held)
		}
	}},
	{"a page of large records ends early", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{"request_responses":[]}`)
		const large = 3 << 20
		for range 3 {
			d.mustRecord("b", padded(large))
		}
		if _, err := d.engine.Records(oda.WithRoom(d.ctx, &meter{}), "b", 0, 10); !errors.Is(err, errFull) {
			t.Errorf("without room: %v", err)
		}
		m := &meter{most: 64 << 20}
		page := must.Get(d.engine.Records(oda.WithRoom(d.ctx, m), "b", 0, 10))(t)
		if len(page.Records) != 1 || !page.More || page.Room != m.held || m.held < large {
			t.Errorf("a page has %d records of %d bytes, and %d are held", len(page.Records), page.Room, m.held)
		}
		same(t, "the record", string(page.Records[0].Text), padded(large))
	}},
}
