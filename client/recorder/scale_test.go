package recorder_test

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"oda"
	"oda/client"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// Recording takes equally long, however long the block is. The blocks are
// recorded into in turn, so that other load affects them equally.
// docs/recording.md quotes the ratio of the longest.
func TestRecordingCostsTheSameForAnyLengthOfBlock(t *testing.T) {
	env.ProofOnly(t)
	lengths := []int{10, 1_000, 100_000}
	for _, engine := range []string{"SQLite", "PostgreSQL"} {
		t.Run(engine, func(t *testing.T) {
			database := "sqlite:" + filepath.Join(benchDir(t), "archive.db")
			if engine == "PostgreSQL" {
				database = env.Postgres(t)
			}
			c := clientOf(t, env.Oda(t, "serve", "--db="+database).URL)
			blocks := make([]string, len(lengths))
			for i, length := range lengths {
				blocks[i] = blockOf(t, c, length)
			}
			for _, at := range []struct{ batch, each int }{{1, 300}, {100, 30}} {
				const bound, rounds = 2.0, 3
				ratio := bound + 1
				for round := 0; round < rounds && ratio > bound; round++ {
					medians := recordInTurn(t, c, blocks, at.batch, at.each)
					ratio = float64(medians[2]) / float64(medians[0])
					t.Logf("%d at once, at %v records: %v; in the longest it costs %.2f times as much as in the shortest", at.batch, lengths, medians, ratio)
				}
				if ratio > bound {
					t.Errorf("recording %d at once into a long block costs %.2f times as much as into a short one, want at most %.1f", at.batch, ratio, bound)
				}
			}
		})
	}
}

// blockOf makes a block with this many records.
func blockOf(t *testing.T, c *client.Client, length int) string {
	t.Helper()
	block := must.Get(c.CreateBlock(patient(t), nil, ""))(t)
	for done := 0; done < length; {
		n := min(1000, length-done)
		records := scans(n)
		_, err := c.RecordBatch(patient(t), block.ID, records)
		for try := 0; try < 5 && client.Temporary(err); try++ { // the machine may be busy; the records have keys
			_, err = c.RecordBatch(patient(t), block.ID, records)
		}
		must.Do(t, err)
		done += n
	}
	return block.ID
}

// scans returns records, each with its own key.
func scans(n int) []oda.NewRecord {
	records := make([]oda.NewRecord, n)
	session := rand.Text()
	for i := range records {
		records[i] = oda.NewRecord{
			Key:  fmt.Sprintf("%s-%d", session, i),
			Text: []byte(`{"request":"functions.scan","request_args":{"kwargs":{"scan_id":1}},"status":"OK","response":{"result":"done"}}`),
		}
	}
	return records
}

// recordInTurn records batches into blocks in turn, and returns the median time
// for each block.
func recordInTurn(t *testing.T, c *client.Client, blocks []string, batch, each int) []time.Duration {
	t.Helper()
	took := make([][]time.Duration, len(blocks))
	for n := range each * len(blocks) {
		i := n % len(blocks)
		records := scans(batch)
		begun := time.Now()
		must.Get(c.RecordBatch(patient(t), blocks[i], records))(t)
		took[i] = append(took[i], time.Since(begun))
	}
	medians := make([]time.Duration, len(blocks))
	for i := range took {
		slices.Sort(took[i])
		medians[i] = took[i][each/2].Round(time.Microsecond)
	}
	return medians
}
