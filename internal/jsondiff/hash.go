package jsondiff

import (
	"bytes"
	"hash/maphash"
	"math/bits"

	"oda/internal/rawjson"
)

// hasher gives numbers to values: the same to those that are equal, whatever the
// order of their members, their white space and the escapes in their strings.
// Nothing depends on different values having different numbers but how good an
// answer is.
type hasher struct{ seed maphash.Seed }

// value gives the number of the value that begins at i, and where it ends. That
// of a long value is remembered, since it is asked for at every level around it.
func (h hasher) value(t text, i int) (sum uint64, end int) {
	switch t.data[i] {
	case '"':
		end = t.stringEnd(i)
		return mix(h.string(t.data[i:end]), '"'), end
	case '{', '[':
	default:
		end = t.end(i)
		return maphash.Bytes(h.seed, t.data[i:end]), end
	}
	if known, ok := t.sums[int32(i)]; ok {
		return known.sum, known.end
	}
	object, start := t.data[i] == '{', i
	sum = uint64(t.data[i])
	for i = t.space(i + 1); t.data[i] != '}' && t.data[i] != ']'; i = t.space(i) {
		if t.data[i] == ',' {
			i = t.space(i + 1)
		}
		var one uint64
		if object {
			key := h.string(t.data[i:t.stringEnd(i)])
			one, i = h.value(t, t.afterKey(i))
			sum += mix(key, one) // in any order
		} else {
			one, i = h.value(t, i)
			sum = mix(sum, one)
		}
	}
	if end = i + 1; end-start >= long {
		t.sums[int32(start)] = hashed{sum, end}
	}
	return sum, end
}

func (h hasher) string(literal []byte) uint64 {
	if bytes.IndexByte(literal, '\\') >= 0 {
		return maphash.String(h.seed, rawjson.Unquote(literal))
	}
	return maphash.Bytes(h.seed, literal[1:len(literal)-1])
}

func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd6e8feb86659fd93)
	return high ^ low
}
