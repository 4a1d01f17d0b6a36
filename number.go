package oda

import (
	"bytes"
	"cmp"
	"strconv"
)

// number is the value of a JSON number, however it is spelled: a sign and digits,
// the first of which has the weight 10^magnitude. Zero has no digits.
type number struct {
	negative  bool
	digits    []byte // without zeros at the beginning and the end
	magnitude int64
}

// farExponent is the largest exponent. Larger ones count as this one.
const farExponent = 1 << 60

// readNumber parses a number in JSON's spelling.
func readNumber(literal []byte) number {
	var n number
	if literal[0] == '-' {
		n.negative, literal = true, literal[1:]
	}
	mantissa, exponent := literal, int64(0)
	if at := bytes.IndexAny(literal, "eE"); at >= 0 {
		mantissa, exponent = literal[:at], readExponent(literal[at+1:])
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
		return number{}
	}
	return n
}

func readExponent(text []byte) int64 {
	e, err := strconv.ParseInt(string(bytes.TrimPrefix(text, []byte{'+'})), 10, 64)
	if err != nil { // out of range
		e = farExponent
		if text[0] == '-' {
			e = -farExponent
		}
	}
	return min(max(e, -farExponent), farExponent)
}

// compare compares exactly: no digit is lost, as it would be in a float64.
func (n number) compare(other number) int {
	if n.sign() != other.sign() {
		return cmp.Compare(n.sign(), other.sign())
	}
	return n.sign() * cmp.Or(cmp.Compare(n.magnitude, other.magnitude), bytes.Compare(n.digits, other.digits))
}

func (n number) sign() int {
	switch {
	case len(n.digits) == 0:
		return 0
	case n.negative:
		return -1
	}
	return 1
}
