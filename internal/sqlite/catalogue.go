package sqlite

import "oda"

// entriesOf makes the entries of entities that are probably new, so that the
// writer need not do it. It returns nil if none is.
func entriesOf(puts []oda.Put) []*oda.CatalogueEntry {
	var entries []*oda.CatalogueEntry
	for i := range puts {
		if puts[i].Expected.Has != 0 {
			continue
		}
		if entries == nil {
			entries = make([]*oda.CatalogueEntry, len(puts))
		}
		entries[i] = puts[i].Extract.Entry(puts[i].Ref)
	}
	return entries
}

// enter writes the entry of a new entity.
func (t *txn) enter(ref oda.Ref, h *head, e *oda.CatalogueEntry) error {
	t.unindexed = append(t.unindexed, unindexedRow{entity: h.entity, kind: ref.Kind, terms: e.Terms})
	err := t.exec("INSERT INTO catalogue (entity, summary) VALUES (?, ?)", h.entity, e.Summary)
	if err != nil || e.Status == "" {
		return err
	}
	return t.stand(ref, h, oda.StandingOf(e.Status))
}

// restate writes the entry of an entity whose summary has changed.
func (t *txn) restate(ref oda.Ref, h *head, e *oda.CatalogueEntry) error {
	h.summaryHash = e.Hash
	t.unindexed = append(t.unindexed, unindexedRow{entity: h.entity, kind: ref.Kind, terms: e.Terms, again: true})
	err := t.exec("UPDATE heads SET telescope = ?, summary_hash = ? WHERE entity = ?", textOrNull(e.Telescope), e.Hash, h.entity)
	if err == nil {
		err = t.exec("UPDATE catalogue SET summary = ? WHERE entity = ?", e.Summary, h.entity)
	}
	if err == nil {
		err = t.exec("INSERT OR IGNORE INTO unindexed (entity) VALUES (?)", h.entity)
	}
	if err != nil {
		return err
	}
	return t.standAs(ref, h, e.Status)
}

// textOrNull returns a text as it is stored, nil if it is empty.
func textOrNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
