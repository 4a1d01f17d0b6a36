package httpapi

import (
	"fmt"
	"strconv"

	"oda"
	"oda/archive"
	"oda/internal/feed"
	"oda/internal/rawjson"
	"oda/internal/serving"
)

// record adds a record to an ExecutionBlock. The answer is small, however long the
// block is.
func (a *API) record(c *call) error {
	serving.Unwatched(c.r.Context()) // once it is judged, a record is stored, whether its client stays or not
	text, nodes, err := c.body()
	if err != nil {
		return err
	}
	one := oda.NewRecord{Key: c.r.Header.Get("Idempotency-Key"), Text: text[nodes[0].Start:nodes[0].End]}
	receipts, err := a.cfg.Archive.Record(c.r.Context(), c.id, []oda.NewRecord{one}, archive.Write{User: c.user, Telescopes: c.telescopes()})
	if err != nil {
		return err
	}
	m := receipts[0].Metadata
	c.user = m.LastModifiedBy
	c.wrote(m.Version, 1)
	out := blockAnswer(c.id, 384)
	out = append(out, `"sequence":`...)
	out = strconv.AppendInt(out, receipts[0].Sequence, 10)
	out = m.AppendJSON(append(out, `,"metadata":`...))
	return c.sendError(c.respond("application/json", "", held).whole(append(out, '}')))
}

// blockAnswer begins an answer about a block.
func blockAnswer(id string, size int) []byte {
	out := append(make([]byte, 0, size), `{"eb_id":`...)
	return append(rawjson.AppendQuoted(out, id), ',')
}

// recordBatch adds several records to an ExecutionBlock, all or none.
func (a *API) recordBatch(c *call) error {
	text, nodes, err := c.body()
	if err != nil {
		return err
	}
	records := keyedRecords(text, nodes)
	receipts, err := a.cfg.Archive.Record(c.r.Context(), c.id, records, archive.Write{User: c.user, Telescopes: c.telescopes(), Batch: true})
	if err != nil {
		return err
	}
	latest := oda.Latest(receipts)
	out := append(blockAnswer(c.id, 512+64*len(records)), `"records":[`...)
	for i, r := range receipts {
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendQuoted(append(out, `{"key":`...), records[i].Key)
		out = strconv.AppendInt(append(out, `,"sequence":`...), r.Sequence, 10)
		out = append(out, '}')
	}
	c.user = latest.LastModifiedBy
	c.wrote(latest.Version, len(records))
	out = latest.AppendJSON(append(out, `],"metadata":`...))
	return c.sendError(c.respond("application/json", "", held).whole(append(out, '}')))
}

// keyedRecords returns the records of a batch with their keys.
func keyedRecords(text []byte, nodes []rawjson.Node) []oda.NewRecord {
	var records []oda.NewRecord
	list := rawjson.Child(nodes, 0, "records")
	for i := list + 1; i < nodes[list].Next; i = nodes[i].Next {
		key := nodes[rawjson.Child(nodes, i, "key")]
		record := nodes[rawjson.Child(nodes, i, "record")]
		records = append(records, oda.NewRecord{
			Key: rawjson.Unquote(text[key.Start:key.End]), Text: text[record.Start:record.End],
		})
	}
	return records
}

// readRecordsDefault is the default length of a page of records.
const readRecordsDefault = 1000

// readRecords answers with records and what the server knows about each: those that
// there are, or, if it is told to wait, the first that come.
func (a *API) readRecords(c *call) error {
	c.accept = true
	after, err := c.integer("after", 0)
	if err != nil {
		return err
	}
	limit, err := c.integer("limit", readRecordsDefault)
	if err != nil {
		return err
	}
	wait, err := archive.ParseWait(c.query)
	if err != nil {
		return err
	}
	if c.wantsEvents() {
		if after, err = c.lastEvent(after); err != nil {
			return err
		}
		return c.stream(func() (feed.Sent, error) {
			return a.cfg.Feed.StreamRecords(c, c.r.WithContext(oda.WithRoom(c.r.Context(), c)), c.id, after)
		})
	}
	if err := c.Keep(c.work(), pageRoom(limit)); err != nil {
		return err
	}
	page, err := a.cfg.Archive.Records(c.work(), c.id, after, int(limit))
	if err == nil && len(page.Records) == 0 && wait > 0 {
		c.Give(c.held())
		defer c.aside(wait)()
		page, err = a.cfg.Feed.Records(c.work(), c.id, after, int(limit), wait)
	}
	if err != nil {
		return err
	}
	size := 64
	for _, r := range page.Records {
		size += len(r.Text) + 128
	}
	out := append(blockAnswer(c.id, size), `"records":[`...)
	for i := range page.Records {
		if i > 0 {
			out = append(out, ',')
		}
		out = page.Records[i].AppendJSON(out)
	}
	c.Give(c.held()) // the answer has a copy
	if page.More {
		c.head("Link", fmt.Sprintf(`<request_responses?after=%d&limit=%d>; rel="next"`, page.Records[len(page.Records)-1].Sequence, limit))
	}
	return c.sendError(c.respond("application/json", "", held).whole(append(out, ']', '}')))
}
