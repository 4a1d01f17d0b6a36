package summary

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"oda"
	"oda/internal/rawjson"
	"oda/internal/words"
	"oda/sky"
)

// about is what the notes say about one object.
type about struct {
	name, targetName, targetID string
	ra, dec                    float64
	hasRA, hasDec              bool
}

// label returns the name of what the object describes, empty if it has none.
func (a *about) label() string {
	switch {
	case a.name != "":
		return a.name
	case a.targetName != "":
		return a.targetName
	}
	return a.targetID
}

// summarizer makes a summary from the notes of a document.
type summarizer struct {
	*Extract
	objects []about // by container; the document comes first
	title   string
	refs    [ofOBRef + 1]string // the references at the top level, by field
	version int64               // of the SBDefinition that the document refers to
	called  vocabulary          // the words of the document's name and title
	words   vocabulary          // all other words
	summary oda.Summary
	kept    struct{ references, words, blocks int } // bytes
}

func (x *Extract) summarize() oda.Summary {
	s := &summarizer{Extract: x}
	if x.root >= 0 {
		s.scanned()
	}
	if x.note != nil {
		s.noted()
	}
	s.summary.Words = slices.Grow(s.summary.Words, min(len(s.called.list)+len(s.words.list), oda.MaxWords))
	s.keepWords(s.called.list)
	s.keepWords(s.words.list)
	slices.Sort(s.summary.Words)
	s.summary.Words = slices.Compact(s.summary.Words)
	return s.summary
}

// scanned reads what the scan noted.
func (s *summarizer) scanned() {
	x := s.Extract
	s.objects = make([]about, len(x.Containers)-int(x.root))
	values := x.values()
	for i := range x.Notes.Notes {
		if n := &x.Notes.Notes[i]; x.counts(n) {
			length := int(n.End - n.Start)
			s.take(n, values[:length])
			values = values[length:]
		}
	}
	s.summary.Name = words.Cut(s.objects[0].name, oda.MaxName)
	if s.summary.Name == "" {
		s.summary.Name = words.Cut(s.title, oda.MaxName)
	}
	s.fields()
	s.targets()
}

// fewWords is how many words are looked up one by one.
const fewWords = 32

// vocabulary holds the words of texts, each once.
type vocabulary struct {
	list  []string
	known map[string]struct{} // nil while there are few
	read  int                 // words, counting those that came again
}

func (v *vocabulary) add(word string) {
	if v.read == 10*oda.MaxWords {
		return
	}
	v.read++
	if v.known == nil && len(v.list) < fewWords {
		if v.list == nil {
			v.list = make([]string, 0, fewWords)
		}
		if !slices.Contains(v.list, word) {
			v.list = append(v.list, word)
		}
		return
	}
	if v.known == nil {
		v.known = make(map[string]struct{}, 2*len(v.list))
		for _, one := range v.list {
			v.known[one] = struct{}{}
		}
	}
	if _, known := v.known[word]; !known {
		v.known[word] = struct{}{}
		v.list = append(v.list, word)
	}
}

// keepWords adds words to the summary, within the bounds.
func (s *summarizer) keepWords(list []string) {
	slices.Sort(list)
	for _, word := range list {
		if len(s.summary.Words) == oda.MaxWords || s.kept.words+len(word) > oda.MaxWordBytes {
			return
		}
		s.summary.Words = append(s.summary.Words, word)
		s.kept.words += len(word)
	}
}

// values returns the values of the notes that count, as they are written, one
// behind the other: one text for all is much cheaper than one for each.
func (x *Extract) values() string {
	var room [2 << 10]byte
	all := room[:0]
	for i := range x.Notes.Notes {
		if n := &x.Notes.Notes[i]; x.counts(n) {
			all = append(all, x.text[n.Start:n.End]...)
		}
	}
	return string(all)
}

// take reads a note with that value.
func (s *summarizer) take(n *rawjson.Note, value string) {
	text := value
	if n.Kind == rawjson.String {
		if text = value[1 : len(value)-1]; strings.Contains(text, `\`) {
			text = rawjson.Unquote([]byte(value))
		}
	}
	isMember := n.Index < 0
	object := &s.objects[n.In-s.root]
	switch n.Of {
	case ofRA, ofRAText:
		if ra, ok := sky.RightAscension(text); ok && isMember && (n.Of == ofRA || !object.hasRA) {
			object.ra, object.hasRA = ra, true
		}
		return
	case ofDec, ofDecText:
		if dec, ok := sky.Declination(text); ok && isMember && (n.Of == ofDec || !object.hasDec) {
			object.dec, object.hasDec = dec, true
		}
		return
	case ofSBDVersion:
		s.version = wholeNumber(n.Kind, text)
		return
	}
	if n.Kind != rawjson.String || text == "" {
		return
	}
	switch n.Of {
	case ofTelescope:
		if oda.ValidTelescope(text) {
			s.summary.Telescope = text
		}
	case ofStatus:
		if oda.ValidStatus(text) {
			s.summary.Status = text
		}
	case ofSBDIDs:
		group := s.group(n)
		field := "obs_blocks/"
		if s.Containers[group.In].Of == ofObsProgrammes {
			field = "obs_programmes/"
		}
		field += strconv.Itoa(int(group.Index)) + "/sbd_ids/" + strconv.Itoa(int(n.Index))
		s.refer(oda.Reference{Kind: oda.SBDefinition, ID: text, Field: field})
	case ofObsBlockID:
		if len(s.summary.Blocks) < oda.MaxBlocks && len(text) <= oda.MaxName && s.kept.blocks+len(text) <= oda.MaxBlockBytes {
			s.summary.Blocks = append(s.summary.Blocks, text)
			s.kept.blocks += len(text)
		}
	case ofSBDRef, ofSBDID, ofSBIRef, ofEBRef, ofPRJRef, ofOBRef:
		s.refs[n.Of] = text
	default:
		s.named(n, object, text, isMember)
	}
}

// named reads a note whose text is searched for words. It may name something.
func (s *summarizer) named(n *rawjson.Note, object *about, text string, isMember bool) {
	list := &s.words
	if n.In == s.root && isMember && (n.Of == ofName || n.Of == ofTitle) {
		list = &s.called
	}
	words.Each(text, list.add)
	if !isMember {
		return
	}
	switch n.Of {
	case ofName:
		object.name = text
	case ofTitle:
		if n.In == s.root {
			s.title = text
		}
	case ofTargetName:
		object.targetName = text
	case ofTargetID:
		object.targetID = text
	}
}

// fields adds the references at the top level to the summary.
func (s *summarizer) fields() {
	for _, f := range [...]struct {
		of    rawjson.Interest
		kind  oda.Kind
		field string
	}{
		{ofSBDRef, oda.SBDefinition, "sbd_ref"},
		{ofSBDID, oda.SBDefinition, "sbd_id"}, // the older name
		{ofSBIRef, oda.SBInstance, "sbi_ref"},
		{ofEBRef, oda.ExecutionBlock, "eb_ref"},
		{ofPRJRef, oda.Project, "prj_ref"},
		{ofOBRef, oda.Project, "ob_ref"},
	} {
		id := s.refs[f.of]
		if id == "" || f.of == ofSBDID && s.refs[ofSBDRef] != "" {
			continue
		}
		r := oda.Reference{Kind: f.kind, ID: id, Field: f.field}
		if f.kind == oda.SBDefinition {
			r.Version = s.version
		}
		s.refer(r)
	}
}

// refer adds a reference to the summary, within the bounds.
func (s *summarizer) refer(r oda.Reference) {
	if len(s.summary.References) == oda.MaxReferences || len(r.ID) > oda.MaxName || s.kept.references+len(r.ID) > oda.MaxReferenceBytes {
		return
	}
	s.summary.References = append(s.summary.References, r)
	s.kept.references += len(r.ID)
}

// targets adds the objects with coordinates to the summary. A target without a
// name takes that of the nearest object around it.
func (s *summarizer) targets() {
	count := 0
	for i := range s.objects {
		if s.objects[i].hasRA && s.objects[i].hasDec {
			count++
		}
	}
	s.summary.Targets = slices.Grow(s.summary.Targets, min(count, oda.MaxTargets))
	for i := range s.objects {
		o := &s.objects[i]
		if !o.hasRA || !o.hasDec {
			continue
		}
		if len(s.summary.Targets) == oda.MaxTargets {
			return
		}
		name := o.label()
		for p := s.Containers[int(s.root)+i].In; name == "" && p >= s.root; p = s.Containers[p].In {
			name = s.objects[p-s.root].label()
		}
		s.summary.Targets = append(s.summary.Targets, oda.Target{Name: words.Cut(name, oda.MaxName), RA: o.ra, Dec: o.dec})
	}
}

// wholeNumber returns the version that a document names, or 0 if it is not a
// whole number from 1.
func wholeNumber(kind rawjson.Kind, text string) int64 {
	if kind != rawjson.Number {
		return 0
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return max(n, 0)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f < 1 || f >= math.MaxInt64 || f != math.Trunc(f) {
		return 0
	}
	return int64(f)
}
