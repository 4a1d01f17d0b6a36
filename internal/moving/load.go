package moving

import (
	"cmp"
	"context"
	"errors"
	"os"
	"runtime"

	"oda"
	"oda/summary"
)

// loadBytes is roughly how much is loaded in one transaction. It may be up to twice as much
// if that is ready when the transaction before it ends. Each transaction has its own costs.
const loadBytes = 2 << 20

// Loader is the archive that entries are loaded into, as an oda.Mover does it.
type Loader interface {
	Load(ctx context.Context, entries []oda.LogEntry) (answers []error, err error)
	Sync(ctx context.Context) error
}

// checkFile reads an export from beginning to end, and returns its manifest. If a line is
// not as it was written, the error is a Damage.
func checkFile(ctx context.Context, path string, maxLine int64) (*Manifest, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := check(ctx, f, maxLine)
	if damage, ok := errors.AsType[*Damage](err); ok && !damage.tooLong {
		// Reading what the lines say takes longer, but finds the damaged one.
		found := through(ctx, path, maxLine, func(*batch, []placed) error { return nil }, func(*placed) error { return nil })
		err = cmp.Or(found, err)
	}
	return m, err
}

// preparers returns how much is prepared at a time. One processor is left for the load
// itself, which takes longer: if its statements and answers have to wait for a
// processor, the database is idle meanwhile.
func preparers() int { return max(runtime.GOMAXPROCS(0)-1, 1) }

// through reads an export, and calls consume with its entries in order. Prepare is
// called for each entry before, for several at a time.
func through(ctx context.Context, path string, maxLine int64, consume func(*batch, []placed) error, prepare func(*placed) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	type parsed struct {
		*batch
		entries []placed
	}
	return pipeline(ctx, preparers(), func(ctx context.Context, hand func(*batch) error) error {
		return scan(ctx, f, maxLine, hand)
	}, func(b *batch) (parsed, error) {
		entries, err := b.parse()
		for i := range entries {
			if err == nil {
				err = prepare(&entries[i])
			}
		}
		return parsed{b, entries}, err
	}, func(p parsed) error { return consume(p.batch, p.entries) })
}

// load brings an export that is checked into an archive as it was: versions, users, times,
// records, statuses and keys, in the order of its log. It leaves out what the archive has
// already, so it can be interrupted and called again. A version or a record of more than
// most bytes is set aside.
func load(ctx context.Context, g *group, into Loader, most int64, report *Report) error {
	report.Total.Add(g.manifest.Versions + g.manifest.Records + g.manifest.Statuses)
	path := g.sources[0]
	l := &loads{ctx: ctx, into: into, source: path, report: report}
	err := through(ctx, path, maxLine(g.maxDocument), func(b *batch, entries []placed) error {
		return l.add(entries, int64(len(b.lines)))
	}, func(p *placed) error {
		if int64(p.Size()) > most {
			p.fault = tooLarge(g.maxDocument)
		} else if err := summary.Prepare(&p.LogEntry); err != nil {
			p.fault = err
		}
		return nil
	})
	return l.end(err)
}

// loads gathers entries, and loads them into an archive, many at a time. While some
// are loaded, the next are gathered.
type loads struct {
	ctx    context.Context // of all loads
	into   Loader
	source string
	report *Report

	waiting []placed
	size    int
	lines   int64      // that were read for those who wait
	loading chan error // is there while some are loaded
}

// add adds entries. Lines is how many were read for them.
func (l *loads) add(entries []placed, lines int64) error {
	l.waiting = append(l.waiting, entries...)
	l.lines += lines
	for i := range entries {
		l.size += entries[i].Size() + lineBytes
	}
	underWay := l.loading != nil && len(l.loading) == 0
	if l.size < loadBytes || underWay && l.size < 2*loadBytes {
		return nil
	}
	return l.begin()
}

// begin begins to load those who wait, once the load before is done.
func (l *loads) begin() error {
	if err := l.done(); err != nil {
		return err
	}
	entries, lines := l.waiting, l.lines
	l.waiting, l.size, l.lines = nil, 0, 0
	loading := make(chan error, 1)
	l.loading = loading
	go func() {
		err := loadAll(l.ctx, l.into, l.source, entries, l.report)
		l.report.Read.Add(lines)
		loading <- err
	}()
	return nil
}

// done waits for the load that is under way, if there is one.
func (l *loads) done() error {
	if l.loading == nil {
		return nil
	}
	err := <-l.loading
	l.loading = nil
	return err
}

// end loads the rest, unless there was an error before, which it returns.
func (l *loads) end(before error) error {
	if before == nil {
		before = l.begin()
	}
	if err := cmp.Or(before, l.done()); err != nil {
		return err
	}
	return l.into.Sync(l.ctx)
}

// loadAll loads entries that are prepared, in order.
func loadAll(ctx context.Context, into Loader, file string, entries []placed, report *Report) error {
	batch := make([]oda.LogEntry, 0, len(entries))
	at := make([]*placed, 0, len(entries))
	for i := range entries {
		p := &entries[i]
		if p.fault != nil {
			if err := report.setAside(p.aside(file, p.fault)); err != nil {
				return err
			}
			continue
		}
		batch, at = append(batch, p.LogEntry), append(at, p)
	}
	if len(batch) > 0 {
		answers, err := into.Load(ctx, batch)
		if err != nil {
			return err
		}
		for i, answer := range answers {
			switch {
			case answer == nil:
				report.Imported.Add(at[i].read())
			case errors.Is(answer, oda.ErrPresent):
				report.Present.Add(at[i].read())
			default:
				if err := report.setAside(at[i].aside(file, answer)); err != nil {
					return err
				}
			}
		}
	}
	return ctx.Err()
}

// read returns how many documents, records and statuses were read for it: an export has a
// line for each.
func (p *placed) read() int64 {
	if p.origin.File != "" {
		return 1
	}
	return p.Positions()
}

// aside returns the entry as the report shows what was set aside.
func (p *placed) aside(file string, why error) SetAside {
	s := SetAside{Origin: p.origin, Ref: p.Ref, Version: p.Version, Sequence: p.Sequence, Reason: why.Error(), Document: p.text}
	if p.Said != nil {
		s.Status = p.Said.Text
	}
	if s.File == "" {
		s.Origin = Origin{file, p.line}
	}
	return s
}
