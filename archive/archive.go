package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"oda"
	"oda/summary"
)

// mintTries is how many identifiers Create tries before it gives up because
// all of them are in use.
const mintTries = 5

// Archive implements the operations of the service and their rules, in terms of
// the domain.
type Archive struct {
	engine oda.Engine
	minter oda.Minter
	now    func() time.Time
}

// New returns an archive that stores in engine and takes new identifiers
// from minter.
func New(engine oda.Engine, minter oda.Minter) *Archive {
	return &Archive{engine: engine, minter: minter, now: time.Now}
}

// Write is what a request says about a write, besides the document.
type Write struct {
	User      string // the acting user; empty if the request names none
	Condition oda.Condition
	Key       string // the idempotency key, or empty
	Operation string // what the key was sent to
	Received  []byte // the body of the request; tells a retry from another request

	// Telescopes are those for which the caller may write, nil if any.
	Telescopes *oda.Telescopes

	// Own says that the caller may only change what the caller has created.
	Own bool

	// Batch says that the request has a list of records, each with its key.
	Batch bool

	// KeepRecords carries the stored records of an ExecutionBlock over into the
	// next version. The document must not have a list of its own.
	KeepRecords bool
}

// modifier returns the user who makes a change.
func (w Write) modifier() string {
	if w.User != "" {
		return w.User
	}
	return oda.DefaultUser
}

// creator returns the user of a first store, whom the document may also name.
func (w Write) creator(d *oda.Document) string {
	if w.User == "" && d.Metadata.CreatedBy != "" {
		return d.Metadata.CreatedBy
	}
	return w.modifier()
}

// key returns the idempotency key with the digest of its request, or nil.
func (w Write) key() *oda.Key {
	if w.Key == "" {
		return nil
	}
	h := sha256.New()
	h.Write([]byte(w.Operation + "\n"))
	h.Write(w.Received)
	return &oda.Key{Value: w.Key, Digest: [sha256.Size]byte(h.Sum(nil))}
}

// Get returns the current version of an entity.
func (a *Archive) Get(ctx context.Context, ref oda.Ref) (*oda.Entity, error) {
	if !oda.ValidID(ref.ID) {
		return nil, oda.Missing(ref)
	}
	return a.engine.Get(ctx, ref)
}

// Store creates or updates the entity id.
func (a *Archive) Store(ctx context.Context, id string, d *oda.Document, w Write) (*oda.Entity, error) {
	if d.ID != "" && d.ID != id {
		return nil, &oda.Error{
			Code: oda.IdentifierMismatch,
			Detail: fmt.Sprintf("There is a mismatch: the path names the %s %s, the document says %s. Make them the same, or leave %s out of the document.",
				d.Kind, oda.Clip(id), oda.Clip(d.ID), d.Kind.IDField()),
			Faults: []oda.Fault{{Pointer: d.Pointer + "/" + d.Kind.IDField(), Detail: "differs from the identifier in the path"}},
		}
	}
	put, err := put(id, d, w, oda.InstantOf(a.now()))
	if err != nil {
		return nil, err
	}
	entities, err := a.engine.Put(ctx, []oda.Put{put})
	if err != nil {
		return nil, err
	}
	return entities[0], nil
}

// maxEntities is how many entities one request may store. Nobody else can write
// to them meanwhile.
const maxEntities = 10_000

// StoreAll creates or updates several entities, or none of them.
func (a *Archive) StoreAll(ctx context.Context, documents []*oda.Document, w Write) ([]*oda.Entity, error) {
	switch {
	case len(documents) == 0:
		return nil, nil
	case len(documents) > maxEntities:
		return nil, oda.Errorf(oda.InvalidRequest, "A request may store at most 10,000 entities, and this one has %d. Nothing was stored. "+
			"Send them in several requests.", len(documents))
	}
	seen := make(map[oda.Ref]string, len(documents))
	puts := make([]oda.Put, len(documents))
	var twice []oda.Fault
	repeated := 0
	now := oda.InstantOf(a.now())
	for i, d := range documents {
		ref := oda.Ref{Kind: d.Kind, ID: d.ID}
		if before, ok := seen[ref]; ok {
			if repeated++; repeated <= oda.MaxListed {
				twice = append(twice, oda.Fault{Pointer: d.Pointer, Detail: fmt.Sprintf("%s %s is already at %s", d.Kind, oda.Clip(d.ID), before)})
			}
			continue
		}
		seen[ref] = d.Pointer
		var err error
		if puts[i], err = put(d.ID, d, w, now); err != nil {
			return nil, err
		}
	}
	if twice != nil {
		return nil, &oda.Error{Code: oda.DuplicateEntity, Faults: twice, Detail: fmt.Sprintf("%d of %d entities appear more than once in their collection%s. "+
			"Nothing was stored. Send each entity once.", repeated, len(documents), oda.Listed(repeated))}
	}
	return a.engine.Put(ctx, puts)
}

// put returns the Put that stores a document under id.
func put(id string, d *oda.Document, w Write, now oda.Instant) (oda.Put, error) {
	if !oda.ValidID(id) {
		return oda.Put{}, badID(d.Pointer, d.Kind)
	}
	if w.KeepRecords && d.Listed {
		return oda.Put{}, &oda.Error{
			Code: oda.InvalidRequest, Detail: "With records=keep the stored records are kept. " +
				"Leave " + oda.RecordsField + " out of the document.",
			Faults: []oda.Fault{{Pointer: d.Pointer + "/" + oda.RecordsField, Detail: "is not allowed with records=keep"}},
		}
	}
	if err := d.CheckNote(now); err != nil {
		return oda.Put{}, err
	}
	creator, err := checkedCreator(d, w)
	if err != nil {
		return oda.Put{}, err
	}
	compare := oda.AllFields
	if w.KeepRecords {
		compare = oda.KeptFields
	}
	p := oda.Put{
		Ref: oda.Ref{Kind: d.Kind, ID: id}, Body: d.Body(id), Expected: d.Metadata, Compare: compare, Condition: w.Condition,
		Creator: creator, Modifier: w.modifier(), At: now, Pointer: d.Pointer,
		Records: d.Records, Listed: d.Listed, KeepRecords: w.KeepRecords, Extract: summary.OfDocument(d), Telescopes: w.Telescopes, Own: w.Own,
	}
	return p, p.AdmitNew()
}

// checkedCreator returns the user of a first store.
func checkedCreator(d *oda.Document, w Write) (string, error) {
	creator := w.creator(d)
	if !oda.ValidUser(creator) {
		return "", &oda.Error{
			Code: oda.InvalidUser, Detail: "The acting user must be " + oda.UserRule + ".",
			Faults: []oda.Fault{{Pointer: d.Pointer + "/metadata/created_by", Detail: "is not a valid user name"}},
		}
	}
	return creator, nil
}

func badID(pointer string, kind oda.Kind) *oda.Error {
	return &oda.Error{
		Code: oda.InvalidIdentifier,
		Detail: "This identifier is not valid. It must be 1 to 128 of the characters A-Z a-z 0-9 . _ -, " +
			"begin with a letter or digit, and be neither create nor search.",
		Faults: []oda.Fault{{Pointer: pointer + "/" + kind.IDField(), Detail: "is not a valid identifier"}},
	}
}

// CreateEmpty creates an ExecutionBlock that has a list of records from the
// start, even if it is empty.
func (a *Archive) CreateEmpty(ctx context.Context, d *oda.Document, w Write) (*oda.Entity, error) {
	d.Listed = true
	return a.Create(ctx, d, w)
}

// Create stores a new entity under a generated identifier. It ignores the
// identifier in the document.
func (a *Archive) Create(ctx context.Context, d *oda.Document, w Write) (*oda.Entity, error) {
	if err := d.CheckNote(oda.InstantOf(a.now())); err != nil {
		return nil, err
	}
	creator, err := checkedCreator(d, w)
	if err != nil {
		return nil, err
	}
	put := oda.Put{
		Ref: oda.Ref{Kind: d.Kind}, Creator: creator, Modifier: w.modifier(), Pointer: d.Pointer,
		Records: d.Records, Listed: d.Listed, Extract: summary.OfDocument(d), Telescopes: w.Telescopes,
	}
	if err := put.AdmitNew(); err != nil {
		return nil, err
	}
	key := w.key()
	if key != nil {
		// A retry must be answered even when no identifier is available.
		if e, err := a.engine.Created(ctx, d.Kind, *key); e != nil || err != nil {
			return e, err
		}
	}
	for range mintTries {
		id, err := a.minter.Mint(ctx, d.Kind)
		if err != nil {
			return nil, err
		}
		if !oda.ValidID(id) {
			return nil, oda.Errorf(oda.IdentifierService, "The identifier service returned an invalid identifier. "+
				"Nothing was stored. Tell the operator.")
		}
		put.ID, put.Body, put.At = id, d.Body(id), oda.InstantOf(a.now())
		e, err := a.engine.Create(ctx, put, key)
		if !errors.Is(err, oda.ErrTaken) {
			return e, err
		}
	}
	return nil, oda.Errorf(oda.IdentifierService, "The identifier service returned %d identifiers in a row that are already in use. "+
		"Nothing was stored. Try again; if this persists, tell the operator.", mintTries)
}

// Record adds records to an ExecutionBlock, in order, all or none. A key stands
// for one record of the block, whether that was sent alone or with others.
func (a *Archive) Record(ctx context.Context, block string, records []oda.NewRecord, w Write) ([]oda.Receipt, error) {
	if !oda.ValidID(block) {
		return nil, oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: block})
	}
	if len(records) == 0 {
		return nil, nil
	}
	add := oda.Append{Block: block, By: w.modifier(), At: oda.InstantOf(a.now()), Records: records, Batch: w.Batch, Telescopes: w.Telescopes}
	if err := add.CheckKeys(); err != nil {
		return nil, err
	}
	return a.engine.Append(ctx, add)
}

// Records returns up to limit records of a block that follow a sequence number.
func (a *Archive) Records(ctx context.Context, block string, after int64, limit int) (oda.RecordPage, error) {
	if !oda.ValidID(block) {
		return oda.RecordPage{}, oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: block})
	}
	return a.engine.Records(ctx, block, after, limit)
}

// List calls emit for each identifier that matches the query, in order. If more
// follow the page, List returns the place where the page ended.
func (a *Archive) List(ctx context.Context, q oda.Query, emit func(id string) error) (*oda.Place, error) {
	ask := q
	if q.Limit > 0 {
		ask.Limit = q.Limit + 1 // the extra one shows that more follow
	}
	var last oda.Place
	more := false
	n := 0
	err := a.engine.List(ctx, ask, func(id string, at oda.Instant) error {
		if n++; q.Limit > 0 && n > q.Limit {
			more = true
			return nil
		}
		last = oda.Place{At: at, ID: id}
		return emit(id)
	})
	if err != nil || !more {
		return nil, err
	}
	return &last, nil
}

// Look returns the current version of each entity as search sees it, or nil if it
// is unknown.
func (a *Archive) Look(ctx context.Context, refs []oda.Ref) ([]*oda.Found, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	return a.engine.Look(ctx, refs)
}

// Counts returns the number of entities of each kind.
func (a *Archive) Counts(ctx context.Context) (map[oda.Kind]int64, error) {
	return a.engine.Counts(ctx)
}

// Usage returns how much room the archive takes on its disk.
func (a *Archive) Usage(ctx context.Context) (oda.Usage, error) { return a.engine.Usage(ctx) }

// Ping returns an error if reading or writing does not work.
func (a *Archive) Ping(ctx context.Context) error { return a.engine.Ping(ctx) }
