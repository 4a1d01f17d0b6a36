package oda

import "time"

// SetSearchTime sets how long a search looks before it returns the page as it is.
func (a *Archive) SetSearchTime(bound time.Duration) { a.searchTime = bound }
