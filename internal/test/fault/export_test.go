package fault

// Exported for tests.
var (
	Alive    = alive
	Children = children
	Find     = find
)
