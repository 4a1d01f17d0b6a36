package rawjson

import (
	"bytes"
	"cmp"
	"strconv"
)

// Decimal is the value of a JSON number, however it is spelled: a sign and digits,
// the first of which has the weight 10^magnitude. Zero has no digits. It is exact at
// any size, where floating point would mistake 9007199254740993.5 for an integer.
type Decimal struct {
	negative  bool
	digits    []byte // without zeros at the beginning and the end
	magnitude int64
}

// farExponent is the largest exponent. Larger ones count as this one.
const farExponent = 1 << 60

// ParseDecimal parses a number in JSON's spelling.
func ParseDecimal(literal []byte) Decimal {
	var n Decimal
	if literal[0] == '-' {
		n.negative, literal = true, literal[1:]
	}
	mantissa, exponent := literal, int64(0)
	if at := bytes.IndexAny(literal, "eE"); at >= 0 {
		mantissa, exponent = literal[:at], parseExponent(literal[at+1:])
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte{'.'})
	n.magnitude = exponent + int64(len(whole)) - 1
	n.digits = whole
	if len(fraction) > 0 {
		n.digits = append(append(make([]byte, 0, len(whole)+len(fraction)), whole...), fraction...)
	}
	significant := bytes.TrimLeft(n.digits, "0")
	n.magnitude -= int64(len(n.digits) - len(significant))
	n.digits = bytes.TrimRight(significant, "0")
	if len(n.digits) == 0 {
		return Decimal{}
	}
	return n
}

func parseExponent(text []byte) int64 {
	e, err := strconv.ParseInt(string(bytes.TrimPrefix(text, []byte{'+'})), 10, 64)
	if err != nil { // out of range
		e = farExponent
		if text[0] == '-' {
			e = -farExponent
		}
	}
	return min(max(e, -farExponent), farExponent)
}

// Compare returns -1, 0 or 1 if n is less than, equal to or greater than other.
func (n Decimal) Compare(other Decimal) int {
	if n.sign() != other.sign() {
		return cmp.Compare(n.sign(), other.sign())
	}
	return n.sign() * cmp.Or(cmp.Compare(n.magnitude, other.magnitude), bytes.Compare(n.digits, other.digits))
}

// CompareInt is Compare with an integer.
func (n Decimal) CompareInt(other int64) int {
	var room [20]byte
	return n.Compare(ParseDecimal(strconv.AppendInt(room[:0], other, 10)))
}

// IsInteger reports whether n has no digits after the decimal point.
func (n Decimal) IsInteger() bool {
	return len(n.digits) == 0 || n.magnitude >= int64(len(n.digits))-1
}

func (n Decimal) sign() int {
	switch {
	case len(n.digits) == 0:
		return 0
	case n.negative:
		return -1
	}
	return 1
}
