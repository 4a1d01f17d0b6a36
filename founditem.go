package oda

import (
	"encoding/json"
	"slices"

	"oda/internal/rawjson"
)

// foundItem is an entity as searches answer with it. A missing value is null or an empty
// list.
type foundItem struct {
	Ref
	Metadata   json.RawMessage `json:"metadata"`
	Telescope  *string         `json:"telescope"`
	Name       *string         `json:"name"`
	Targets    []targetItem    `json:"targets"`
	References []Reference     `json:"references"`
	Status     Standing        `json:"status"`
}

type targetItem struct {
	Name *string `json:"name"`
	RA   float64 `json:"ra"`
	Dec  float64 `json:"dec"`
}

// remarkItem is what only notes have. Its times are those that the note is read with.
type remarkItem struct {
	Text       string   `json:"text"`
	Level      Level    `json:"level"`
	By         string   `json:"by"`
	From       Moment   `json:"from"`
	To         Moment   `json:"to"`
	Lost       *Elapsed `json:"time_lost_s"`
	LostTo     *Loss    `json:"time_lost_type"`
	Tags       []string `json:"tags"`
	Withdrawn  bool     `json:"withdrawn"`
	Unresolved bool     `json:"unresolved"`
}

// FoundColumns returns the columns of a table of entities of a kind.
func FoundColumns(kind Kind) []string {
	columns := []string{
		"kind", "id", "version", "created_by", "created_on", "last_modified_by", "last_modified_on", "telescope", "name", "targets", "references",
		"status", "class", "status_at",
	}
	if kind != Note {
		return columns
	}
	return append(columns, "level", "text", "from", "to", "time_lost_s", "time_lost_type", "tags", "withdrawn", "unresolved")
}

// MarshalJSON writes the entity as searches answer with it.
func (f *Found) MarshalJSON() ([]byte, error) {
	s := &f.Summary
	item := foundItem{
		Ref: f.Ref, Metadata: f.Metadata.AppendJSON(nil), Telescope: rawjson.OrNull(s.Telescope), Name: rawjson.OrNull(s.Name),
		Targets: []targetItem{}, References: append([]Reference{}, s.References...), Status: f.Standing,
	}
	for _, t := range s.Targets {
		item.Targets = append(item.Targets, targetItem{rawjson.OrNull(t.Name), t.RA, t.Dec})
	}
	r := s.Remark
	if r == nil {
		return rawjson.Marshal(item)
	}
	from, to := r.Interval(f.Metadata.CreatedOn)
	remark := remarkItem{
		Text: r.Text, Level: r.Level, By: f.Metadata.CreatedBy, From: Moment(from), To: Moment(to), Lost: rawjson.OrNull(r.Lost),
		Tags: append([]string{}, r.Tags...), Withdrawn: r.Withdrawn, Unresolved: f.Unresolved(),
	}
	if r.Lost > 0 {
		remark.LostTo = &r.LostTo
	}
	return rawjson.Marshal(struct {
		foundItem
		remarkItem
	}{item, remark})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *Found) UnmarshalJSON(text []byte) error {
	var item foundItem
	if err := json.Unmarshal(text, &item); err != nil {
		return err
	}
	metadata, err := ReadMetadata(item.Metadata)
	if err != nil {
		return err
	}
	*f = Found{Ref: item.Ref, Standing: item.Status, Metadata: metadata}
	f.Summary = Summary{Telescope: orNone(item.Telescope), Name: orNone(item.Name), References: item.References}
	for _, t := range item.Targets {
		f.Summary.Targets = append(f.Summary.Targets, Target{orNone(t.Name), t.RA, t.Dec})
	}
	if f.Kind == Note {
		var r remarkItem
		if err := json.Unmarshal(text, &r); err != nil {
			return err
		}
		f.Summary.Remark = &Remark{
			Text: r.Text, Level: r.Level, From: (*Instant)(&r.From), To: (*Instant)(&r.To), Lost: orNone(r.Lost), LostTo: LostToOther,
			Tags: slices.Clone(r.Tags), Withdrawn: r.Withdrawn,
		}
		if r.LostTo != nil {
			f.Summary.Remark.LostTo = *r.LostTo
		}
	}
	return nil
}

// orNone returns the value, or that of nothing for nil.
func orNone[T any](value *T) (none T) {
	if value == nil {
		return none
	}
	return *value
}
