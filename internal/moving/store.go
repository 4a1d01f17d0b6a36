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

// store stores the versions of an entity, in order.
func (s *storer) store(ctx context.Context, h *history) error {
	read := int64(len(h.versions))
	defer s.report.Read.Add(read)
	aside := func(f *found, reason string) error {
		return s.report.setAside(SetAside{Place: f.Place, Ref: h.Ref, Version: f.version, Reason: reason, Document: f.text})
	}
	twice, repeated := h.sort()
	for _, f := range twice {
		if err := aside(&f, f.twice()); err != nil {
			return err
		}
	}
	prints := make([]fingerprint, 0, len(h.versions))
	good := h.versions[:0]
	for i := range h.versions {
		f := h.versions[i]
		print, err := s.parser.fingerprint(h.Ref, f.text)
		if err != nil {
			if err := aside(&f, err.Error()); err != nil {
				return err
			}
			continue
		}
		if n := len(prints); n > 0 && f.version == 0 && print == prints[n-1] {
			repeated++ // the same document once more
			continue
		}
		good, prints = append(good, f), append(prints, print)
	}
	current, there, err := s.present(ctx, h.Ref, prints)
	if err != nil {
		return err
	}
	present := int64(there)
	if current != nil && present > current.Metadata.Version {
		present = 1
		if err := s.aside(h, good[:there-1], "the archive has a later one as its first version, and this cannot be stored before it"); err != nil {
			return err
		}
	}
	s.report.Present.Add(present + repeated)
	for i := there; i < len(good); i++ {
		f := &good[i]
		text := f.text
		// The document continues what this import has stored, or what is there as the
		// source has it.
		if current != nil && there > 0 {
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
			now, have, failed := s.present(ctx, h.Ref, prints)
			if failed != nil {
				return failed
			}
			if have > i {
				s.report.Present.Add(int64(have - i))
				current, there, i = now, have, have-1
				continue
			}
		}
		switch status := client.Status(err); {
		case err == nil:
			current, there = stored, i+1
			s.report.Imported.Add(1)
		case ctx.Err() != nil:
			return ctx.Err()
		case status == http.StatusUnprocessableEntity && current != nil && there == 0:
			err = s.aside(h, good[i:], "the archive has another document under this identifier, which the source does not know; it was left as it is")
			return err
		case status == 0 || client.Temporary(err) || client.Denied(err) && !ofDocument(err):
			return err
		default:
			if err := aside(f, reason(err).Error()); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofDocument reports whether something in the document was refused, such as its telescope,
// for which the caller may not store.
func ofDocument(err error) bool {
	refused, ok := errors.AsType[*oda.Error](err)
	return ok && len(refused.Faults) > 0
}

func (s *storer) aside(h *history, all []found, reason string) error {
	for _, f := range all {
		if err := s.report.setAside(SetAside{Place: f.Place, Ref: h.Ref, Version: f.version, Reason: reason, Document: f.text}); err != nil {
			return err
		}
	}
	return nil
}

// present finds out how many of the documents the archive has already, as versions in
// the same order. It returns the current version, nil if the entity is new. Documents
// are there only up to the last version: if another one follows, none counts, so that
// it is not overwritten.
func (s *storer) present(ctx context.Context, ref oda.Ref, prints []fingerprint) (current *client.Document, there int, err error) {
	current, err = s.into.Get(ctx, ref.Kind, ref.ID)
	if oda.CodeOf(err) == oda.NotFound {
		return nil, 0, nil
	}
	if err != nil || len(prints) == 0 {
		return current, 0, err
	}
	last, err := s.parser.fingerprint(ref, current.Body)
	if err != nil {
		return current, 0, err
	}
	// Most have one version, and are there or not.
	at := slices.Index(prints, last)
	switch {
	case current.Metadata.Version == 1 && at >= 0:
		return current, at + 1, nil
	case current.Metadata.Version == 1:
		return current, 0, nil
	}
	next := 0
	matched := false
	for version := int64(1); version <= current.Metadata.Version && next <= len(prints); version++ {
		d, err := s.into.Version(ctx, ref.Kind, ref.ID, version)
		if err != nil {
			return current, 0, err
		}
		print, err := s.parser.fingerprint(ref, d.Body)
		if err != nil {
			return current, 0, err
		}
		matched = next < len(prints) && print == prints[next]
		if matched {
			next++
		}
	}
	switch {
	case next == len(prints):
		return current, next, nil // all are there, whatever came later
	case matched:
		return current, next, nil
	}
	return current, 0, nil
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
