package rawjson

import "unsafe"

// Kind is the type of a JSON value.
type Kind uint8

// The types of JSON values.
const (
	Null Kind = iota + 1
	Bool
	Number
	String
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"nothing", "null", "boolean", "number", "string", "array", "object"}[k]
}

// Node is a value found in a document: a declared member of an object, or an
// element of a list. Nodes are in the order of the document, a parent before
// its children; data[Start:End] is the text of the value. Next is the index of
// the first node after this one's subtree, so the children of node i are i+1,
// nodes[i+1].Next, ... below nodes[i].Next.
type Node struct {
	Name       string // name of the member; empty for an element and the root
	Kind       Kind
	Start, End int
	Next       int
}

// Child returns the index of the child of node i with this name, or -1.
func Child(nodes []Node, i int, name string) int {
	for j := i + 1; j < nodes[i].Next; j = nodes[j].Next {
		if nodes[j].Name == name {
			return j
		}
	}
	return -1
}

// Index is what one pass over a text found: the values that its schema declares,
// and notes of those that the caller watched for.
type Index struct {
	Nodes []Node
	Notes
}

// Size returns how many bytes of memory the index takes.
func (i Index) Size() int64 {
	return int64(cap(i.Nodes))*int64(unsafe.Sizeof(Node{})) + i.Notes.Size()
}
