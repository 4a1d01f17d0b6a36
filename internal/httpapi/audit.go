package httpapi

import (
	"cmp"
	"net/http"
	"time"

	"oda"
	"oda/internal/auditlog"
	"oda/internal/auth"
)

// audit is what the audit log will say about a write in progress.
type audit struct {
	lines   int // that were announced
	written bool
	version int64           // that the entity has now
	records int             // that were recorded
	several []*oda.Document // that the operation is to store, if it stores several
	stored  []*oda.Entity   // what they have become
}

// announce tells the audit log about a write before it is done, or about a read that
// only an admin may do. It fails if the log cannot be written.
func (c *call) announce() error {
	if c.api.cfg.Audit == nil || c.op == nil || c.op.Method == http.MethodGet && c.need < auth.Admin {
		return nil
	}
	if err := c.api.cfg.Audit.Begin(1); err != nil {
		return err
	}
	c.audit = &audit{lines: 1}
	return nil
}

// announceSeveral does the same for a write of several entities. Each has a line, even if
// the write is refused.
func (c *call) announceSeveral(documents []*oda.Document) error {
	if c.audit == nil || len(documents) == 0 {
		return nil
	}
	if more := len(documents) - 1; more > 0 {
		if err := c.api.cfg.Audit.Begin(more); err != nil {
			return err
		}
	}
	c.audit.lines, c.audit.several = len(documents), documents
	return nil
}

// wrote notes what a write has stored, for the audit log.
func (c *call) wrote(version int64, records int) {
	if c.audit != nil {
		c.audit.version, c.audit.records = version, records
	}
}

// wroteSeveral does the same for a write of several entities.
func (c *call) wroteSeveral(entities []*oda.Entity) {
	if c.audit != nil {
		c.audit.stored = entities
	}
}

// audited enters the call in the audit log. It comes before the answer: what a
// client knows to be stored is in the log.
func (c *call) audited() {
	log := c.api.cfg.Audit
	switch {
	case log == nil:
	case c.status == http.StatusUnauthorized, c.status == http.StatusForbidden && c.caller == nil:
		// Strangers could fill the log with lines of their own.
		from, _ := auth.Address(c.r, c.api.cfg.Proxies)
		log.Denied(from, c.status)
	case c.status == http.StatusForbidden:
		// So could callers who may not write. Nothing was stored.
		if c.audit != nil {
			c.audit.written = true
		}
		log.Refused(c.entry())
	case c.audit != nil:
		c.audit.written = true
		log.Write(c.entries()...)
	}
}

// endAudit makes sure that a write is in the audit log, also if it was not
// answered.
func (c *call) endAudit() {
	if c.audit == nil {
		return
	}
	if !c.audit.written {
		c.api.cfg.Audit.Write(c.entries()...)
	}
	c.api.cfg.Audit.End(c.audit.lines)
}

// entries returns a line for each entity of a write.
func (c *call) entries() []auditlog.Entry {
	e := c.entry()
	e.Version, e.Records = c.audit.version, c.audit.records
	if len(c.audit.several) == 0 {
		return []auditlog.Entry{e}
	}
	entries := make([]auditlog.Entry, len(c.audit.several))
	for i, d := range c.audit.several {
		e.Kind, e.Entity = d.Kind.String(), ""
		if oda.ValidID(d.ID) {
			e.Entity = d.ID
		}
		if i < len(c.audit.stored) {
			e.Version = c.audit.stored[i].Metadata.Version
		}
		entries[i] = e
	}
	return entries
}

// entry returns what the audit log says about any call.
func (c *call) entry() auditlog.Entry {
	e := auditlog.Entry{Time: time.Now().UTC(), Status: c.status, RequestID: c.requestID}
	e.From, e.Via = auth.Address(c.r, c.api.cfg.Proxies)
	if c.caller != nil {
		e.Caller, e.Means = c.caller.Name, string(c.caller.Means)
		e.User = cmp.Or(c.caller.User, c.user)
	}
	e.Operation = c.api.operations[c.counted].name
	if c.kind != 0 {
		e.Kind = c.kind.String()
	}
	if oda.ValidID(c.id) {
		e.Entity = c.id
	}
	if c.failure != nil {
		e.Problem = string(oda.CodeOf(c.failure))
	}
	return e
}
