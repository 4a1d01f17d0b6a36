package words

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// The words of a text are its letters and digits, folded one by one, however they are
// found. Long texts have words at every place where one part of the text ends.
func TestWordsAreLettersAndDigitsInAnyCase(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	pieces := []string{"field", "Field", "FIELD", "M87", "x", "Σίσυφος", "ΣΊΣΥΦΟΣ", "naïve", "Ä", "-", " ", ", ", "_", "\xff", "٣", strings.Repeat("Long", 60), strings.Repeat("Ω", 150)}
	for range 200 {
		var b strings.Builder
		for b.Len() < random.IntN(3*loweredAtOnce) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		var want []string
		for _, word := range strings.FieldsFunc(b.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			want = append(want, Cut(strings.Map(Fold, word), maxWord))
		}
		if got := Of(b.String()); !slices.Equal(got, want) {
			t.Fatalf("%q:\ngot  %q\nwant %q", b.String(), got, want)
		}
	}
}
