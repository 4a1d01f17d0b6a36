package moving

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"oda"
	"oda/client"
)

// storesAtOnce is how many entities are stored at the same time.
const storesAtOnce = 8

// storer stores documents as new ones: the archive gives them versions and times, and
// the user is the one who imports. It leaves out what the archive has already, and it
// never overwrites what the source does not know.
type storer struct {
	open   func() (*client.Client, error)
	into   *client.Client // nil until there is something to store
	parser *parser
	report *Report
}

// storeAll stores histories, several at a time.
func (s *storer) storeAll(ctx context.Context, histories func(context.Context, func(*history) error) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan *history)
	var working sync.WaitGroup
	for range storesAtOnce {
		working.Go(func() {
			for h := range queue {
				if ctx.Err() != nil {
					continue
				}
				if err := s.store(ctx, h); err != nil {
					cancel(err)
				}
			}
		})
	}
	err := histories(ctx, func(h *history) (err error) {
		if s.into == nil {
			if s.into, err = s.open(); err != nil {
				return err
			}
		}
		select {
		case queue <- h:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	close(queue)
	working.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// numbers has the numbers that versions of a source have in the archive.
type numbers map[int64]int64

// store stores the versions of an entity, in order, and then says its statuses.
func (s *storer) store(ctx context.Context, h *history) error {
	defer s.report.Read.Add(int64(len(h.versions) + len(h.said)))
	stored := make(numbers)
	if err := s.storeVersions(ctx, h, stored); err != nil {
		return err
	}
	return s.say(ctx, h, stored)
}

// storeVersions stores the versions of an entity, and notes their numbers.
func (s *storer) storeVersions(ctx context.Context, h *history, numbers numbers) error {
	good, prints, repeated, err := s.readable(h)
	if err != nil {
		return err
	}
	current, there, err := s.present(ctx, h.Ref, prints)
	if err != nil {
		return err
	}
	s.report.Present.Add(repeated)
	next, err := s.pass(good, 0, there, numbers)
	if err != nil {
		return err
	}
	for i := next; i < len(good); i++ {
		f := &good[i]
		text := f.text
		// The document continues what this import has stored, or what is there as the
		// source has it.
		if current != nil && next > 0 {
			d, err := s.parser.parse(h.Kind, f.text)
			if err != nil {
				return err
			}
			if text, err = d.Restated(h.ID, current.Metadata); err != nil {
				return err
			}
		}
		stored, err := s.into.Store(ctx, h.Kind, h.ID, text)
		if client.Status(err) == http.StatusUnprocessableEntity {
			// Another import of the same may be faster.
			now, there, failed := s.present(ctx, h.Ref, prints)
			if failed != nil {
				return failed
			}
			if n := len(there); n > 0 && there[n-1].at >= i {
				if next, failed = s.pass(good, i, there, numbers); failed != nil {
					return failed
				}
				current, i = now, next-1
				continue
			}
		}
		if client.Status(err) == http.StatusUnprocessableEntity && current != nil && next == 0 {
			return s.aside(good[i:], "the archive has another document under this identifier, which the source does not know; it was left as it is")
		}
		if err == nil {
			current, next = stored, i+1
			numbers[f.version] = stored.Metadata.Version
		}
		if err := s.settle(ctx, err, f.aside); err != nil {
			return err
		}
	}
	return nil
}

// settle counts what was imported, or sets it aside if the archive refuses it. An error ends
// the import.
func (s *storer) settle(ctx context.Context, err error, aside func(reason string) SetAside) error {
	switch {
	case err == nil:
		s.report.Imported.Add(1)
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case client.Status(err) == 0 || client.Temporary(err) || client.Denied(err) && !ofDocument(err):
		return err
	}
	return s.report.setAside(aside(reason(err).Error()))
}

// ofDocument reports whether something in the document was refused, such as a telescope for
// which the caller may not store.
func ofDocument(err error) bool {
	refused, ok := errors.AsType[*oda.Error](err)
	return ok && len(refused.Faults) > 0
}

// readable returns the versions that can be stored, with their fingerprints, and how many
// are the same document once more. It sets the others aside.
func (s *storer) readable(h *history) (good []found, prints []fingerprint, repeated int64, err error) {
	aside, repeated := h.sort()
	for _, f := range h.versions {
		print, err := s.parser.fingerprint(h.Ref, f.text)
		switch n := len(prints); {
		case err != nil:
			aside = append(aside, f.aside(err.Error()))
		case n > 0 && f.version == 0 && print == prints[n-1]:
			repeated++
		default:
			good, prints = append(good, f), append(prints, print)
		}
	}
	return good, prints, repeated, s.report.setAside(aside...)
}

func (s *storer) aside(all []found, reason string) error {
	aside := make([]SetAside, len(all))
	for i := range all {
		aside[i] = all[i].aside(reason)
	}
	return s.report.setAside(aside...)
}

// match is a document that the archive has already.
type match struct {
	at      int // its place among the documents
	version int64
}

// pass skips the documents from a place on up to the last one that the archive has, and
// returns the next place. Those in between cannot be stored any more.
func (s *storer) pass(good []found, from int, there []match, numbers numbers) (next int, err error) {
	for _, m := range there {
		if m.at < from {
			continue
		}
		numbers[good[m.at].version] = m.version
		if err := s.aside(good[from:m.at], "the archive has a later one already, and this cannot be stored before it"); err != nil {
			return from, err
		}
		s.report.Present.Add(1)
		from = m.at + 1
	}
	return from, nil
}

// present finds out which of the documents the archive has already, as versions in the same
// order. It returns the current version, nil if the entity is new. If the archive has
// another version after these, none counts, so that it is not overwritten.
func (s *storer) present(ctx context.Context, ref oda.Ref, prints []fingerprint) (current *client.Document, there []match, err error) {
	current, err = s.into.Get(ctx, ref.Kind, ref.ID)
	if oda.CodeOf(err) == oda.NotFound {
		return nil, nil, nil
	}
	if err != nil || len(prints) == 0 {
		return current, nil, err
	}
	next, isLast := 0, false
	for version := int64(1); version <= current.Metadata.Version && next < len(prints); version++ {
		d := current
		if version < current.Metadata.Version {
			if d, err = s.into.Version(ctx, ref.Kind, ref.ID, version); err != nil {
				return current, nil, err
			}
		}
		print, err := s.parser.fingerprint(ref, d.Body)
		if err != nil {
			return current, nil, err
		}
		ahead := slices.Index(prints[next:], print)
		if isLast = ahead >= 0; isLast {
			there = append(there, match{next + ahead, version})
			next += ahead + 1
		}
	}
	if next == len(prints) || isLast { // if all are there, it does not matter what came later
		return current, there, nil
	}
	return current, nil, nil
}

// fingerprint tells whether two documents are the same, apart from what the server
// owns.
type fingerprint [sha256.Size]byte

func (p *parser) fingerprint(ref oda.Ref, text []byte) (print fingerprint, err error) {
	d, err := p.parse(ref.Kind, text)
	if err != nil {
		return print, err
	}
	if d.ID != "" && d.ID != ref.ID {
		return print, errors.New("its document has another identifier")
	}
	body := d.Body(ref.ID)
	h := sha256.New()
	fmt.Fprintf(h, "%v\n", d.Listed)
	h.Write(body.Digest[:])
	for _, r := range d.Records {
		digest := oda.DigestOf(r)
		h.Write(digest[:])
	}
	h.Sum(print[:0])
	return print, nil
}
