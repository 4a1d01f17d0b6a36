package sqlite

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"oda"
	"oda/internal/test/must"
)

// A follower cannot tell whether changes come from memory or from the tables.
func TestRecentChangesAreThoseOfTheTables(t *testing.T) {
	s := fresh(t)
	var writing sync.WaitGroup
	for i := range 4 {
		id := fmt.Sprint("eb-", i%3) // two writers meet at a block
		writing.Go(func() {
			stores := i < 3
			if stores {
				mustPut(t, s, put(t, id, `{"request_responses":[{"request":"a"},{"request":"b"}]}`, 1))
			}
			for range 60 {
				add := oneRecord(id, `{"request":"r"}`)
				add.By = fmt.Sprint("user-", rand.N(2))
				for range rand.N(3) {
					add.Records = append(add.Records, add.Records[0])
				}
				if _, err := s.Append(t.Context(), add); err != nil && stores {
					t.Error(err)
				}
				if stores && rand.N(10) == 0 {
					mustPut(t, s, put(t, fmt.Sprint(id, "-", rand.Int()), `{}`, 1))
				}
			}
		})
	}
	writing.Wait()
	end := must.Get(s.End(t.Context()))(t)
	for after := range end {
		for _, limit := range []int{1, 2, 1000} {
			read, _, err := s.readChanges(t.Context(), after, end, limit)
			if got := s.recent.after(after, end, limit); err != nil || !reflect.DeepEqual(got, read) {
				t.Fatalf("after %d, memory has %v, but the tables have %v, %v", after, got, read, err)
			}
		}
	}
}

func TestRecentChangesAreBounded(t *testing.T) {
	var r recent
	const all = 5 * recentMost
	for i := range oda.Position(all) {
		r.add([]oda.Change{{Position: i + 1}})
	}
	if len(r.changes) > 3*recentMost || r.start == 0 {
		t.Errorf("%d changes are kept, those after %d", len(r.changes), r.start)
	}
	if got := r.after(r.start-1, all, 1); got != nil {
		t.Errorf("after what was dropped, there is %v", got)
	}
	if got := r.after(r.start, all, all); len(got) < recentMost || got[0].Position != r.start+1 || got[len(got)-1].Position != all {
		t.Errorf("after %d there are %d changes", r.start, len(got))
	}
}
