package summary

import (
	"oda"
	"oda/internal/words"
)

// note is what the document of a note says besides what the scan notes of every document.
type note struct {
	oda.Remark
	about []oda.Reference
	text  string
}

func readNote(document []byte) *note {
	var n note
	var about []oda.Subject
	n.Remark, about, n.text = oda.ReadNote(document)
	for _, one := range about {
		n.about = append(n.about, one.Reference)
	}
	return &n
}

// append appends all that the summary has of the note, so that it can be hashed.
func (n *note) append(all []byte) []byte {
	s := oda.Summary{References: n.about, Remark: &n.Remark}
	return append(append(all, s.Pack()...), n.text...)
}

// noted adds the note to the summary. Its name is the first line of its text.
func (s *summarizer) noted() {
	n := s.note
	s.summary.Name, s.summary.Remark = oda.NoteName(n.text), &n.Remark
	for _, r := range n.about {
		s.refer(r)
	}
	words.Each(s.summary.Name, s.called.add)
	words.Each(n.text, s.words.add)
	for _, tag := range n.Tags {
		words.Each(tag, s.words.add)
	}
}
