package sqlite

import (
	"context"
	"fmt"
	"testing"

	"oda"
	"oda/internal/test/suite"
)

// However fast entities are stored, few of them are not in the index of terms:
// every search looks through these.
func TestTheIndexOfTermsKeepsUpWithALoad(t *testing.T) {
	s := fresh(t)
	ctx := context.Background()
	document := suite.Document(t, oda.SBDefinition, `{"name":"loaded"}`)
	for part := range 6 {
		puts := make([]oda.Put, 2500)
		for i := range puts {
			puts[i] = suite.Put(document, fmt.Sprintf("s-%d-%d", part, i), "anna", 1)
		}
		if _, err := s.Put(ctx, puts); err != nil {
			t.Fatal(err)
		}
	}
	// The writer comes to this when it is done with what the last store left.
	err := s.submit(ctx, 0, func(*txn) error {
		if n := len(s.unindexed.get()); n > unindexedMost {
			return fmt.Errorf("%d entities are not indexed", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
