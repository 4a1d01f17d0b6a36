package report

import (
	"slices"
	"strings"
)

// Sizes of text in the picture.
const (
	titleSize = 16.0
	textSize  = 13.0
	smallSize = 12.0
)

// textWidth estimates how wide a text is. The reader's font is not known here;
// the widths are those of a wide one, so that in others there is room to spare.
func textWidth(text string, size float64) float64 {
	em := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune("iljI.,:;|!'·", r):
			em += 0.34
		case strings.ContainsRune(" ()[]-ft/r", r):
			em += 0.40
		case strings.ContainsRune("mwMW%", r):
			em += 0.96
		case r >= 'A' && r <= 'Z', strings.ContainsRune("×÷≥≤+=✓✗", r):
			em += 0.76
		default:
			em += 0.64
		}
	}
	return em * size
}

// boldFactor is how much wider a heavier weight is.
const boldFactor = 1.12

// boldWidth is textWidth for text in a heavier weight.
func boldWidth(text string, size float64) float64 { return boldFactor * textWidth(text, size) }

// widest is the width of the widest of some texts.
func widest(texts []string, size float64) float64 {
	width := 0.0
	for _, text := range texts {
		width = max(width, textWidth(text, size))
	}
	return width
}

// wrap breaks a text between words into lines of at most the width. A word that
// is wider has a line of its own.
func wrap(text string, size, width float64) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case textWidth(line+" "+word, size) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// settle moves labels apart: it gives every wanted place (in any order) a place
// at least gap from all others, between top and bottom, with the least sum of
// squared moves. It gives nothing if they do not all fit.
//
// In the order of the wanted places, place i less i gaps must not fall. That is
// monotone regression: neighbours in conflict are pooled at their mean, and the
// bounds clip the result.
func settle(wanted []float64, gap, top, bottom float64) []float64 {
	last := bottom - gap*float64(len(wanted)-1)
	if last < top {
		return nil
	}
	order := make([]int, len(wanted))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case wanted[a] < wanted[b]:
			return -1
		case wanted[a] > wanted[b]:
			return 1
		}
		return 0
	})
	type pool struct {
		sum   float64
		count int
	}
	mean := func(p pool) float64 { return p.sum / float64(p.count) }
	var pools []pool
	for rank, i := range order {
		pools = append(pools, pool{wanted[i] - gap*float64(rank), 1})
		for n := len(pools); n > 1 && mean(pools[n-2]) > mean(pools[n-1]); n-- {
			pools[n-2].sum += pools[n-1].sum
			pools[n-2].count += pools[n-1].count
			pools = pools[:n-1]
		}
	}
	settled := make([]float64, len(wanted))
	rank := 0
	for _, p := range pools {
		for range p.count {
			settled[order[rank]] = min(max(mean(p), top), last) + gap*float64(rank)
			rank++
		}
	}
	return settled
}
