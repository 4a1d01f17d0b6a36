package contract

// BodyRequired reports whether the operation requires a body.
func (op *Operation) BodyRequired() bool { return op.bodyRequired }
