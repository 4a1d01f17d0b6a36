package history

import (
	"fmt"
	"strings"

	"oda"
)

// action is what a client requests.
type action string

const (
	read   action = "read"
	store  action = "store" // one entity or several
	record action = "record"
	repeat action = "repeat" // a record whose key was already answered
)

// outcome is the result, as far as the client knows.
type outcome string

const (
	done       outcome = "done"
	mismatch   outcome = "mismatch"     // 422: the metadata differs from the stored one
	condition  outcome = "precondition" // 412
	missing    outcome = "missing"      // 404
	unclear    outcome = "unclear"      // no answer, or one that does not say what happened
	tookEffect outcome = "took effect"  // unclear, but its effect was seen
)

// operation is one request of a client. Times are nanoseconds since the
// beginning of the game.
type operation struct {
	Client   int
	Call     int64
	Return   int64
	Request  request
	Response response
}

// request is what a client sent. Entities are numbers within the game.
type request struct {
	Action action
	User   string
	Marker string    `json:",omitempty"` // unique text in what a write stores
	Entity int       // for all actions but store
	Puts   []put     `json:",omitempty"` // for store
	Keyed  bool      // for record: sent with a key until answered
	First  *recorded `json:",omitempty"` // for repeat: the first answer
}

// put is one document of a store. Its value is the marker of the request.
type put struct {
	Entity     int
	Claim      *oda.Metadata `json:",omitempty"` // nil if sent without metadata
	Records    []string      `json:",omitempty"`
	Listed     bool          // a list of records was sent, perhaps an empty one
	Keep       bool          // records=keep
	Match      string        `json:",omitempty"` // If-Match
	CreateOnly bool          // If-None-Match: *
}

// response is what a client received.
type response struct {
	Outcome   outcome
	Documents []document `json:",omitempty"` // for read: one; for store: one per put
	Recorded  *recorded  `json:",omitempty"` // for record and repeat
	Faults    []told     `json:",omitempty"` // for a mismatch: one per put
}

// document is an entity as an answer shows it.
type document struct {
	Metadata oda.Metadata
	Value    string
	Records  []string `json:",omitempty"`
	Listed   bool
}

// recorded is the answer to a record.
type recorded struct {
	Sequence int64
	Metadata oda.Metadata
}

// told is what a refusal says about one document: the stored value of each
// field that differs.
type told map[string]string

// The fields of the metadata as refusals name them.
const (
	version        = "version"
	createdBy      = "created_by"
	createdOn      = "created_on"
	lastModifiedBy = "last_modified_by"
	lastModifiedOn = "last_modified_on"
)

// writes reports whether the operation may change anything.
func (r request) writes() bool { return r.Action == store || r.Action == record }

func (r request) String() string {
	switch r.Action {
	case store:
		var b strings.Builder
		fmt.Fprintf(&b, "%s stores %s:", r.User, r.Marker)
		for _, p := range r.Puts {
			fmt.Fprintf(&b, " %v", p)
		}
		return b.String()
	case record:
		return fmt.Sprintf("%s records %s in %d", r.User, r.Marker, r.Entity)
	case repeat:
		return fmt.Sprintf("%s records %s in %d again", r.User, r.Marker, r.Entity)
	default:
		return fmt.Sprintf("%s reads %d", r.User, r.Entity)
	}
}

func (p put) String() string {
	var words []string
	if p.Claim == nil {
		words = append(words, "as new")
	} else {
		words = append(words, "after "+p.Claim.Tag()+" by "+p.Claim.LastModifiedBy)
	}
	if p.Listed {
		words = append(words, fmt.Sprintf("records %v", p.Records))
	}
	if p.Keep {
		words = append(words, "records kept")
	}
	if p.Match != "" {
		words = append(words, "if "+p.Match)
	}
	if p.CreateOnly {
		words = append(words, "if new")
	}
	return fmt.Sprintf("%d(%s)", p.Entity, strings.Join(words, ", "))
}

func (r response) String() string {
	words := []string{string(r.Outcome)}
	for _, d := range r.Documents {
		words = append(words, d.String())
	}
	if r.Recorded != nil {
		words = append(words, fmt.Sprintf("as %d at %s", r.Recorded.Sequence, r.Recorded.Metadata.Tag()))
	}
	for i, f := range r.Faults {
		if len(f) > 0 {
			words = append(words, fmt.Sprintf("document %d: stored is %v", i, map[string]string(f)))
		}
	}
	return strings.Join(words, " ")
}

func (d document) String() string {
	text := fmt.Sprintf("[%s %s by %s", d.Value, d.Metadata.Tag(), d.Metadata.LastModifiedBy)
	if d.Listed {
		text += fmt.Sprintf(" %v", d.Records)
	}
	return text + "]"
}
