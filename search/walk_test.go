package search_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/embedded"
	"oda/internal/test/env"
	"oda/internal/test/must"
	"oda/internal/test/suite"
	"oda/search"
)

// put stores a new entity.
func put(t *testing.T, store oda.Engine, kind oda.Kind, id, text string) {
	t.Helper()
	must.Get(store.Create(t.Context(), suite.Put(suite.Document(t, kind, text), id, "anna", 1), nil))(t)
}

// findAll reads all pages of a search. It returns what they found and how many
// there were.
func findAll(t *testing.T, s *search.Searcher, kind oda.Kind, raw string) (ids []string, pages int) {
	t.Helper()
	for {
		params := must.Get(url.ParseQuery(raw))(t)
		q := must.Get(search.Parse(kind, params))(t)
		page, err := s.Search(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		for _, f := range page.Items {
			ids = append(ids, f.ID)
		}
		if pages++; page.Next == "" {
			return ids, pages
		}
		raw = "cursor=" + page.Next
	}
}

// A search that runs out of time returns what it has found, which may be nothing.
// The next page continues from there.
func TestTheNextPageContinuesWhereALateOneEnded(t *testing.T) {
	store := embedded.Engine(t)
	var all []string
	for i := range 20 {
		all = append(all, fmt.Sprintf("s%02d", i))
		put(t, store, oda.SBDefinition, all[i], fmt.Sprintf(`{"name":"late","n":%d}`, i))
	}
	searcher := search.New(store)
	searcher.SetTime(0)
	for _, test := range []struct {
		raw   string
		want  []string
		pages int
	}{
		{"sort=id", all, 20},
		{"sort=id&where=/n+%3E%3D+10", all[10:], 20},
		{"sort=id&where=/n+%3D+-1", nil, 20},
		{"sort=id&q=late&where=/n+%3C+5", all[:5], 20},
		{"sort=-created&telescope=none", nil, 1},
	} {
		got, pages := findAll(t, searcher, oda.SBDefinition, test.raw)
		// The last page may end exactly with the last entity.
		if !slices.Equal(got, test.want) || pages < test.pages || pages > test.pages+1 {
			t.Errorf("%s finds %v in %d pages", test.raw, got, pages)
		}
	}
}

func TestASearchEndsWithItsCaller(t *testing.T) {
	store := embedded.Engine(t)
	put(t, store, oda.SBDefinition, "s", `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, raw := range []string{"", "q=s", "where=/a+%3D+1", "user=x&sort=id"} {
		params := must.Get(url.ParseQuery(raw))(t)
		q := must.Get(search.Parse(oda.SBDefinition, params))(t)
		if _, err := search.New(store).Search(ctx, q); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestConesFindTheTargetsOfOwnDocuments(t *testing.T) { findTargets(t, env.OwnDocuments(t)) }

func TestConesFindTheTargetsOfRealDocuments(t *testing.T) { findTargets(t, env.RealDocuments(t)) }

// findTargets stores documents and compares what cones find with the positions
// that a plain walk over the documents finds.
func findTargets(t *testing.T, all []env.Document) {
	store := embedded.Engine(t)
	type placed struct {
		kind      oda.Kind
		id        string
		positions [][2]float64
	}
	var stored []placed
	var positions [][2]float64
	for i, e := range all {
		id := fmt.Sprint("id-", i)
		put(t, store, e.Kind, id, string(e.Text))
		var document map[string]any
		decoder := json.NewDecoder(bytes.NewReader(e.Text))
		decoder.UseNumber()
		must.Do(t, decoder.Decode(&document))
		delete(document, "request_responses")
		own := positionsIn(document)
		stored = append(stored, placed{e.Kind, id, own})
		positions = append(positions, own...)
	}
	if len(positions) < 5 {
		t.Fatalf("the documents have only %d positions", len(positions))
	}
	slices.SortFunc(positions, func(a, b [2]float64) int { return slices.Compare(a[:], b[:]) })
	positions = slices.Compact(positions)
	random := rand.New(rand.NewPCG(21, 22))
	for range 30 {
		positions = append(positions, [2]float64{360 * random.Float64(), 180*random.Float64() - 90})
	}
	for i, centre := range positions {
		for _, radius := range []float64{0, 0.01, 1, 20, 120}[:2+i%4] {
			for _, kind := range oda.Kinds {
				var want []string
				for _, p := range stored {
					if p.kind == kind && slices.ContainsFunc(p.positions, func(at [2]float64) bool { return apart(centre, at) <= radius+1e-8 }) {
						want = append(want, p.id)
					}
				}
				slices.Sort(want)
				raw := fmt.Sprintf("sort=id&limit=1000&cone=%v,%v,%v", centre[0], centre[1], radius)
				if got, _ := findAll(t, search.New(store), kind, raw); !slices.Equal(got, want) {
					t.Errorf("%s among the %s: found %v, want %v", raw, kind.Collection(), got, want)
				}
			}
		}
	}
}

// apart returns the angle between two positions, computed with haversines.
func apart(a, b [2]float64) float64 {
	rad := func(deg float64) float64 { return deg * math.Pi / 180 }
	hav := func(x float64) float64 { return math.Pow(math.Sin(x/2), 2) }
	h := hav(rad(a[1]-b[1])) + math.Cos(rad(a[1]))*math.Cos(rad(b[1]))*hav(rad(a[0]-b[0]))
	return 2 * math.Asin(math.Min(1, math.Sqrt(h))) * 180 / math.Pi
}

// positionsIn returns the positions in a decoded document.
func positionsIn(value any) (found [][2]float64) {
	switch v := value.(type) {
	case map[string]any:
		ra, okRA := angleIn(v, "ra", 15)
		dec, okDec := angleIn(v, "dec", 1)
		if okRA && okDec && ra >= 0 && ra <= 360 && math.Abs(dec) <= 90 {
			found = append(found, [2]float64{math.Mod(ra, 360), dec})
		}
		for _, member := range v {
			found = append(found, positionsIn(member)...)
		}
	case []any:
		for _, element := range v {
			found = append(found, positionsIn(element)...)
		}
	}
	return found
}

// angleIn parses an angle: a number of degrees, or a text of hours or degrees,
// minutes and seconds.
func angleIn(object map[string]any, name string, unit float64) (float64, bool) {
	for _, key := range []string{name, name + "_str"} {
		switch v := object[key].(type) {
		case json.Number:
			n, err := v.Float64()
			return n, err == nil
		case string:
			text := strings.TrimSuffix(v, " degrees")
			parts := strings.FieldsFunc(strings.TrimLeft(text, "+-"), func(r rune) bool { return r == ':' || r == ' ' })
			angle := 0.0
			for i, part := range parts {
				n, err := strconv.ParseFloat(part, 64)
				if err != nil {
					return 0, false
				}
				angle += n / math.Pow(60, float64(i))
			}
			if strings.HasPrefix(text, "-") {
				angle = -angle
			}
			if len(parts) == 1 {
				unit = 1
			}
			return angle * unit, len(parts) > 0
		}
	}
	return 0, false
}
