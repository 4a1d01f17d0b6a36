package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"oda/bench/measure"
)

// Read takes back the results.json of an earlier run, so that its page can be
// made again without measuring.
func Read(path string) (*Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the results of an earlier run: %w", err)
	}
	r := new(Result)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read the results in %s (was it written by this program?): %w", path, err)
	}
	return r, nil
}

// encode writes a result so that two can be compared line by line.
func encode(r *Result) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("write the results as JSON: %w", err)
	}
	return text.Bytes(), nil
}

// number is null where there is none: JSON has neither NaN nor infinities, and
// a run of an hour must not be lost to one of them.
type number float64

// MarshalJSON writes null for what is not a number.
func (n number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads null as NaN.
func (n *number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = number(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}

type jsonSpread struct {
	Median number `json:"median"`
	Low    number `json:"low"`
	High   number `json:"high"`
}

// plainBudget has the fields of a Budget without its methods; Value in
// jsonBudget hides that of the embedded one.
type plainBudget Budget

type jsonBudget struct {
	*plainBudget
	Value jsonSpread `json:"value"`
	// Met is written for those who read the file; it follows from the rest.
	Met bool `json:"met"`
}

// MarshalJSON writes the budget and whether it is met.
func (b Budget) MarshalJSON() ([]byte, error) {
	value := jsonSpread{number(b.Value.Median), number(b.Value.Low), number(b.Value.High)}
	return json.Marshal(jsonBudget{(*plainBudget)(&b), value, b.Met()})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (b *Budget) UnmarshalJSON(text []byte) error {
	read := jsonBudget{plainBudget: (*plainBudget)(b)}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	b.Value = measure.Spread{Median: float64(read.Value.Median), Low: float64(read.Value.Low), High: float64(read.Value.High)}
	return nil
}

type jsonPoint struct {
	X    number `json:"x"`
	Y    number `json:"y"`
	Low  number `json:"low"`
	High number `json:"high"`
}

// MarshalJSON writes null for what is not a number.
func (p Point) MarshalJSON() ([]byte, error) {
	return json.Marshal(jsonPoint{number(p.X), number(p.Y), number(p.Low), number(p.High)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Point) UnmarshalJSON(text []byte) error {
	var read jsonPoint
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*p = Point{float64(read.X), float64(read.Y), float64(read.Low), float64(read.High)}
	return nil
}

type jsonBar struct {
	Group     string `json:"group,omitempty"`
	Name      string `json:"name"`
	Note      string `json:"note,omitempty"`
	Y         number `json:"y"`
	Low       number `json:"low"`
	High      number `json:"high"`
	Highlight bool   `json:"highlight,omitempty"`
}

// MarshalJSON writes null for what is not a number.
func (b Bar) MarshalJSON() ([]byte, error) {
	return json.Marshal(jsonBar{b.Group, b.Name, b.Note, number(b.Y), number(b.Low), number(b.High), b.Highlight})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (b *Bar) UnmarshalJSON(text []byte) error {
	var read jsonBar
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*b = Bar{
		Group: read.Group, Name: read.Name, Note: read.Note,
		Y: float64(read.Y), Low: float64(read.Low), High: float64(read.High), Highlight: read.Highlight,
	}
	return nil
}
