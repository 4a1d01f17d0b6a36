package search

import (
	"errors"
	"slices"
	"strings"
	"time"

	"oda"
	"oda/internal/words"
)

// question is a search that is being answered.
type question struct {
	Search
	*Searcher
	words  []string // folded
	status string   // folded
	where  []Where
}

// matches reports whether all filters match, except the conditions on the text.
func (q *question) matches(f *oda.Found) bool {
	return q.matchesMetadata(f.Metadata) &&
		(q.Telescope == "" || f.Summary.Telescope == q.Telescope) &&
		(q.status == "" || oda.FoldStatus(f.Standing.Text) == q.status) &&
		(q.Class == oda.NoClass || f.Standing.Class == q.Class) &&
		(q.Reference == "" || slices.ContainsFunc(f.Summary.References, q.matchesReference)) &&
		(q.Kind != oda.Note || q.matchesNote(f)) &&
		(q.Cone == nil || slices.ContainsFunc(f.Summary.Targets, func(t oda.Target) bool { return q.Cone.Holds(t.RA, t.Dec) })) &&
		q.matchesWords(f)
}

func (q *question) matchesNote(f *oda.Found) bool {
	r := f.Summary.Remark
	return r != nil && (q.Withdrawn || !r.Withdrawn) &&
		(q.Level == "" || r.Level == q.Level) &&
		(q.Tag == "" || slices.Contains(r.Tags, q.Tag)) &&
		r.Meets(f.Metadata.CreatedOn, q.From, q.To) &&
		(q.About == "" || slices.ContainsFunc(f.Summary.References, func(to oda.Reference) bool { return to.ID == q.About }))
}

func (q *question) matchesMetadata(m oda.Metadata) bool {
	return q.matchesUser(m.CreatedBy) && q.Created.Holds(m.CreatedOn) && q.Modified.Holds(m.LastModifiedOn)
}

func (q *question) matchesUser(user string) bool {
	switch {
	case q.User == "":
		return true
	case q.Match == oda.UserStartsWith:
		return strings.HasPrefix(user, q.User)
	case q.Match == oda.UserContains:
		return strings.Contains(user, q.User)
	}
	return user == q.User
}

func (q *question) matchesReference(r oda.Reference) bool {
	return r.ID == q.Reference && (q.ReferenceVersion == 0 || r.Version == q.ReferenceVersion)
}

// matchesWords reports whether every word occurs. The last one may be just the
// beginning of a word.
func (q *question) matchesWords(f *oda.Found) bool {
	if len(q.words) == 0 {
		return true
	}
	last := len(q.words) - 1
	own := words.Of(f.ID)
	for _, word := range q.words[:last] {
		if _, found := slices.BinarySearch(f.Summary.Words, word); !found && !slices.Contains(own, word) {
			return false
		}
	}
	begins := func(word string) bool { return strings.HasPrefix(word, q.words[last]) }
	at, _ := slices.BinarySearch(f.Summary.Words, q.words[last])
	return at < len(f.Summary.Words) && begins(f.Summary.Words[at]) || slices.ContainsFunc(own, begins)
}

// holdsOf reports whether all conditions hold for the text of a document.
func (q *question) holdsOf(text []byte) bool {
	return !slices.ContainsFunc(q.where, func(w Where) bool { return !w.Holds(text) })
}

// clauses returns what the search asks the inverted index, or nil. It asks for a
// telescope only along with other terms: many entities share one, and there is a
// better index for a telescope alone.
func (q *question) clauses() (list []oda.Clause) {
	for _, word := range q.words {
		list = append(list, oda.Clause{Any: []string{oda.WordTerm(q.Kind, word)}})
	}
	if list != nil {
		list[len(list)-1].Prefix = true
	}
	switch {
	case q.ReferenceVersion > 0:
		list = append(list, oda.Clause{Any: []string{oda.VersionTerm(q.Kind, q.Reference, q.ReferenceVersion)}})
	case q.Reference != "":
		list = append(list, oda.Clause{Any: []string{oda.ReferenceTerm(q.Kind, q.Reference)}})
	}
	if q.About != "" {
		list = append(list, oda.Clause{Any: []string{oda.ReferenceTerm(q.Kind, q.About)}})
	}
	if q.Tag != "" {
		list = append(list, oda.Clause{Any: []string{oda.TagTerm(q.Tag)}})
	}
	if q.Cone != nil {
		var cells []string
		for _, cell := range q.Cone.Cells() {
			cells = append(cells, oda.CellTerm(q.Kind, cell))
		}
		list = append(list, oda.Clause{Any: cells})
	}
	if q.Level != "" && (list != nil || q.Level != oda.Info) { // most notes are of level info
		list = append(list, oda.Clause{Any: []string{oda.LevelTerm(q.Level)}})
	}
	if list != nil && q.Telescope != "" {
		list = append(list, oda.Clause{Any: []string{oda.TelescopeTerm(q.Kind, q.Telescope)}})
	}
	return list
}

// judge picks the entities of a page. It sees them in the order of the search.
type judge struct {
	*question
	most int // items of the page
	late time.Time

	items kept
	last  *oda.Place // of the last entity that was judged
	more  bool
}

// errEnded ends a walk because the page is full or the time is up.
var errEnded = errors.New("the page ends here")

// see judges the next entity. Place is where it was when the order was made. What does
// not follow from its summary, if the search asks for it, comes last: holds judges that,
// and may find that the entity has changed since.
func (j *judge) see(place oda.Place, f *oda.Found, holds func() (bool, error)) error {
	if f.Damage != nil {
		return j.stopAt(place, f.Damage)
	}
	ok := j.matches(f)
	if ok && (len(j.where) > 0 || j.Unobserved) {
		var err error
		if ok, err = holds(); err != nil {
			return j.stopAt(place, err)
		}
	}
	if ok && len(j.items.found) == j.most {
		j.more = true
		return errEnded
	}
	if ok {
		j.items.add(f)
	}
	j.last = &place
	if time.Now().After(j.late) {
		j.more = true
		return errEnded
	}
	return nil
}

// stopAt ends the page before an entity that cannot be judged. If nothing was found
// before it, the search fails, and can continue after it.
func (j *judge) stopAt(place oda.Place, err error) error {
	if e, ok := errors.AsType[*oda.Error](err); !ok || e.Code != oda.DamagedText {
		return err
	}
	j.more = true
	if len(j.items.found) > 0 {
		return errEnded
	}
	j.last = &place
	return err
}

// next returns the cursor of the next page, or an empty text if there is none.
func (j *judge) next() string {
	if !j.more {
		return ""
	}
	return j.Cursor(*j.last)
}
