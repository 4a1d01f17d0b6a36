package oda

import "time"

// SetSearchTime bounds how long a page of a search is looked for.
func (a *Archive) SetSearchTime(bound time.Duration) { a.searchTime = bound }
