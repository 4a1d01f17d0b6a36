package load

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"oda"
	"oda/client"
)

// listed ends the mark of a record that came with a version, in its list. Such
// a record is no unit of its own.
const listed = "+listed"

// mostFaults is how many faults are named.
const mostFaults = 10

// Truth is every unit that is stored.
type Truth map[Unit]Fact

// Read reads everything that the writers have stored, from the server at host:port.
// The writers have ended, or it is a copy.
func (l *Load) Read(ctx context.Context, host string) (Truth, error) {
	c, err := client.New(host)
	if err != nil {
		return nil, err
	}
	defer c.CloseIdleConnections()
	all := make(Truth)
	for _, kind := range oda.Kinds {
		for id, err := range c.List(ctx, oda.Query{Kind: kind, Order: oda.ByCreation, After: new(oda.Instant)}) {
			if err == nil {
				err = l.readEntity(ctx, c, oda.Ref{Kind: kind, ID: id}, all)
			}
			if err != nil {
				return nil, fmt.Errorf("read what is stored in %s %s: %w", kind, id, err)
			}
		}
	}
	return all, nil
}

// readEntity reads the versions, statuses and records of an entity, unless it is
// another's.
func (l *Load) readEntity(ctx context.Context, c *client.Client, ref oda.Ref, all Truth) error {
	for info, err := range c.Versions(ctx, ref.Kind, ref.ID) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(info.Metadata.CreatedBy, l.series) {
			return nil
		}
		u := VersionOf(ref, info.Metadata.Version)
		version, err := c.Version(ctx, ref.Kind, ref.ID, u.Version)
		if err != nil {
			return err
		}
		var document struct{ Mark string }
		if err := json.Unmarshal(version.Body, &document); err != nil {
			return err
		}
		f := Fact{Write: l.sent(document.Mark)}
		if f.Write == nil {
			return fmt.Errorf("%q is stored as %v, and was never sent", document.Mark, u)
		}
		if ref.Kind != oda.ExecutionBlock { // records change the instant
			f.On = info.Metadata.LastModifiedOn
		} else if acked, ok := l.Of(u); ok {
			f.On = acked.On
		}
		all[u] = f
	}
	if err := l.readStatuses(ctx, c, ref, all); err != nil || ref.Kind != oda.ExecutionBlock {
		return err
	}
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
		u := RecordOf(ref, r.Sequence)
		mark, _, _ := strings.Cut(record.Request, "/") // in a batch, the number follows
		w := l.sent(mark)
		if w == nil {
			return fmt.Errorf("%q is stored as %v, and was never sent", record.Request, u)
		}
		acked, _ := l.Of(u)
		all[u] = Fact{Write: w, Block: acked.Block, On: r.RecordedOn}
	}
	return nil
}

// readStatuses reads what was said of an entity. What is current, and was before each
// entry, must follow from the entries.
func (l *Load) readStatuses(ctx context.Context, c *client.Client, ref oda.Ref, all Truth) error {
	for {
		told, err := c.Status(ctx, ref)
		if err != nil {
			return err
		}
		var entries []oda.Status
		for said, err := range c.Statuses(ctx, ref) {
			if err != nil {
				return err
			}
			entries = append(entries, said)
		}
		if again, err := c.Status(ctx, ref); err != nil || again != told {
			if err != nil {
				return err
			}
			continue // a write that nobody waits for has been stored meanwhile
		}
		current := oda.Status{Ref: ref, Version: told.Version}
		for i, said := range slices.Backward(entries) {
			u := StatusOf(ref, said.Sequence)
			f := Fact{Write: l.sent(said.Text), Block: said.Version, On: said.On}
			if f.Write == nil {
				return fmt.Errorf("%q is stored as %v, and was never sent", said.Text, u)
			}
			if said.Sequence != int64(len(entries)-i) || said.Previous != current.Text {
				l.contradict("%v comes after %q, and was said after %q", u, current.Text, said.Previous)
			}
			if current.Sequence == 0 || said.At >= current.At {
				current = said
			}
			all[u] = f
		}
		if told != current {
			l.contradict("%+v is said to be current, and %+v is", told, current)
		}
		return nil
	}
}

// Check compares what is stored with what was sent, answered and read. The writers
// have ended.
func (l *Load) Check(all Truth) error {
	errs := []error{l.unexpected()}
	fault := func(format string, args ...any) {
		if len(errs) <= mostFaults {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	for _, contradiction := range l.faults {
		fault("%s", contradiction)
	}
	for u, f := range l.acked {
		if stored := all[u]; stored.Write != f.Write {
			fault("%s was acknowledged as %v, which is not stored", f.Write.Mark, u)
		} else if f.On != 0 && stored.On != f.On {
			fault("%v was acknowledged on %v, and is stored on %v", u, f.On, stored.On)
		}
	}
	for u, mark := range l.read {
		if f, stored := all[u]; !stored || f.Write.Mark != mark {
			fault("%s was read as %v, and is gone", mark, u)
		}
	}
	made := make(map[*Write]int)
	for _, f := range all {
		made[f.Write]++
	}
	for w, n := range made {
		switch {
		case w.refused:
			fault("%s was refused, and is stored", w.Mark)
		case n != w.units:
			fault("%s is stored %d times, and not %d times", w.Mark, n, w.units)
		}
	}
	order := slices.SortedFunc(maps.Keys(all), func(a, b Unit) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.Status, b.Status))
	})
	var one []Unit // versions, records or statuses of one entity
	for i, u := range order {
		one = append(one, u)
		if i+1 < len(order) && order[i+1].alike(u) {
			continue
		}
		for early, late := range all.Overtaken(one) {
			fault("%v was sent when %v had been acknowledged", one[early], one[late])
		}
		one = one[:0]
	}
	return errors.Join(errs...)
}

// Overtaken yields each place in a sequence of units whose write was sent when that of a
// later place had been acknowledged, and that place.
func (all Truth) Overtaken(sequence []Unit) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		first, answered := 0, Never // the earliest answer of those after this one
		for i, u := range slices.Backward(sequence) {
			f, stored := all[u]
			if !stored {
				continue
			}
			if answered < f.Write.Sent && !yield(i, first) {
				return
			}
			if f.Write.Answered < answered {
				first, answered = i, f.Write.Answered
			}
		}
	}
}
