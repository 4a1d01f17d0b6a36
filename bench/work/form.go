package work

import (
	"bytes"
	"fmt"
	"strconv"

	"oda/bench/peers"
)

// An identifier has the same length whatever its number, so that it can be
// put into a body that is made already, and so that the length of a listing
// tells how many identifiers it has.
const identifierLength = len("sbd-xxx-000000000")

// identifier is the n-th of a family; prefix is such as "sbd-new".
func identifier(prefix string, n int64) string {
	digits := strconv.FormatInt(n, 10)
	return prefix + "-" + "000000000"[:max(0, 9-len(digits))] + digits
}

// form is a body with places for identifiers. Rendering documents would cost
// the generator more than the server takes to store them, so they are rendered
// once and only their identifiers change.
type form struct {
	body   []byte
	places [][]int // where each of the identifiers stands
}

// blank is the n-th of the identifiers that a form is made with. It occurs
// nowhere else in a document.
func blank(n int) string { return fmt.Sprintf("sbd-~~~-%09d", n) }

// newForm finds the places of the identifiers blank(0), blank(1), ... in a
// body. Each stands there at least once.
func newForm(body []byte, identifiers int) *form {
	f := &form{body: body, places: make([][]int, identifiers)}
	mark := []byte("sbd-~~~-")
	for from := 0; ; {
		next := bytes.Index(body[from:], mark)
		if next < 0 {
			break
		}
		at := from + next
		digits := string(body[at+len(mark) : at+identifierLength])
		n, err := strconv.Atoi(digits)
		if err != nil || n >= identifiers {
			panic(fmt.Sprintf("a form of %d identifiers has the blank %q", identifiers, digits))
		}
		f.places[n] = append(f.places[n], at)
		from = at + identifierLength
	}
	return f
}

// set writes an identifier of the usual length into the places of the n-th.
func (f *form) set(n int, id string) {
	for _, at := range f.places[n] {
		copy(f.body[at:at+identifierLength], id)
	}
}

// severalForm is the body of a PUT of several SBDefinitions.
func severalForm(count, size int) *form {
	var body bytes.Buffer
	body.WriteString(`{"sbds":[`)
	for i := range count {
		if i > 0 {
			body.WriteByte(',')
		}
		body.Write(peers.Document(size, blank(i)))
	}
	body.WriteString(`]}`)
	return newForm(body.Bytes(), count)
}

// batchForm is the body of a batch of records; the identifiers are their
// idempotency keys.
func batchForm(count int) *form {
	var body bytes.Buffer
	body.WriteString(`{"records":[`)
	for i := range count {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"key":%q,"record":`, blank(i))
		body.Write(peers.Record(i))
		body.WriteByte('}')
	}
	body.WriteString(`]}`)
	return newForm(body.Bytes(), count)
}
