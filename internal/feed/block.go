package feed

import (
	"context"

	"oda"
)

// blockTail follows the records of one block.
type blockTail struct {
	*follower
	block string
	after int64 // the last sequence that was read
}

// newBlockTail begins to follow a block after a sequence number. The caller must
// call leave.
func (h *Hub) newBlockTail(ctx context.Context, block string, after int64) (*blockTail, error) {
	// Later records have positions after this one. Earlier records are read first.
	at, err := h.archive.Log().End(ctx)
	if err != nil {
		return nil, err
	}
	f, err := h.follow(at, &oda.ChangeFilter{Kinds: []oda.Kind{oda.ExecutionBlock}, IDs: []string{block}})
	if err != nil {
		return nil, err
	}
	return &blockTail{f, block, after}, nil
}

// read returns the next records. If there are none, the caller can await more.
func (t *blockTail) read(ctx context.Context, limit int) (oda.RecordPage, error) {
	t.at = max(t.at, t.tail.position()) // this read sees all changes up to there
	page, err := t.hub.archive.Records(ctx, t.block, t.after, limit)
	if n := len(page.Records); n > 0 {
		t.after = page.Records[n-1].Sequence
	}
	return page, err
}
