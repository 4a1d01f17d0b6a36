package moving

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oda"
	"oda/api"
	"oda/internal/contract"
	"oda/internal/engine"
	"oda/internal/rawjson"
	"oda/summary"
)

// found is a document of a source, with what is known of it before it is read.
type found struct {
	Origin
	oda.Ref       // without a kind, its identifier tells; without an identifier, the document has it
	version int64 // 0: the document has it
	text    []byte

	// What the other columns of a database say. It counts more than the metadata in the
	// document.
	meta *oda.Received
}

// aside returns the document as one that is not imported.
func (f *found) aside(reason string) SetAside {
	return SetAside{Origin: f.Origin, Ref: f.Ref, Version: f.version, Reason: reason, Document: f.text}
}

// history is an entity as a source has it: the documents of its versions, in order. If two
// have the same version, the later one counts.
type history struct {
	oda.Ref
	versions []found
	said     []said        // its statuses, in order
	refused  *refusedError // why it could not be read
	parts    *progress     // if these are not all versions; the parts share it
}

// progress is what precedes a version of a history.
type progress struct {
	state   oda.LogState
	records []engine.Numbered // of the version before
}

// parser reads documents as the archive's interface does.
type parser struct {
	store map[oda.Kind]*contract.Operation
}

func newParser() (*parser, error) {
	description, err := contract.Load(api.JSON(), "Record")
	if err != nil {
		return nil, fmt.Errorf("compile the API description: %w", err)
	}
	p := &parser{store: make(map[oda.Kind]*contract.Operation)}
	for _, kind := range oda.Kinds {
		p.store[kind] = description.Operation("store" + kind.Short())
	}
	return p, nil
}

// parse checks a document against the API description.
func (p *parser) parse(kind oda.Kind, text []byte) (*oda.Document, error) {
	index, err := p.store[kind].CheckWatched(text, oda.MaxDepth, summary.Watched)
	if err != nil {
		return nil, reason(err)
	}
	return oda.NewDocument(kind, text, index, 0, ""), nil
}

// reason returns a refusal as one line for a report.
func reason(err error) error {
	refused, ok := errors.AsType[*oda.Error](err)
	if !ok {
		return err
	}
	text := refused.Detail
	for _, fault := range refused.Faults {
		if !strings.Contains(text, fault.Detail) {
			text += fmt.Sprintf(" %s %s.", fault.Pointer, fault.Detail)
		}
	}
	return errors.New(text)
}

// identify finds out what a document is: its kind, its identifier and its version.
func identify(f *found) error {
	err := rawjson.Check(f.text, oda.MaxDepth)
	if wrong, ok := errors.AsType[*rawjson.SyntaxError](err); ok && f.Line > 0 { // one of many in its file
		wrong.Line += int(f.Line) - 1
	}
	if err != nil {
		return fmt.Errorf("it is not valid JSON: %w", err)
	}
	ids := make(map[oda.Kind]string)
	for key, value := range rawjson.Members(f.text) {
		if string(key) == "metadata" && f.version == 0 {
			f.version = versionIn(value)
		}
		for _, kind := range oda.Kinds {
			if string(key) == kind.IDField() && value[0] == '"' {
				ids[kind] = rawjson.Unquote(value)
			}
		}
	}
	if ids[f.Kind] == "" {
		// An ExecutionBlock may name its SBInstance and its SBDefinition, and an
		// SBInstance its SBDefinition. A folder may have the name of a kind by chance.
		for _, kind := range []oda.Kind{oda.ExecutionBlock, oda.SBInstance, oda.SBDefinition, oda.Project, oda.Note} {
			if kind == f.Kind {
				break
			}
			if ids[kind] == "" {
				continue
			}
			if f.ID != "" {
				return fmt.Errorf("it was found as the %s %s, but has the %s %s", f.Kind, f.ID, kind.IDField(), ids[kind])
			}
			f.Kind = kind
			break
		}
	}
	switch {
	case f.Kind == 0:
		return errors.New("it has none of eb_id, sbi_id, sbd_id, prj_id and note_id, so its kind is unknown")
	case f.ID != "" && ids[f.Kind] != "" && ids[f.Kind] != f.ID:
		return fmt.Errorf("it was found under the identifier %s, but its %s is %s", f.ID, f.Kind.IDField(), ids[f.Kind])
	case f.ID == "":
		f.ID = ids[f.Kind]
	}
	if !oda.ValidID(f.ID) {
		return fmt.Errorf("its identifier %q is not valid", f.ID)
	}
	return nil
}

// versionIn returns the version in the metadata of a document, 0 if there is none.
func versionIn(metadata []byte) int64 {
	for key, value := range rawjson.Members(metadata) {
		if string(key) == "version" {
			var version int64
			if _, err := fmt.Sscanf(string(value), "%d", &version); err != nil {
				return 0
			}
			return version
		}
	}
	return 0
}

// sort puts the versions in order. Of several documents with the same version it keeps the
// last, and returns the others, which are set aside. If one has the same bytes as the next,
// it is only counted.
func (h *history) sort() (twice []SetAside, repeated int64) {
	slices.SortStableFunc(h.versions, func(a, b found) int { return cmp.Compare(a.version, b.version) })
	kept := h.versions[:0]
	for i, f := range h.versions {
		if i+1 < len(h.versions) && f.version != 0 && h.versions[i+1].version == f.version {
			if f.meta != nil || !bytes.Equal(f.text, h.versions[i+1].text) {
				twice = append(twice, f.aside(f.twice()))
			} else {
				repeated++
			}
			continue
		}
		kept = append(kept, f)
	}
	h.versions = kept
	return twice, repeated
}

// twice says why a document is set aside: another one was stored as the same version. It
// also says what the columns of a database say, which is nowhere else in the report.
func (f *found) twice() string {
	whose := ""
	if m := f.meta; m != nil && m.Has&oda.FieldLastModifiedOn != 0 {
		whose = fmt.Sprintf(", by %q of %s,", cmp.Or(m.LastModifiedBy, m.CreatedBy, oda.DefaultUser), oda.InstantOf(m.LastModifiedOn))
	}
	return fmt.Sprintf("version %d is there twice; the later one was kept, and this one%s is here as it was", f.version, whose)
}

// preserved is what becomes of a history that keeps its versions, users and times.
type preserved struct {
	part    *history // that waits for the part before it; nil: the rest is there
	entries []placed
	aside   []SetAside
	read    int64 // documents and statuses
	present int64 // of these, those that were read before

	standing oda.Standing // after the entries
}

// preserve turns a history into entries of a log. Parts of one must come one after the other.
func (p *parser) preserve(h *history) (*preserved, error) {
	result := &preserved{read: int64(len(h.versions) + len(h.said))}
	result.aside, result.present = h.sort()
	before := h.parts
	if before == nil {
		before = new(progress)
	}
	for i := range h.versions {
		f := &h.versions[i]
		e, list, note, err := p.entry(f, &before.state, before.records)
		if err == nil {
			err = summary.Prepare(e)
		}
		if err == nil && (!oda.ValidUser(e.By) || !oda.ValidUser(e.CreatedBy)) {
			err = errors.New("its users must be " + oda.UserRule)
		}
		if err != nil {
			result.aside = append(result.aside, f.aside(err.Error()))
			continue
		}
		if note != "" {
			result.aside = append(result.aside, SetAside{Origin: f.Origin, Ref: h.Ref, Version: f.version, Reason: note, Changed: true})
		}
		result.say(h, before.state.Metadata.Version, &e.On)
		before.state, before.records = oda.LogState{Metadata: e.Metadata(), LastSequence: e.After}, list
		result.entries = append(result.entries, placed{LogEntry: *e, origin: f.Origin, text: f.text})
		if result.standing.Last == 0 {
			result.standing = oda.StandingOf(e.Entry.Status)
		}
	}
	result.say(h, before.state.Metadata.Version, nil)
	return result, nil
}

// entry turns a document into an entry that follows a state with these records, and
// returns the records after it. A note says what could not be kept.
func (p *parser) entry(f *found, state *oda.LogState, records []engine.Numbered) (e *oda.LogEntry, after []engine.Numbered, note string, err error) {
	d, err := p.parse(f.Kind, f.text)
	if err != nil {
		return nil, nil, "", err
	}
	m, err := metadataOf(f, d)
	if err != nil {
		return nil, nil, "", err
	}
	m, unnamed := withUsers(m, state.Metadata)
	m, note = following(m, state.Metadata)
	note = strings.Join(slices.DeleteFunc([]string{unnamed, note}, func(s string) bool { return s == "" }), "; and ")
	e = &oda.LogEntry{
		Ref: f.Ref, Version: m.Version, By: m.LastModifiedBy, On: m.LastModifiedOn,
		CreatedBy: m.CreatedBy, CreatedOn: m.CreatedOn, Body: d.Body(f.ID), Before: state.LastSequence, After: state.LastSequence,
	}
	list := engine.List(d.Records)
	if f.Kind == oda.ExecutionBlock {
		// Since the first import, the block may have got other records in its source,
		// under the same version and time.
		var digests []byte
		for _, r := range list {
			digests = append(digests, r.Digest[:]...)
		}
		sum := oda.DigestOf(digests)
		e.List = &sum
	}
	after = records
	if d.Listed {
		sharing, err := engine.Share(list, func(yield func(engine.Numbered, error) bool) {
			for _, r := range records {
				if !yield(r, nil) {
					return
				}
			}
		})
		if err != nil {
			return nil, nil, "", err
		}
		runs, fresh := sharing.Number(list, e.Before)
		e.Runs, e.After = runs, e.Before+int64(len(fresh))
		for _, r := range fresh {
			e.Came = append(e.Came, oda.Body{Text: r.Text, Digest: r.Digest})
		}
		after = nil
		sequence := e.Before
		for i, r := range list {
			n := sharing[i]
			if n == 0 {
				sequence++
				n = sequence
			}
			after = append(after, engine.Numbered{Sequence: n, Digest: r.Digest})
		}
	}
	return e, after, note, nil
}

// withUsers returns metadata with a user for those that are not named. A note says whom.
func withUsers(m, before oda.Metadata) (_ oda.Metadata, note string) {
	var notes []string
	if m.CreatedBy == "" {
		m.CreatedBy = cmp.Or(before.CreatedBy, oda.DefaultUser)
		notes = append(notes, fmt.Sprintf("imported, but as created by %q, since it does not say by whom", m.CreatedBy))
	}
	if m.LastModifiedBy == "" {
		m.LastModifiedBy = m.CreatedBy
		if m.LastModifiedOn != m.CreatedOn {
			notes = append(notes, fmt.Sprintf("imported, but as modified by %q, since it does not say by whom", m.LastModifiedBy))
		}
	}
	return m, strings.Join(notes, "; and ")
}

// following returns metadata that can follow the metadata of the version before. A note
// says what could not be kept.
func following(m, before oda.Metadata) (_ oda.Metadata, note string) {
	if m.Version == 1 && m.LastModifiedOn == m.CreatedOn && m.LastModifiedBy != m.CreatedBy {
		m.LastModifiedOn++
		return m, fmt.Sprintf("imported, but with the time %s, since %q modified it after %q had created it; it says %s", m.LastModifiedOn, m.LastModifiedBy, m.CreatedBy, m.CreatedOn)
	}
	if m.Version == 1 || before.Version != m.Version-1 {
		return m, ""
	}
	var notes []string
	if m.CreatedBy != before.CreatedBy || m.CreatedOn != before.CreatedOn {
		notes = append(notes, fmt.Sprintf("imported, but as created by %q at %s, as version 1 says; it says %q at %s", before.CreatedBy, before.CreatedOn, m.CreatedBy, m.CreatedOn))
		m.CreatedBy, m.CreatedOn = before.CreatedBy, before.CreatedOn
	}
	if m.LastModifiedOn <= before.LastModifiedOn {
		notes = append(notes, fmt.Sprintf("imported, but with the time %s, since each version must be later than the one before; it says %s", before.LastModifiedOn+1, m.LastModifiedOn))
		m.LastModifiedOn = before.LastModifiedOn + 1
	}
	return m, strings.Join(notes, "; and ")
}

// metadataOf returns the metadata that a document is to keep. Users may be missing.
func metadataOf(f *found, d *oda.Document) (oda.Metadata, error) {
	r := d.Metadata
	if f.meta != nil {
		r = f.meta.Or(r)
	}
	if f.version != 0 {
		r.Version, r.Has = f.version, r.Has|oda.FieldVersion
	}
	if r.Has&oda.FieldLastModifiedOn == 0 { // older documents have null
		r.LastModifiedOn = r.CreatedOn
	}
	const needed = oda.FieldVersion | oda.FieldCreatedOn
	if r.Has&needed != needed {
		return oda.Metadata{}, errors.New("its metadata lacks version or created_on, so they cannot be kept; import it without --preserve")
	}
	return oda.Metadata{
		Version: r.Version, CreatedBy: r.CreatedBy, CreatedOn: oda.InstantOf(r.CreatedOn),
		LastModifiedBy: r.LastModifiedBy, LastModifiedOn: oda.InstantOf(r.LastModifiedOn),
	}, nil
}
