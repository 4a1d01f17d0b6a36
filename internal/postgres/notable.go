package postgres

import (
	"fmt"

	"oda"
	"oda/internal/engine"
)

// Calls that failed or lasted long have indexes of their own. Most records have no place
// in them: they are written by the statements that do not know these tables. Where a
// statement is about a notable call, a longer one takes its place.
const (
	newFailed = `INSERT INTO failed_calls (kind, identifier, at, sequence, sent, received, request, function, error, detail, device, recorded_by) `
	newLong   = `INSERT INTO long_calls (kind, identifier, at, sequence, received) `

	// For addRecord. Like CallEntry.Recorded it takes the time of the recording for a call
	// that says none.
	//
	//	$11 sent   $12 received   $13 request   $14 function   $15 type of the error   $16 its detail   $17 device, all or null
	//	$18 the call failed       $19 it lasted long
	recordNotable = `, failed AS (` + newFailed + `SELECT 3, $1, coalesce($11, $12, last_modified_on), last_sequence, $11, $12, $13, $14, $15, $16, $17, $3
			FROM moved WHERE $18::boolean
	), lasted AS (` + newLong + `SELECT 3, $1, $11, last_sequence, $12 FROM moved WHERE $19::boolean)`

	recordsNotable = `, notable AS (
		SELECT m.identifier, m.last_sequence - c.ahead AS sequence, coalesce(c.sent, c.received, m.last_modified_on - c.ahead) AS at, c.sender AS by, c.*
		FROM %s JOIN moved m ON m.nth = c.block)` + addNotable
	storeNotable = `, notable AS (
		SELECT $2::text AS identifier, m.last_sequence - c.ahead AS sequence, coalesce(c.sent, c.received, m.last_modified_on) AS at, m.last_modified_by AS by, c.*
		FROM %s CROSS JOIN head m)` + addNotable
	addNotable = `, failed AS (` + newFailed + `SELECT 3, identifier, at, sequence, sent, received, request, function, error, detail, device, by
			FROM notable WHERE failed
	), lasted AS (` + newLong + `SELECT 3, identifier, at, sequence, received FROM notable WHERE long)`
)

// withNotable completes recordsNotable or storeNotable. The calls are parameters from a
// number on, in the order of notable.args.
func withNotable(statement string, from int) string {
	var arrays []any
	for i := range 12 {
		arrays = append(arrays, from+i)
	}
	return fmt.Sprintf(statement, fmt.Sprintf(`unnest($%d::integer[], $%d::integer[], $%d::text[], $%d::bigint[], $%d::bigint[], $%d::text[], $%d::text[],
			$%d::text[], $%d::text[], $%d::text[], $%d::boolean[], $%d::boolean[])
			AS c (block, ahead, sender, sent, received, request, function, error, detail, device, failed, long)`, arrays...))
}

// notable holds parameters of statements that add notable calls.
type notable struct {
	block, ahead          []int32 // as of the records in addRecords
	sender                []string
	sent, received        []*int64
	request, function     []string
	kind, detail, devices []*string
	failed, long          []bool
}

func (n *notable) add(block, ahead int, sender string, e *oda.CallEntry) {
	kind, detail := engine.ErrorColumns(e)
	n.block, n.ahead, n.sender = append(n.block, int32(block)), append(n.ahead, int32(ahead)), append(n.sender, sender)
	n.sent, n.received = append(n.sent, (*int64)(e.SentAt)), append(n.received, (*int64)(e.ReceivedAt))
	n.request, n.function = append(n.request, e.Request), append(n.function, oda.Function(e.Request))
	n.kind, n.detail, n.devices = append(n.kind, kind), append(n.detail, detail), append(n.devices, e.Device)
	n.failed, n.long = append(n.failed, e.Outcome == oda.CallFailed), append(n.long, e.IsLong())
}

func (n *notable) args() []any {
	return []any{n.block, n.ahead, n.sender, n.sent, n.received, n.request, n.function, n.kind, n.detail, n.devices, n.failed, n.long}
}

// notableArgs returns the parameters of recordNotable.
func notableArgs(e *oda.CallEntry) []any {
	kind, detail := engine.ErrorColumns(e)
	return []any{
		(*int64)(e.SentAt), (*int64)(e.ReceivedAt), e.Request, oda.Function(e.Request), kind, detail, e.Device, e.Outcome == oda.CallFailed, e.IsLong(),
	}
}

// failedNames and longNames list the columns of what failedValues and longValues return:
// the row of a call, as it is written.
var (
	failedNames = []string{"kind", "identifier", "at", "sequence", "sent", "received", "request", "function", "error", "detail", "device", "recorded_by"}
	longNames   = []string{"kind", "identifier", "at", "sequence", "received"}
)

func failedValues(e *oda.CallEntry) []any {
	kind, detail := engine.ErrorColumns(e)
	return []any{
		int16(oda.ExecutionBlock), e.Block, int64(e.At), e.Sequence, (*int64)(e.SentAt), (*int64)(e.ReceivedAt), e.Request, oda.Function(e.Request),
		kind, detail, e.Device, e.By,
	}
}

func longValues(e *oda.CallEntry) []any {
	return []any{int16(oda.ExecutionBlock), e.Block, int64(e.At), e.Sequence, int64(*e.ReceivedAt)}
}
