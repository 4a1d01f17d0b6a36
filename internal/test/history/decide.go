package history

// decide gives operations without a clear answer an outcome, or omits them.
//
// Every write has a unique marker, and nobody can remove a marker unseen: an
// update must claim metadata that is known only from the whole document, and
// every entity is read at the end of a game. So a write whose marker was never
// seen did not take effect before the end, nobody noticed it, and it is
// omitted. A write whose marker was seen did take effect, at the latest when
// the first answer that shows it was received.
//
// Both are equivalent to an operation that never returns, but spare the search
// from trying both outcomes of each.
func decide(history []operation) []operation {
	shown := firstShown(history)
	decided := make([]operation, 0, len(history))
	for _, op := range history {
		if op.Response.Outcome == unclear {
			at, ok := shown[op.Request.Marker]
			if !ok || !op.Request.writes() {
				continue
			}
			op.Response.Outcome = tookEffect
			op.Return = max(op.Call, at)
		}
		decided = append(decided, op)
	}
	return decided
}

// firstShown returns, for each marker, when the first answer that shows it was
// received.
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
