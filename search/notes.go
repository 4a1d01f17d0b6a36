package search

import (
	"context"
	"iter"

	"oda"
)

// Notes goes through the notes that are not withdrawn, the newest first: those about a part
// of a range, whose bounds may be nil, and of one level, unless it is empty.
func (s *Searcher) Notes(ctx context.Context, after, before *oda.Instant, level oda.Level) iter.Seq2[*oda.Found, error] {
	return func(yield func(*oda.Found, error) bool) {
		asked := Search{Kind: oda.Note, From: after, To: before, Level: level, Limit: MaxLimit}
		for {
			page, err := s.Search(ctx, asked)
			for err == nil && len(page.Items) > 0 {
				for i := range page.Items {
					if !yield(&page.Items[i], nil) {
						return
					}
				}
				page.Items, err = page.More(ctx)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			next, more := oda.ParseCursor(page.Next)
			if !more {
				return
			}
			asked.Start = &next.After
		}
	}
}
