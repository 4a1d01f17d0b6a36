package archive

import (
	"context"
	"fmt"
	"math"

	"oda"
)

// Say says a status of an entity. The caller has checked the form of everything but the
// texts.
func (a *Archive) Say(ctx context.Context, say oda.NewStatus, w Write) (*oda.Status, error) {
	switch {
	case !oda.ValidID(say.ID):
		return nil, oda.Missing(say.Ref)
	case !oda.ValidStatus(say.Text):
		return nil, badStatus("status", fmt.Sprintf("1 to %d characters, none of them a control character", oda.MaxStatus))
	case !oda.ValidReason(say.Reason):
		return nil, badStatus("reason", fmt.Sprintf("up to %d characters of text", oda.MaxReason))
	}
	say.By, say.Now, say.Key, say.Telescopes = w.modifier(), oda.InstantOf(a.now()), w.key(), w.Telescopes
	say.Own = w.Own
	return a.engine.Say(ctx, say)
}

func badStatus(member, rule string) *oda.Error {
	return &oda.Error{
		Code: oda.InvalidRequest, Detail: fmt.Sprintf("The %s must be %s. Nothing was stored.", member, rule),
		Faults: []oda.Fault{{Pointer: "/" + member, Detail: "must be " + rule}},
	}
}

// Status returns the current status of an entity.
func (a *Archive) Status(ctx context.Context, ref oda.Ref) (*oda.Status, error) {
	if !oda.ValidID(ref.ID) {
		return nil, oda.Missing(ref)
	}
	return a.engine.Status(ctx, ref)
}

// StatusPage is a page of the statuses of an entity, newest first.
type StatusPage struct {
	Statuses []oda.Status
	Next     string // the cursor of the next page; empty if there is none
}

// Statuses returns a page of the statuses of an entity, newest first: those before a
// sequence number, or the newest if before is 0.
func (a *Archive) Statuses(ctx context.Context, ref oda.Ref, before int64, limit int) (StatusPage, error) {
	if !oda.ValidID(ref.ID) {
		return StatusPage{}, oda.Missing(ref)
	}
	if before == 0 {
		before = math.MaxInt64
	}
	statuses, err := a.engine.StatusesBefore(ctx, ref, before, limit)
	page := StatusPage{Statuses: statuses}
	if n := len(statuses); err == nil && n > 0 && statuses[n-1].Sequence > 1 {
		page.Next = oda.CountedCursor(ref, oda.OfStatuses, statuses[n-1].Sequence)
	}
	return page, err
}
