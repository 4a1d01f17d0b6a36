package postgres_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/internal/postgres"
)

// hot is an operation whose statements must not become slower as the archive
// grows.
type hot struct {
	name, purpose string
	run           func(t *testing.T, s *postgres.Store, try int) error
	buffers       int // pages that one statement may touch at most
}

// hotOperations returns all hot operations. An operation that creates an entity
// creates another one with each try.
func hotOperations() []hot {
	ctx := context.Background()
	list := func(q oda.Query) func(*testing.T, *postgres.Store, int) error {
		q.Kind, q.Limit = oda.SBDefinition, 101
		return func(_ *testing.T, s *postgres.Store, _ int) error {
			return s.List(ctx, q, func(string, oda.Instant) error { return nil })
		}
	}
	after := oda.Instant(1_000_000)
	record := func(first, blocks int) func(*testing.T, *postgres.Store, int) error {
		return func(_ *testing.T, s *postgres.Store, try int) error {
			var adds []oda.Append
			for i := range blocks {
				adds = append(adds, adding(fmt.Sprint("id-", first+i*10), "x", fmt.Sprint("key-", blocks, "-", try, "-", i)))
			}
			_, errs := s.AppendTogether(ctx, adds)
			return errs[0]
		}
	}
	return append([]hot{
		{
			"Find the blocks of a night", "The blocks that have calls on one of two days.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.BlocksOn(ctx, oda.Days{First: -1, Last: 0}, 100)
				return err
			}, 48,
		},
		{
			"Read a block of a night", "Its records on these days: which there are, and then a part of them.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				for _, err := range s.RecordsOn(ctx, "id-1000", oda.Days{First: -1, Last: 0}, oda.AllSequences) {
					if err != nil {
						return err
					}
				}
				return nil
			}, 24,
		},
		{
			"Get", "Reading the current version of an entity: its head and its body.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.Get(ctx, sbd("id-1000"))
				return err
			}, 16,
		},
		{
			"Get the last of many versions", "The same of an entity with 2,000 versions, and with its records carried over to another one.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				e, err := s.Get(ctx, block("id-5000"))
				if err != nil {
					return err
				}
				put := next(t, block("id-5000"), e.Metadata)
				put.KeepRecords, put.Compare = true, oda.KeptFields
				_, err = s.Put(ctx, []oda.Put{put})
				return err
			}, 60,
		},
		{
			"An old version", "Reading one of 2,000 versions by its number.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.Version(ctx, block("id-5000"), 1000)
				return err
			}, 24,
		},
		{
			"As of an instant", "Finding one of 2,000 versions by an instant, and the last record of then, of 10,000.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				e, err := s.Version(ctx, block("id-5000"), 1000)
				if err != nil {
					return err
				}
				_, err = s.AsOf(ctx, block("id-5000"), e.Metadata.LastModifiedOn)
				if err == nil {
					_, err = s.AsOf(ctx, block("id-6000"), 6_015_000)
				}
				if err == nil {
					_, err = s.AsOf(ctx, sbd("id-1000"), math.MaxInt64)
				}
				return err
			}, 160,
		},
		{
			"A page of versions", "What is known of 100 versions, of 2,000.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.Versions(ctx, block("id-5000"), 1900, 100)
				return err
			}, 100 * 12,
		},
		{
			"Records of a block", "Reading a part of the records of a block, in order.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				e, err := s.Get(ctx, block("id-1000"))
				if err != nil {
					return err
				}
				return e.Render(1 << 20)
			}, 24,
		},
		{
			"First store", "PUT of an identifier that is new.",
			func(t *testing.T, s *postgres.Store, try int) error {
				_, err := s.Put(ctx, []oda.Put{write(t, sbd(fmt.Sprint("new-", try)), `{"a":1}`)})
				return err
			}, 64,
		},
		{
			"Update", "PUT of a stored entity with the metadata that it has.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				e, err := s.Get(ctx, sbd("id-2000"))
				if err == nil {
					_, err = s.Put(ctx, []oda.Put{next(t, sbd("id-2000"), e.Metadata)})
				}
				return err
			}, 64,
		},
		{
			"Update 32", "The same for 32 entities that had to wait, in one statement.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				var puts []oda.Put
				for i := range 32 {
					ref := sbd(fmt.Sprint("id-", 9000+i*10))                                                                  // they come late in the index
					m := oda.Metadata{Version: 1, CreatedBy: "anna", CreatedOn: 1, LastModifiedBy: "anna", LastModifiedOn: 1} // until there is one
					if e, err := s.Get(ctx, ref); err == nil {
						m = e.Metadata
					}
					puts = append(puts, next(t, ref, m))
				}
				entities, err := s.UpdateTogether(ctx, puts)
				if err == nil && slices.Contains(entities, nil) {
					err = errors.New("an update was refused")
				}
				return err
			}, 32 * 32,
		},
		{
			"Create with a key", "POST of a collection with an Idempotency-Key: the key is claimed, then the entity is stored.",
			func(t *testing.T, s *postgres.Store, try int) error {
				put := write(t, block(fmt.Sprint("created-", try)), `{"a":1}`)
				_, err := s.Create(ctx, put, &oda.Key{Value: fmt.Sprint("fresh-", try), Digest: sha256.Sum256(nil)})
				return err
			}, 64,
		},
		{
			"Created before", "What an Idempotency-Key created before.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.Created(ctx, oda.ExecutionBlock, oda.Key{Value: "created-1000", Digest: sha256.Sum256(nil)})
				return err
			}, 24,
		},
		{"Record one", "One record for one block: its head is moved, and the record is added.", record(1000, 1), 48},
		{"Record 64", "A batch of 64 records for 64 blocks.", record(1000, 64), 64 * 32},
		{"Record one in a long block", "The same with a block that has 10,000 records.", record(6000, 1), 48},
		{"Record two in long blocks", "The same with two such blocks.", record(6000, 2), 64},
		{
			"Record again", "A record with a key that is known: nothing is added, and the record is found.",
			func(_ *testing.T, s *postgres.Store, _ int) error {
				for _, again := range []oda.Append{adding("id-1050", "y", "seed-4"), adding("id-6000", "y", "seed-9000-"+strings.Repeat("x", 30))} {
					if _, err := one(ctx, s, again); oda.CodeOf(err) != oda.KeyReused { // with another body
						return fmt.Errorf("the key is not known: %w", err)
					}
				}
				return nil
			}, 32,
		},
		{
			"Say", "A status, with a key: the head is locked, and then the status is added. Few entities have another one.",
			func(t *testing.T, s *postgres.Store, try int) error {
				for i, ref := range []oda.Ref{block("id-7000"), block("id-7001"), sbd("id-2000")} {
					key := &oda.Key{Value: fmt.Sprint("said-", try, "-", i)}
					if _, err := s.Say(ctx, oda.NewStatus{Ref: ref, Text: "Observed", Key: key, By: "anna", Now: now()}); err != nil {
						return err
					}
				}
				return nil
			}, 48,
		},
		{
			"Say 32", "The same for 32 entities that had to wait, in one statement.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				var says []oda.NewStatus
				for i := range 32 {
					says = append(says, oda.NewStatus{Ref: sbd(fmt.Sprint("id-", 9000+i*10)), Text: "Observed", By: "anna", Now: now()})
				}
				return errors.Join(s.SayTogether(ctx, says)...)
			}, 32 * 24,
		},
		{
			"Say again", "A status with a key that is known, of 2,000 statuses: nothing is added, and the status is found.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.Say(ctx, oda.NewStatus{Ref: block("id-7000"), Text: "Observed", Key: &oda.Key{Value: "seed-1000", Digest: sha256.Sum256(nil)}, Now: now()})
				if oda.CodeOf(err) != oda.KeyReused { // with another body
					return fmt.Errorf("the key is not known: %w", err)
				}
				return nil
			}, 48,
		},
		{
			"Status", "The current status, of 2,000, and that of an entity that has none.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.Status(ctx, block("id-7000"))
				if err == nil {
					_, err = s.Status(ctx, block("id-7001"))
				}
				return err
			}, 24,
		},
		{
			"A page of statuses", "100 statuses, of 2,000.",
			func(t *testing.T, s *postgres.Store, _ int) error {
				_, err := s.StatusesBefore(ctx, block("id-7000"), 1900, 100)
				return err
			}, 24,
		},
		{
			following, "A version is stored, numbered, and read from the log of changes.",
			func(t *testing.T, s *postgres.Store, try int) error {
				end, err := s.End(ctx)
				if err == nil {
					_, err = s.Put(ctx, []oda.Put{write(t, sbd(fmt.Sprint("followed-", try)), `{"a":1}`)})
				}
				if err == nil {
					_, _, err = s.Changes(ctx, end, 100)
				}
				return err
			}, 64,
		},
		{"List by creation", "A page of a listing by created_on.", list(oda.Query{Order: oda.ByCreation, After: &after}), 16},
		{"List by modification", "A page of a listing by last_modified_on.", list(oda.Query{Order: oda.ByModification, After: &after}), 24},
		{"List by user", "A page of a listing by user, equals.", list(oda.Query{Order: oda.ByCreation, Match: oda.UserEquals, User: "user-7"}), 16},
		{"List by user, starts with", "A page of a listing by the beginning of a user.", list(oda.Query{Order: oda.ByCreation, Match: oda.UserStartsWith, User: "user-4"}), 32},
		{"List by user, contains", "A page of a listing by a part of a user.", list(oda.Query{Order: oda.ByCreation, Match: oda.UserContains, User: "r-4"}), 32},
	}, slices.Concat(notableOperations(), searchOperations())...)
}
