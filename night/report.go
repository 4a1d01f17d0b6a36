package night

import "oda"

// Report says what was done in a night. Its tally is the sum over its blocks.
type Report struct {
	Zone string     `json:"zone"`
	From oda.Moment `json:"from"`
	To   oda.Moment `json:"to"`
	Tally
	Busy              oda.Elapsed     `json:"busy_seconds"`        // in calls; overlapping ones count once
	Idle              oda.Elapsed     `json:"idle_seconds"`        // of all telescopes
	Telescopes        []Telescope     `json:"telescopes"`          // by name; what has none comes last
	Blocks            []Block         `json:"blocks"`              // by their first call
	Slowest           []SlowCall      `json:"slowest"`             // the slowest first
	FailuresByRequest []FailedRequest `json:"failures_by_request"` // the most failures first
	Errors            []Error         `json:"errors"`              // the most frequent first
	Unusual           []UnusualCall   `json:"unusual"`             // the most unusual first
	Notes             []oda.Found     `json:"notes"`               // by when they begin
	TimeLost          []TimeLost      `json:"time_lost"`           // to weather, to a fault, and to something else

	// Usual is how long calls of a request take, the median of the night, where there are
	// enough of them. Reports in JSON do not say it.
	Usual map[string]oda.Elapsed `json:"-"`
}

// Tally counts calls. A call that does not say how long it took counts as 0
// seconds.
type Tally struct {
	Calls    int64       `json:"calls"`
	Failures int64       `json:"failures"`
	Took     oda.Elapsed `json:"seconds_in_calls"`
}

// Telescope is what one telescope did in the night.
type Telescope struct {
	Telescope *string     `json:"telescope"` // nil: the blocks without one
	Blocks    int64       `json:"blocks"`
	Calls     int64       `json:"calls"`
	Failures  int64       `json:"failures"`
	Busy      oda.Elapsed `json:"busy_seconds"`
	Idle      oda.Elapsed `json:"idle_seconds"` // between the first and the last call
	FirstCall oda.Moment  `json:"first_call"`
	LastCall  oda.Moment  `json:"last_call"`

	InCalls []Stretch `json:"-"` // in order; none touches the next; reports in JSON do not say it
}

// Block is an ExecutionBlock with calls in the night. It counts only these
// calls.
type Block struct {
	ID        string       `json:"id"`
	Name      *string      `json:"name"`      // of its SBDefinition in the version that ran; nil: none
	Telescope *string      `json:"telescope"` // nil: none
	CreatedBy string       `json:"created_by"`
	Status    oda.Standing `json:"status"`
	Running   bool         `json:"running"`
	FirstCall oda.Moment   `json:"first_call"`
	LastCall  oda.Moment   `json:"last_call"`
	Tally
	Busy       oda.Elapsed     `json:"busy_seconds"`
	References []oda.Reference `json:"references"`

	// Reports in JSON do not say these.
	LastResponse oda.Moment `json:"-"` // when all calls had their responses
	Targets      string     `json:"-"` // in words, of its SBDefinition in the version that ran
}

// BlockColumns are the columns of a table of blocks.
var BlockColumns = []string{
	"id", "name", "telescope", "created_by", "status", "class", "status_at", "running", "first_call", "last_call",
	"calls", "failures", "seconds_in_calls", "busy_seconds",
}

// SlowCall is a call that took long.
type SlowCall struct {
	Block    string      `json:"id"`
	Sequence int64       `json:"sequence"`
	Request  string      `json:"request"`
	SentAt   oda.Moment  `json:"sent_at"`
	Took     oda.Elapsed `json:"seconds"`
}

// FailedRequest counts the calls of a request that failed at least once.
type FailedRequest struct {
	Request  string `json:"request"`
	Failures int64  `json:"failures"`
	Calls    int64  `json:"calls"`
}

// Error counts the calls that failed with one error. Its texts are those of an
// oda.CallError, nil if a call failed without saying why.
type Error struct {
	Type   *string   `json:"type"`
	Detail *string   `json:"detail"`
	Calls  int64     `json:"calls"`
	Blocks int64     `json:"blocks"`
	First  CallPlace `json:"first"`
}

// CallPlace says which call is meant.
type CallPlace struct {
	Block    string `json:"eb_id"`
	Sequence int64  `json:"sequence"`
}

// UnusualCall is a call that took much longer than others of the same request.
type UnusualCall struct {
	CallPlace
	Request string      `json:"request"`
	SentAt  oda.Moment  `json:"sent_at"`
	Took    oda.Elapsed `json:"seconds"`
	Median  oda.Elapsed `json:"median_seconds"` // of the request in the night, rounded down
}

// Bounds of reports on nights. The memory of a report grows with the number of blocks, and
// up to these bounds with the number of distinct requests and errors, and of calls.
const (
	maxBlocks    = 100_000
	maxRequests  = 10_000  // that are counted separately
	maxErrors    = 5_000   // that are counted
	maxTimed     = 500_000 // calls whose times are kept
	slowestCalls = 20
	unusualCalls = 20
	frequentOnes = 50  // errors
	requestBytes = 256 // of the name of a request; longer names are cut
)

// LeastForUsual is how many calls a median is of at least.
const LeastForUsual = 5

// OtherRequests stands for the requests that are not counted separately.
const OtherRequests = "(other requests)"
