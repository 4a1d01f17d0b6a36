package fault

// What the tests look at.
var (
	Alive    = alive
	Children = children
	Find     = find
)
