package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"oda"
	"oda/client"
)

const (
	requestTime   = 30 * time.Second // base time limit of a request
	bytesInSecond = 64 << 10         // the limit grows by a second for each of these
	slowRequest   = 5 * time.Second  // a slower request does not let the next one grow
)

// shipper sends the records of a session to the archive: in order, one batch at
// a time, each until it is acknowledged. After each batch it notes its position
// in the session. If that note or an answer is lost, records are sent again,
// and the archive recognises them by their keys.
type shipper struct {
	s       *session
	archive *client.Client
	log     *slog.Logger
	read    reader
	settled func(position, tally) // is told what has been acknowledged or put aside
	lag     func() Lag            // what the archive is told about the lag; nil: nothing

	at      position // everything before it is acknowledged or put aside
	created bool     // the archive has the block
	given   bool     // the block was created again, and no batch was stored since
	most    int      // records in the next request
	count   shipped
}

// shipped counts lines by their outcome.
type shipped struct {
	stored, refused, damaged int64
}

// newShipper makes a shipper that begins at the session's position.
func newShipper(s *session, archive *client.Client, log *slog.Logger, settled func(position, tally)) *shipper {
	p := &shipper{
		archive: archive.Once(), // the shipper has its own waits, which can be cut short
		s:       s, settled: settled, most: batchRecords, read: reader{in: s.in, session: s.id},
		log: log.With("eb_id", s.block.Block, "spool", s.dir),
	}
	var begun bool
	p.at, begun = loadPosition(s.in)
	p.created = begun || s.block.toCreate() == nil
	return p
}

// stuckError is a failure that needs a person's help.
type stuckError struct{ err error }

func (e *stuckError) Error() string { return e.err.Error() }
func (e *stuckError) Unwrap() error { return e.err }

// stuckIfRefused marks an error with which the archive itself refused the
// request. It is not about who sent it: tokens are renewed, and the one in a file
// is read again.
func stuckIfRefused(err error) error {
	if client.Status(err) >= 400 && !client.Temporary(err) && !client.Denied(err) {
		return &stuckError{err}
	}
	return err
}

// ship sends one batch from before the limit. It reports whether there is more
// to send. After an error it can be called again, and continues where it was.
func (p *shipper) ship(ctx context.Context, limit position) (more bool, err error) {
	if !p.created {
		if err := p.create(ctx); err != nil {
			return false, err
		}
	}
	lines, err := p.read.next(p.at, limit)
	if err != nil {
		return false, err
	}
	lines = lines.first(p.most)
	if first := lines.head(); first.damage == "" && !isKnown(first.sort) {
		return false, &stuckError{fmt.Errorf("%s has a %q at %d, which this program does not know how to send; use a newer one", segmentName(first.at.segment), first.sort, first.at.offset)}
	}
	more, err = p.send(ctx, lines)
	if oda.CodeOf(err) == oda.NotFound {
		return p.unknown(err)
	}
	p.given = false
	return err == nil && (more || lines.full || lines.to.segment < limit.segment), stuckIfRefused(err)
}

// unknown handles an archive that does not know the block. If the session has
// the block's document, the next call creates the block; otherwise a person
// must help.
func (p *shipper) unknown(err error) (more bool, _ error) {
	if p.s.block.toCreate() == nil {
		return false, &stuckError{err}
	}
	p.created = false
	// If the block was created just now, the archive contradicts itself.
	if p.given = !p.given; !p.given {
		return false, err
	}
	return true, nil
}

// send sends the records of a stretch, or its status. If they are too much for one
// request, or one of several is refused, the next stretch has half as many. In the end
// a refused record is alone, and is put aside.
func (p *shipper) send(ctx context.Context, lines stretch) (more bool, err error) {
	records := make([]oda.NewRecord, 0, len(lines.items))
	var last item
	for _, it := range lines.items {
		if it.damage == "" {
			records, last = append(records, it.record), it
		}
	}
	begun := time.Now()
	err = p.post(ctx, last.sort, records)
	took := time.Since(begun)
	stored := int64(len(records))
	switch {
	case err == nil:
		if took < slowRequest {
			p.most = min(2*p.most, batchRecords)
		}
	case len(records) > 1 && (isRefused(err) || client.Status(err) == http.StatusRequestEntityTooLarge):
		p.most = len(records) / 2
		return true, nil
	case isRefused(err):
		if err := p.refuse(last, err); err != nil {
			return false, err
		}
		stored = 0
	default:
		// Something on the way may cut off what is long, or what takes long.
		broken := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if took >= slowRequest || broken || client.Status(err) == http.StatusRequestTimeout {
			p.most = max(len(records)/2, 1)
		}
		return false, err
	}
	return false, p.advance(lines.items, lines.to, stored)
}

// post sends records, or a status, in one request, and gives up if it takes too long.
func (p *shipper) post(ctx context.Context, sort string, records []oda.NewRecord) error {
	if len(records) == 0 {
		return nil
	}
	size := 0
	for _, r := range records {
		size += len(r.Text)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime+time.Duration(size/bytesInSecond)*time.Second)
	defer cancel()
	if sort == statusLine {
		block := oda.Ref{Kind: oda.ExecutionBlock, ID: p.s.block.Block}
		return p.archive.SendStatus(ctx, block, records[0].Key, records[0].Text)
	}
	if p.lag == nil {
		_, err := p.archive.RecordBatch(ctx, p.s.block.Block, records)
		return err
	}
	behind := p.lag()
	_, err := p.archive.RecordBatchLagging(ctx, p.s.block.Block, records, client.Lag{Records: behind.Records, Age: behind.Age})
	return err
}

// isRefused reports whether the archive will never accept what was sent. Only
// the archive itself can say so, and only about the body: the user, the path
// and an incomplete transfer are not the fault of a record.
func isRefused(err error) bool {
	e, ok := errors.AsType[*oda.Error](err)
	if !ok || client.Status(err) < 400 { // the client itself made the error, such as for a large answer
		return false
	}
	switch e.Code {
	case oda.InvalidJSON, oda.BodyTooLarge, oda.KeyReused, oda.StatusMismatch, oda.UnknownVersion:
		return true
	case oda.InvalidRequest:
		return slices.ContainsFunc(e.Faults, func(f oda.Fault) bool { return strings.HasPrefix(f.Pointer, "/") })
	}
	return false
}

// refuse puts a refused record aside.
func (p *shipper) refuse(it item, because error) error {
	kind, detail := "", because.Error()
	if e, ok := errors.AsType[*oda.Error](because); ok {
		kind, detail = oda.CodePrefix+string(e.Code), e.Detail
	}
	if err := putAside(p.s.in, refusedName, fmt.Sprintf("%d %s %s", client.Status(because), kind, detail), it.line); err != nil {
		return err
	}
	p.count.refused++
	p.log.Error("the archive refuses a "+it.sort+"; it is kept in "+refusedName, "key", it.record.Key, "error", because)
	return nil
}

// advance moves the session to a new position. It first puts damaged lines
// before the position aside.
func (p *shipper) advance(items []item, to position, stored int64) error {
	some := tally{}
	for _, it := range items {
		some.bytes += it.end.offset - it.at.offset
		if it.damage == "" {
			some.records++
			continue
		}
		why := fmt.Sprintf("%d %d %s", it.at.segment, it.at.offset, it.damage)
		if err := putAside(p.s.in, damagedName, why, it.line); err != nil {
			return err
		}
		p.count.damaged++
		p.log.Error("a line of the spool is damaged; it is kept in "+damagedName, "segment", it.at.segment, "offset", it.at.offset, "reason", it.damage)
	}
	p.count.stored += stored
	before := p.at
	if p.at = to; before == to {
		return nil
	}
	if err := storePosition(p.s.in, to); err != nil {
		// The disk may be full; clearing below makes room.
		p.log.Warn("cannot save the position in the spool; records may be sent again, which is safe", "error", err)
	}
	var err error
	if before.segment != to.segment {
		err = p.clear()
	}
	p.settled(to, some)
	return err
}

// clear removes segments that have been shipped.
func (p *shipper) clear() error {
	found, err := segments(p.s.in)
	if err != nil {
		return fmt.Errorf("clear the spool: %w", err)
	}
	for _, segment := range found {
		if segment >= p.at.segment {
			break
		}
		if err := p.s.in.root.Remove(segmentName(segment)); err != nil {
			return fmt.Errorf("clear the spool: %w", err)
		}
	}
	return nil
}
