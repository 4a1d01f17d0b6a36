package peers_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"oda/bench/peers"
)

func TestADocumentHasTheSizeAndTheIdentifierAskedFor(t *testing.T) {
	for _, size := range []int{1024, 5000, 20_000} {
		text := peers.Document(size, "sbd-x-000000001")
		if len(text) != size {
			t.Errorf("a document of %d bytes has %d", size, len(text))
		}
		var fields struct {
			ID      string            `json:"sbd_id"`
			Targets []json.RawMessage `json:"targets"`
			Scans   []json.RawMessage `json:"scan_definitions"`
		}
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if fields.ID != "sbd-x-000000001" || len(fields.Targets) != len(fields.Scans) {
			t.Errorf("got the identifier %q, %d targets, %d scans", fields.ID, len(fields.Targets), len(fields.Scans))
		}
		if size > 2000 && len(fields.Targets) == 0 {
			t.Errorf("a document of %d bytes has no target", size)
		}
		if !bytes.Equal(text, peers.Document(size, "sbd-x-000000001")) {
			t.Error("the same document differs the second time")
		}
		if bytes.Equal(text, peers.Document(size, "sbd-x-000000002")) {
			t.Error("two documents are the same")
		}
	}
}

func TestARecordIsAsLargeAsARealOne(t *testing.T) {
	for _, i := range []int{0, 1, 7_654_321} {
		text := peers.Record(i)
		if len(text) < 250 || len(text) > 310 || !json.Valid(text) {
			t.Errorf("record %d has %d bytes: %s", i, len(text), text)
		}
	}
}
