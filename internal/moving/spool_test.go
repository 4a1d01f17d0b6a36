package moving

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/must"
)

// An entity may have more versions than fit into memory.
func TestALongHistoryIsPreservedInParts(t *testing.T) {
	const versions, filler = 600, 16 << 10
	documents := make([]string, 0, versions)
	record := func(i int) string { return fmt.Sprintf(`{"request":"%d %s"}`, i, strings.Repeat("x", filler)) }
	for i := range versions { // each lists a record of the one before, and a new one
		documents = append(documents, fmt.Sprintf(`{"eb_id":"eb-1","request_responses":[%s,%s],"metadata":{"version":%d,"created_by":"ada","created_on":"2022-10-01T10:00:00Z","last_modified_by":"ada","last_modified_on":"2022-10-01T10:%02d:%02dZ"}}`,
			record(i), record(i+1), i+1, i/60, i%60))
	}
	parser := must.Get(newParser())(t)
	preserved := func(inParts bool) (histories int, entries []string) {
		spool := must.Get(newSpool())(t)
		defer spool.close()
		for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(versions) {
			f := &found{Origin: Origin{"file", int64(i)}, Ref: oda.Ref{Kind: oda.ExecutionBlock, ID: "eb-1"}, version: int64(i + 1), text: []byte(documents[i])}
			for range 1 + i%2 { // every other one is there twice
				must.Do(t, spool.add(f))
			}
		}
		err := spool.histories(t.Context(), inParts, func(h *history) error {
			histories++
			if n := len(h.versions); inParts && n > versions/4 {
				t.Errorf("a part has %d versions", n)
			}
			p, err := parser.preserve(h)
			if err != nil || len(p.aside) > 0 {
				t.Errorf("%v, set aside: %v", err, p.aside)
			}
			for _, e := range p.entries {
				entries = append(entries, fmt.Sprint(e.Version, e.Before, e.After, e.Runs, len(e.Came)))
			}
			return nil
		})
		must.Do(t, err)
		return histories, entries
	}
	one, want := preserved(false)
	many, got := preserved(true)
	if one != 1 || many < 4 || len(want) != versions {
		t.Errorf("%d histories and %d parts with %d entries", one, many, len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !slices.Contains(want, "2 2 3 [{2 3}] 1") {
		t.Errorf("the second version is none of %v", want[:3])
	}
}
