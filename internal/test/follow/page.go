package follow

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"oda"
)

// readPage asks for a page and takes it. At the end of the log a poll pauses,
// and a long poll waits in the archive.
func (f *follower) readPage(ctx context.Context) error {
	limit := 1 + rand.N(f.most)
	query := url.Values{"after": {text(f.at)}, "limit": {strconv.Itoa(limit)}}
	if f.mode == longPoll {
		query.Set("wait", strconv.Itoa(rand.N(longest+1)))
	}
	asked := f.now()
	changes, next, err := f.page(ctx, query, limit)
	if err != nil {
		return err
	}
	// With a filter, or after a wait, an empty page says less.
	if len(changes) == 0 && f.mode == polling && f.filter == nil {
		if n := len(f.ends); n > 0 && f.ends[n-1].at == next {
			f.ends = f.ends[:n-1]
		}
		f.ends = append(f.ends, end{asked, next})
	}
	// A follower may go on at next, or at the last change that it has seen.
	if len(changes) > 0 && rand.N(4) == 0 {
		next = changes[len(changes)-1].position
	}
	f.take(changes, next)
	if len(changes) == 0 && f.mode == polling {
		select {
		case <-ctx.Done():
		case <-time.After(rand.N(pollPause)):
		}
	}
	return nil
}

// page asks for a page of at most limit changes.
func (f *follower) page(ctx context.Context, query url.Values, limit int) (changes []step, next oda.Position, err error) {
	response, err := f.ask(ctx, query, http.Header{})
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errCut, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("%s: %s", response.Status, body)
	}
	var page struct {
		Changes []json.RawMessage `json:"changes"`
		Next    oda.Position      `json:"next"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, 0, fmt.Errorf("%w: %s", err, body)
	}
	if page.Changes == nil || len(page.Changes) > limit {
		return nil, 0, fmt.Errorf("the page has %d changes, and at most %d were asked for: %s", len(page.Changes), limit, body)
	}
	last := f.at
	for _, text := range page.Changes {
		one, err := decodeChange(text)
		if err != nil {
			return nil, 0, err
		}
		changes = append(changes, one...)
		last = one[len(one)-1].position
	}
	if page.Next < last {
		return nil, 0, fmt.Errorf("next is %d, which is before %d: %s", page.Next, last, body)
	}
	return changes, page.Next, nil
}
