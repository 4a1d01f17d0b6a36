package engine

// halfLeast is how many requests may always go into one transaction. For fewer, another
// commit costs more than it brings.
const halfLeast = 8

// Half returns how many of the waiting requests to write go into the next transaction,
// given how many the last one answered. Those callers will soon be back, so it takes
// half of all: while it is written, the other half is sent, read and judged. If it took
// all that wait, everybody would wait for the transaction, and then it for everybody.
func Half(waiting, answered int) int {
	return max(halfLeast, (waiting+answered+1)/2)
}
