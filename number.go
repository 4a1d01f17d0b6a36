package oda

import (
	"bytes"
	"cmp"
	"strconv"
)

// number is a JSON number as it is meant, whatever its spelling: a sign and
// digits, of which the first, which is not 0, has the weight 10^magnitude. Zero
// has no digits.
type number struct {
	negative  bool
	digits    []byte // neither 0 at the beginning nor at the end
	magnitude int64
}

// farExponent bounds exponents. What is beyond it is as far away as can be told.
const farExponent = 1 << 60

// readNumber reads a number in JSON's spelling.
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
	if err != nil { // out of range, with the sign that it has
		e = farExponent
		if text[0] == '-' {
			e = -farExponent
		}
	}
	return min(max(e, -farExponent), farExponent)
}

// compare is exact: no digit is lost to a binary form.
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
