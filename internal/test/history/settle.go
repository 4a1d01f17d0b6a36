package history

// settle decides about the operations without a clear answer.
//
// Every write has a marker of its own, and nobody gets rid of a marker unseen:
// an update must claim metadata that only somebody has who was shown the whole
// document, and every entity is read at the end of a game. So a write whose
// marker was never shown did not take effect before the end, nobody can have
// noticed it, and it is left out. A write whose marker was shown did take
// effect, at the latest when the first answer that shows it had come.
//
// Both are as good as an operation that never returns, and the search does not
// have to try for each of them whether it happened.
func settle(history []operation) []operation {
	shown := firstShown(history)
	settled := make([]operation, 0, len(history))
	for _, op := range history {
		if op.Response.Outcome == unclear {
			at, ok := shown[op.Request.Marker]
			if !ok || !op.Request.writes() {
				continue
			}
			op.Response.Outcome = tookEffect
			op.Return = max(op.Call, at)
		}
		settled = append(settled, op)
	}
	return settled
}

// firstShown gives for each marker the return of the first answer that shows
// it.
func firstShown(history []operation) map[string]int64 {
	shown := make(map[string]int64)
	for _, op := range history {
		for _, d := range op.Response.Documents {
			for _, marker := range append([]string{d.Value}, d.Records...) {
				if at, ok := shown[marker]; !ok || op.Return < at {
					shown[marker] = op.Return
				}
			}
		}
	}
	return shown
}
