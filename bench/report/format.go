package report

import (
	"math"
	"strconv"
	"strings"
	"time"

	"oda/bench/measure"
)

// Num writes a measured number with about three digits, which is as much as a
// measurement is worth: 0.0123, 0.83, 7.25, 48.2, 512, 48,200.
func Num(v float64) string {
	size := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case size == 0:
		return "0"
	case size < 0.0995:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case size < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case size < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return group(strconv.FormatFloat(threeDigits(v), 'f', 0, 64))
	}
}

// threeDigits rounds a number from 100 up to its first three digits.
func threeDigits(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-2)
	return math.Round(v/unit) * unit
}

// group puts a comma between thousands.
func group(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	whole, fraction, point := strings.Cut(digits, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		whole += "." + fraction
	}
	return sign + whole
}

// Duration writes a measured time with about three digits.
func Duration(d time.Duration) string { return seconds(d.Seconds()) }

func seconds(s float64) string {
	if math.Abs(s) >= 120 {
		whole := time.Duration(math.Round(s)) * time.Second
		return strconv.Itoa(int(whole/time.Minute)) + " min " +
			strconv.Itoa(int(whole%time.Minute/time.Second)) + " s"
	}
	factor, unit := timeUnit(s)
	return Num(s/factor) + " " + unit
}

// timeUnit is the largest unit of which there is one; half a unit in the third
// digit is allowed for, so that 999.7 µs is written as 1.00 ms.
func timeUnit(s float64) (factor float64, unit string) {
	size := math.Abs(s) * 1.0005
	switch {
	case size >= 1 || size == 0:
		return 1, "s"
	case size >= 1e-3:
		return 1e-3, "ms"
	case size >= 1e-6:
		return 1e-6, "µs"
	default:
		return 1e-9, "ns"
	}
}

// Bytes writes a measured size with about three digits.
func Bytes(b float64) string {
	factor, unit := byteUnit(b)
	return Num(b/factor) + " " + unit
}

func byteUnit(b float64) (factor float64, unit string) {
	size := math.Abs(b)
	switch {
	case size >= 1<<30:
		return 1 << 30, "GiB"
	case size >= 1<<20:
		return 1 << 20, "MiB"
	case size >= 1<<10:
		return 1 << 10, "KiB"
	default:
		return 1, "B"
	}
}

// Value writes a number with its unit. "s" and "B" are scaled (1.20 ms,
// 24.3 MiB); no unit is a plain number; any other unit stands behind it.
func Value(v float64, unit string) string {
	switch {
	case unit == "", math.IsNaN(v), math.IsInf(v, 0):
		return Num(v)
	case unit == "s":
		return seconds(v)
	case unit == "B":
		return Bytes(v)
	default:
		return Num(v) + " " + unit
	}
}

// Times writes a ratio, or any plain number, with its spread:
// "0.83 (0.79–0.88)".
func Times(s measure.Spread) string { return SpreadValue(s, "") }

// SpreadValue writes a value with its spread in one unit:
// "1.20 ms (1.10–1.45)".
func SpreadValue(s measure.Spread, unit string) string {
	factor := 1.0
	switch unit {
	case "s":
		factor, unit = timeUnit(s.Median)
	case "B":
		factor, unit = byteUnit(s.Median)
	}
	text := Num(s.Median / factor)
	if unit != "" {
		text += " " + unit
	}
	if s.Low < s.High {
		text += " (" + Num(s.Low/factor) + "–" + Num(s.High/factor) + ")"
	}
	return text
}

// limit writes a number that was chosen rather than measured: without zeros
// that claim a precision.
func limit(v float64, unit string) string {
	number, unit, spaced := strings.Cut(Value(v, unit), " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	if spaced {
		number += " " + unit
	}
	return number
}
