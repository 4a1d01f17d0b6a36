package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"time"

	"oda"
)

// MaxBatch is the maximum number of records for RecordBatch.
const MaxBatch = 5000

// Record appends a record to an ExecutionBlock. The same record with the same
// key is stored once in the block, however often and by whichever call it is
// sent. If the key is empty, the call makes one for its own retries. If the
// block is unknown, the error is oda.NotFound.
func (c *Client) Record(ctx context.Context, block string, record []byte, key string) (oda.Receipt, error) {
	return c.record(ctx, http.MethodPost, block, record, key)
}

// RecordPatch is Record with the HTTP method of Revision A.
func (c *Client) RecordPatch(ctx context.Context, block string, record []byte, key string) (oda.Receipt, error) {
	return c.record(ctx, http.MethodPatch, block, record, key)
}

func (c *Client) record(ctx context.Context, method, block string, record []byte, key string) (oda.Receipt, error) {
	a, err := c.write(ctx, method, path(oda.ExecutionBlock, block)+"/request_response", record, key)
	if err != nil {
		return oda.Receipt{}, err
	}
	var in struct {
		Sequence int64           `json:"sequence"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(a.body, &in); err != nil {
		return oda.Receipt{}, garbled(a, err)
	}
	metadata, err := oda.ReadMetadata(in.Metadata)
	if err != nil {
		return oda.Receipt{}, garbled(a, err)
	}
	return oda.Receipt{Sequence: in.Sequence, Metadata: metadata}, nil
}

// RecordBatch appends records to an ExecutionBlock, in order, all or none, and
// returns the sequence of each. A record whose key is already known keeps its
// place; the others are stored. A record without a key is given one for the
// retries of this call.
func (c *Client) RecordBatch(ctx context.Context, block string, records []oda.NewRecord) ([]int64, error) {
	return c.recordBatch(ctx, block, records, nil)
}

// Lag is what a recorder has not sent yet, or was not told to be stored.
type Lag struct {
	Records int64
	Age     time.Duration // of the oldest
}

// RecordBatchLagging is RecordBatch for a program that sends records later than they
// were made: it also tells the archive how far behind it is. The archive shows that
// to its operators.
func (c *Client) RecordBatchLagging(ctx context.Context, block string, records []oda.NewRecord, lag Lag) ([]int64, error) {
	return c.recordBatch(ctx, block, records, http.Header{
		"Recorder-Lag": {fmt.Sprintf("records=%d, seconds=%.3f", lag.Records, max(0, lag.Age.Seconds()))},
	})
}

func (c *Client) recordBatch(ctx context.Context, block string, records []oda.NewRecord, header http.Header) ([]int64, error) {
	body, err := batchBody(records)
	if err != nil {
		return nil, err
	}
	a, err := c.do(ctx, request{
		method: http.MethodPost, path: api + path(oda.ExecutionBlock, block) + "/request_responses", header: header, body: body, repeatable: true,
	})
	if err != nil {
		return nil, err
	}
	var in struct {
		Records []struct {
			Sequence int64 `json:"sequence"`
		} `json:"records"`
	}
	if err := json.Unmarshal(a.body, &in); err != nil {
		return nil, garbled(a, err)
	}
	if len(in.Records) != len(records) {
		return nil, garbled(a, fmt.Errorf("it has the sequences of %d records instead of %d", len(in.Records), len(records)))
	}
	sequences := make([]int64, len(records))
	for i, r := range in.Records {
		sequences[i] = r.Sequence
	}
	return sequences, nil
}

// batchBody encodes a batch. Records are copied byte for byte, since a key
// belongs to exact bytes. A text that is not JSON is refused, so that it cannot
// smuggle in further records.
func batchBody(records []oda.NewRecord) ([]byte, error) {
	size := 16
	for _, r := range records {
		size += len(r.Text) + len(r.Key) + 64
	}
	out := append(make([]byte, 0, size), `{"records":[`...)
	for i, r := range records {
		if !json.Valid(r.Text) {
			return nil, &oda.Error{
				Code: oda.InvalidJSON, Detail: "A record is not JSON. Nothing was sent.",
				Faults: []oda.Fault{{Pointer: fmt.Sprintf("/records/%d/record", i), Detail: fmt.Sprintf("is not JSON: %v", oda.CheckJSON(r.Text))}},
			}
		}
		if r.Key == "" {
			r.Key = rand.Text()
		}
		key, err := json.Marshal(r.Key)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, `{"key":`...), key...)
		out = append(append(append(out, `,"record":`...), r.Text...), '}')
	}
	return append(out, `]}`...), nil
}

// Records returns the records of an ExecutionBlock after a sequence (0 for
// all), in order. It reads page by page while the caller iterates. The sequence
// ends after an error.
func (c *Client) Records(ctx context.Context, block string, after int64) iter.Seq2[oda.Record, error] {
	return func(yield func(oda.Record, error) bool) {
		after := after // so that a second loop over the sequence begins again
		for more := true; more; {
			page, a, err := c.page(ctx, block, after)
			if err != nil {
				yield(oda.Record{}, err)
				return
			}
			more = a.header.Get("Link") != ""
			for _, r := range page {
				if r.Sequence <= after {
					yield(oda.Record{}, garbled(a, errors.New("its records are not in order")))
					return
				}
				after = r.Sequence
				if !yield(r, nil) {
					return
				}
			}
			if more && len(page) == 0 {
				yield(oda.Record{}, garbled(a, errors.New("it has no records and says there are more")))
				return
			}
		}
	}
}

func (c *Client) page(ctx context.Context, block string, after int64) ([]oda.Record, *reply, error) {
	var in struct {
		Records []storedRecord `json:"records"`
	}
	a, err := c.readJSON(ctx, path(oda.ExecutionBlock, block)+"/request_responses?after="+strconv.FormatInt(after, 10), &in)
	if err != nil {
		return nil, nil, err
	}
	page := make([]oda.Record, len(in.Records))
	for i := range in.Records {
		page[i] = in.Records[i].record()
	}
	return page, a, nil
}

// storedRecord is a stored record on the wire.
type storedRecord struct {
	Sequence   int64           `json:"sequence"`
	Key        string          `json:"key"`
	RecordedAt oda.Moment      `json:"recorded_at"`
	Record     json.RawMessage `json:"record"`
}

func (r storedRecord) record() oda.Record {
	return oda.Record{Sequence: r.Sequence, Key: r.Key, RecordedOn: oda.Instant(r.RecordedAt), Text: r.Record}
}
