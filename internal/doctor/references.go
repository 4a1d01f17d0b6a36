package doctor

import (
	"fmt"
	"iter"
	"strconv"

	"oda"
)

// Entry is what searches know about an entity.
type Entry struct {
	oda.Ref
	Summary []byte // packed
}

// Archive is what the check of references reads.
type Archive interface {
	// Entries yields all entities, or all of one kind.
	Entries(kind oda.Kind) iter.Seq2[Entry, error]

	// Versions returns the current versions of the entities that are stored.
	Versions(refs []oda.Ref) (map[oda.Ref]int64, error)
}

// Bounds of what is kept in memory.
const (
	askedAtOnce  = 500
	blocksSought = 100_000 // references that may name a block of a Project instead of the Project
)

// FindDangling reports references to entities that are not there. These are warnings:
// an archive may have them, for example while a night is partly stored.
func FindDangling(a Archive, report *Report) error {
	d := dangling{archive: a, report: report, wanted: make(map[oda.Ref]int64), blocks: make(map[string][]held)}
	for entry, err := range a.Entries(0) {
		if err != nil {
			return err
		}
		summary, err := oda.UnpackSummary(entry.Summary)
		if err != nil {
			continue // that is damage
		}
		for _, reference := range summary.References {
			d.held = append(d.held, held{entry.Ref, reference})
			d.wanted[oda.Ref{Kind: reference.Kind, ID: reference.ID}] = 0
		}
		if len(d.wanted) >= askedAtOnce {
			if err := d.ask(); err != nil {
				return err
			}
		}
	}
	if err := d.ask(); err != nil {
		return err
	}
	return d.findBlocks()
}

// held is a reference that an entity holds.
type held struct {
	by oda.Ref
	oda.Reference
}

// dangling looks for references that lead nowhere.
type dangling struct {
	archive Archive
	report  *Report
	held    []held
	wanted  map[oda.Ref]int64
	blocks  map[string][]held // references to Projects that are not there under this name
	sought  int
}

// ask looks up what is wanted, and reports what is missing.
func (d *dangling) ask() error {
	if len(d.wanted) == 0 {
		return nil
	}
	refs := make([]oda.Ref, 0, len(d.wanted))
	for ref := range d.wanted {
		refs = append(refs, ref)
	}
	versions, err := d.archive.Versions(refs)
	if err != nil {
		return err
	}
	for _, h := range d.held {
		version, there := versions[oda.Ref{Kind: h.Kind, ID: h.ID}]
		switch {
		case !there && h.Kind == oda.Project && d.sought < blocksSought:
			d.blocks[h.ID] = append(d.blocks[h.ID], h)
			d.sought++
		case !there:
			d.missing(h)
		case h.Version > version:
			d.report.Add(Finding{
				References, false, fmt.Sprintf("%s %s", h.by.Kind, h.by.ID),
				fmt.Sprintf("its %s names version %d of %s %s, which has only %d", h.Field, h.Reference.Version, h.Kind, h.ID, version),
				"correct the reference, or store what it names",
			})
		}
	}
	d.held = d.held[:0]
	clear(d.wanted)
	return nil
}

// findBlocks looks for references that name a Project by one of its blocks, and
// reports the others.
func (d *dangling) findBlocks() error {
	if len(d.blocks) == 0 {
		return nil
	}
	for entry, err := range d.archive.Entries(oda.Project) {
		if err != nil {
			return err
		}
		summary, err := oda.UnpackSummary(entry.Summary)
		if err != nil {
			continue
		}
		for _, block := range summary.Blocks {
			delete(d.blocks, block)
		}
	}
	for _, references := range d.blocks {
		for _, h := range references {
			d.missing(h)
		}
	}
	return nil
}

func (d *dangling) missing(h held) {
	d.report.Add(Finding{
		References, false, fmt.Sprintf("%s %s", h.by.Kind, h.by.ID),
		fmt.Sprintf("its %s names %s %s, which is not in the archive", h.Field, h.Kind, printable(h.ID)),
		"correct the reference, or store what it names",
	})
}

// printable returns a text, quoted if a terminal might obey it.
func printable(text string) string {
	if quoted := strconv.Quote(text); quoted[1:len(quoted)-1] != text {
		return quoted
	}
	return text
}
