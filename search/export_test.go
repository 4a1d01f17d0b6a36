package search

import "time"

// SetTime sets how long a search looks before it returns the page as it is.
func (s *Searcher) SetTime(bound time.Duration) { s.time = bound }
