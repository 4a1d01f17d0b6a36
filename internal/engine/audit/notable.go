package audit

import (
	"reflect"

	"oda"
)

// checkNotable compares a record with the indexes of notable calls. Notable is its call
// if it is one.
func (e *entity) checkNotable(r *RecordRow, notable *oda.CallEntry) {
	e.noNotable(r.Sequence)
	var failed, long bool
	var call oda.CallEntry
	if notable != nil {
		call = notable.Recorded(e.name, r.Sequence, r.By, r.On)
		failed, long = call.Outcome == oda.CallFailed, call.IsLong()
	}
	if there := e.failed.of(e.key) && e.failed.row.Sequence == r.Sequence; there || failed {
		row := e.failed.row
		if row.Block = call.Block; there {
			e.failed.advance()
		}
		e.compare("calls that failed", r, there, failed, row.Function == oda.Function(call.Request) && reflect.DeepEqual(row.CallEntry, call))
	}
	if there := e.long.of(e.key) && e.long.row.Sequence == r.Sequence; there || long {
		row := e.long.row
		if there {
			e.long.advance()
		}
		e.compare("calls that lasted long", r, there, long, long && row.At == call.At && row.Received == oda.Instant(*call.ReceivedAt))
	}
}

// compare reports a difference between an index and a record. There says whether the
// index has the record, and wanted whether it should.
func (e *entity) compare(index string, r *RecordRow, there, wanted, same bool) {
	switch {
	case !there:
		e.report.Add(Index, e.record(r), "the index of %s does not have it", index)
	case !wanted:
		e.report.Add(Index, e.record(r), "the index of %s has it, but it is none of them", index)
	case !same:
		e.report.Add(Index, e.record(r), "the index of %s says something else of it", index)
	}
}

// noNotable reports what the indexes have of records before one that are not there.
func (e *entity) noNotable(before int64) {
	for ; e.failed.of(e.key) && e.failed.row.Sequence < before; e.failed.advance() {
		e.report.Add(Index, e.name, "the index of calls that failed has record %d, which is not there", e.failed.row.Sequence)
	}
	for ; e.long.of(e.key) && e.long.row.Sequence < before; e.long.advance() {
		e.report.Add(Index, e.name, "the index of calls that lasted long has record %d, which is not there", e.long.row.Sequence)
	}
}
