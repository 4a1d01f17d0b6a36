package skuid

import (
	"fmt"
	"strings"

	"oda"
)

// entityTypes are the types that the service mints, with their meaning.
var entityTypes = map[string]string{
	"dp":    "data product",
	"eb":    "execution block",
	"note":  "note",
	"ob":    "observing block",
	"obsq":  "observing sequence",
	"obsqi": "observing sequence instance",
	"opj":   "observing project (older name for prj)",
	"opp":   "observing proposal (older name for prp)",
	"pb":    "processing block",
	"pnl":   "review panel",
	"pnld":  "review panel decision",
	"prj":   "project",
	"prp":   "proposal",
	"rvw":   "review",
	"sbd":   "scheduling block definition",
	"sbi":   "scheduling block instance",
	"sft":   "shift",
	"sfta":  "shift annotation",
	"sftc":  "shift comment",
	"sftcr": "shift comment reply",
	"txn":   "transaction",
}

// DefaultTypes returns the type to request for each kind by default: the prefix
// of the kind.
func DefaultTypes() map[oda.Kind]string {
	types := make(map[oda.Kind]string, len(oda.Kinds))
	for _, kind := range oda.Kinds {
		types[kind] = kind.Prefix()
	}
	return types
}

// ParseTypes parses a list such as "prj=opj,sbd=sbd": the prefix of a kind, and
// the type to request for it from the identifier service. Other kinds keep
// their default. Notes have no type unless the list names one.
func ParseTypes(list string) (map[oda.Kind]string, error) {
	types := DefaultTypes()
	delete(types, oda.Note) // other services do not know it
	if strings.TrimSpace(list) == "" {
		return types, nil
	}
	named := make(map[oda.Kind]bool)
	for item := range strings.SplitSeq(list, ",") {
		left, word, ok := strings.Cut(item, "=")
		left, word = strings.TrimSpace(left), strings.TrimSpace(word)
		if !ok {
			return nil, fmt.Errorf("identifier type %q: write it as KIND=TYPE, for instance prj=opj", strings.TrimSpace(item))
		}
		kind, ok := kindOfPrefix(left)
		if !ok {
			return nil, fmt.Errorf("identifier type %q: %q is not one of sbd, sbi, eb, prj, note", strings.TrimSpace(item), left)
		}
		if named[kind] {
			return nil, fmt.Errorf("identifier type %q: %s is named twice", strings.TrimSpace(item), left)
		}
		if !validType(word) {
			return nil, fmt.Errorf("identifier type %q: the type is 1 to 16 lower-case letters, not %q", strings.TrimSpace(item), word)
		}
		named[kind] = true
		types[kind] = word
	}
	return types, nil
}

func kindOfPrefix(prefix string) (oda.Kind, bool) {
	for _, kind := range oda.Kinds {
		if kind.Prefix() == prefix {
			return kind, true
		}
	}
	return 0, false
}

func validType(word string) bool {
	for _, c := range []byte(word) {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return 1 <= len(word) && len(word) <= 16
}
