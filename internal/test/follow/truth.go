package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"oda"
	"oda/client"
)

// listed ends the mark of a record that came with a version, in its list. Such
// a record is no change of its own.
const listed = "+listed"

// truth reads everything that is stored in the entities that were written to,
// or that a log names, and finds out who wrote it. The writers have ended. An
// acknowledged write that is not stored is an error, and so is a stored one that
// nobody sent, or that was refused.
func (l *ledger) truth(ctx context.Context, c *client.Client, log []step) (truth, error) {
	refs := make(map[oda.Ref]bool)
	for _, ref := range l.entities() {
		refs[ref] = true
	}
	for _, s := range log {
		refs[s.Ref] = true
	}
	all := make(truth)
	for ref := range refs {
		err := l.readVersions(ctx, c, ref, all)
		if err == nil && ref.Kind == oda.ExecutionBlock {
			err = l.readRecords(ctx, c, ref, all)
		}
		if err != nil && oda.CodeOf(err) != oda.NotFound {
			return nil, fmt.Errorf("read what is stored in %s: %w", ref.ID, err)
		}
	}
	errs := []error{}
	for _, contradiction := range l.twice {
		errs = append(errs, errors.New(contradiction))
	}
	for u, f := range l.acked {
		if stored, ok := all[u]; !ok || stored.write != f.write {
			errs = append(errs, fmt.Errorf("%s was acknowledged as %v, which is not stored", f.write.mark, u))
		}
	}
	return all, errors.Join(errs[:min(len(errs), mostFaults)]...)
}

func (l *ledger) readVersions(ctx context.Context, c *client.Client, ref oda.Ref, all truth) error {
	for info, err := range c.Versions(ctx, ref.Kind, ref.ID) {
		if err != nil {
			return err
		}
		u := unit{ref, info.Metadata.Version, 0}
		if f, ok := l.acked[u]; ok {
			all[u] = f
			continue
		}
		version, err := c.Version(ctx, ref.Kind, ref.ID, u.version)
		if err != nil {
			return err
		}
		var document struct{ Mark string }
		if err := json.Unmarshal(version.Body, &document); err != nil {
			return err
		}
		w, err := l.writer(document.Mark)
		if err != nil {
			return fmt.Errorf("%v: %w", u, err)
		}
		f := fact{write: w}
		if ref.Kind != oda.ExecutionBlock { // records change the instant
			f.on = info.Metadata.LastModifiedOn
		}
		all[u] = f
	}
	return nil
}

func (l *ledger) readRecords(ctx context.Context, c *client.Client, ref oda.Ref, all truth) error {
	for r, err := range c.Records(ctx, ref.ID, 0) {
		if err != nil {
			return err
		}
		var record struct{ Request string }
		if err := json.Unmarshal(r.Text, &record); err != nil {
			return err
		}
		if strings.HasSuffix(record.Request, listed) {
			continue
		}
		u := unit{ref, 0, r.Sequence}
		w, err := l.writer(record.Request)
		if err != nil {
			return fmt.Errorf("%v: %w", u, err)
		}
		all[u] = fact{write: w, block: l.acked[u].block, on: r.RecordedOn}
	}
	return nil
}

// writer finds the write with a mark.
func (l *ledger) writer(mark string) (*write, error) {
	w := l.writes[mark]
	switch {
	case w == nil:
		return nil, fmt.Errorf("%q is stored, and was never sent", mark)
	case w.refused:
		return nil, fmt.Errorf("%q is stored, and was refused", mark)
	}
	return w, nil
}
