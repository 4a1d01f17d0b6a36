package httpapi

import (
	"math"
	"net/http"
	"strconv"

	"oda"
	"oda/internal/admission"
	"oda/internal/auth"
	"oda/internal/serving"
)

// classOf returns the class of work of a route: the one in the table, or else what its
// role tells.
func (rt *route) classOf() admission.Class {
	switch {
	case rt.class != admission.Free:
		return rt.class
	case rt.probe, rt.role == auth.Anyone, rt.operation == "" && !rt.page:
		return admission.Free
	case rt.page && rt.operation != "":
		return admission.Free // parts of the program
	case rt.role > auth.Reader:
		return admission.Writing
	}
	return admission.Searching
}

// bulkFrom is the size from which a body with several entities may hold up others.
const bulkFrom = 256 << 10

// enter waits until the archive has room for the work of the request, once its body
// has arrived. Whoever sends or receives slowly takes no room.
func (c *call) enter() error {
	class := c.class
	switch {
	case c.recording():
		class = admission.Recording
	case class == admission.Writing && c.kind == 0 && c.taken > bulkFrom:
		class = admission.Bulk
	}
	var err error
	c.pass, err = c.api.control.Enter(c.r.Context(), class)
	return err
}

// recording reports whether the request is what a recorder does, which is refused
// last: it records calls, or stores a new block for them.
func (c *call) recording() bool { return c.need == auth.Recorder }

// limit returns an error if the caller does too much, and how long to wait.
func (c *call) limit() error {
	if c.access.callers == nil || c.probe {
		return nil
	}
	limited, wait, err := c.access.callers.Enter(c.callerName(), c.started)
	if err != nil {
		c.head("Retry-After", strconv.Itoa(max(1, int(math.Ceil(wait.Seconds())))))
		return err
	}
	c.limited = limited
	return nil
}

// checkPlace returns an error if the request came on a spare connection, which is for
// probes only.
func (c *call) checkPlace() error {
	if !serving.IsSpare(c.r.Context()) {
		return nil
	}
	c.head("Connection", "close")
	if c.probe {
		return nil
	}
	return oda.Errorf(oda.Overloaded, "As many clients are connected to the archive as it takes, and all of their connections are in use. Try again shortly.")
}

// hasBody reports whether the request is judged once its body has arrived.
func (c *call) hasBody() bool {
	return c.op != nil && c.op.HasBody() && c.r.Method != http.MethodGet && c.r.Method != http.MethodHead
}
