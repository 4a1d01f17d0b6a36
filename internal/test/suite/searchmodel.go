package suite

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"oda"
)

// guesser makes random documents of known pieces, and random searches, whose
// answers follow from the pieces.
type guesser struct {
	t      *testing.T
	desk   *desk
	random *rand.Rand
	all    []*piece
}

// piece is a document in pieces.
type piece struct {
	ref              oda.Ref
	metadata         oda.Metadata
	telescope, words string // words with a space before and behind each
	reference        string
	version          int64
	targets          [][2]float64
	status           string
	number           float64
	said             *oda.Standing // nil: what the document says counts
}

func newGuesser(t *testing.T, d *desk) *guesser {
	return &guesser{t: t, desk: d, random: rand.New(rand.NewPCG(11, 12))}
}

func (g *guesser) run(rounds int) {
	for range rounds {
		for range 3 {
			g.write()
		}
		for range 2 {
			g.search()
		}
	}
}

func pick[T any](g *guesser, list ...T) T { return list[g.random.IntN(len(list))] }

func (g *guesser) user() string { return pick(g, "anna", "Anna", "annabel", "bob") }

// position draws from few places, some of them awkward.
func (g *guesser) position() [2]float64 {
	return pick(g, [2]float64{0, 0}, [2]float64{359.9, 0.1}, [2]float64{10, 89.9}, [2]float64{190, 89.8}, [2]float64{77, -90}, [2]float64{201.365, -43.019}, [2]float64{180, 0})
}

// write stores a new entity, a new version of one, a record, or a status.
func (g *guesser) write() {
	g.desk.clock.Set(g.desk.clock.Now()+oda.Instant(g.random.IntN(3)*50_000), 0)
	d := g.desk.as(g.user())
	if len(g.all) > 10 && g.random.IntN(2) == 0 {
		p := pick(g, g.all...)
		if g.random.IntN(2) == 0 {
			g.say(p)
			return
		}
		if p.ref.Kind == oda.ExecutionBlock && g.random.IntN(2) == 0 {
			p.metadata = d.mustRecord(p.ref.ID, call("now")).Metadata
			return
		}
		g.draw(p)
		p.metadata = d.mustPut(p.ref, g.text(p)).Metadata
		return
	}
	kind := pick(g, oda.SBDefinition, oda.ExecutionBlock)
	p := &piece{ref: oda.Ref{Kind: kind, ID: fmt.Sprintf("%s-%s%03d", kind.Prefix(), pick(g, "a", "B", "c"), len(g.all))}}
	g.draw(p)
	p.metadata = d.mustPut(p.ref, g.text(p)).Metadata
	g.all = append(g.all, p)
}

// draw gives an entity other content.
func (g *guesser) draw(p *piece) {
	p.telescope = pick(g, "", "ska_mid", "ska_mid", "ska_low", "Meer KAT")
	p.words = " "
	for range g.random.IntN(4) {
		p.words += pick(g, "alpha", "alphabet", "beta", "γάμμα", "delta2") + " "
	}
	p.reference, p.version = pick(g, "", "x-1", "x-10", "Y 2"), 0
	if p.reference != "" && p.ref.Kind == oda.ExecutionBlock {
		p.version = g.random.Int64N(3)
	}
	p.targets = nil
	for range g.random.IntN(3) {
		p.targets = append(p.targets, g.position())
	}
	p.status, p.number = pick(g, "Draft", "draft", "Observed", "", "in-progress", "Nonsense"), float64(g.random.IntN(5))
}

// say says a status, sometimes late.
func (g *guesser) say(p *piece) {
	say := g.desk.saying(p.ref, pick(g, "Ready", "In_Progress", "OBSERVED", "nonsense"))
	if g.random.IntN(3) == 0 {
		say.At = new(say.Now - 1)
	}
	if g.random.IntN(4) == 0 {
		say.Class = new(pick(g, oda.ClassDone, oda.ClassFailed))
	}
	said := g.desk.mustSay(say)
	if p.said == nil || said.At >= p.said.At {
		p.said = &oda.Standing{Text: said.Text, Class: said.Class, At: said.At}
	}
}

// stands returns what the status is.
func (p *piece) stands() oda.Standing {
	if p.said != nil {
		return *p.said
	}
	return oda.Standing{Text: p.status, Class: classOf(p.status)}
}

// visible returns what a caller is told of a standing.
func visible(s oda.Standing) oda.Standing {
	return oda.Standing{Text: s.Text, Class: s.Class, At: s.At}
}

// text writes the document.
func (g *guesser) text(p *piece) string {
	var b strings.Builder
	b.WriteString(`{"note":{"long_description":"` + strings.ToUpper(strings.ReplaceAll(p.words, " ", "; ")) + `"}`)
	if p.metadata.Version > 0 {
		b.WriteString(`,"metadata":` + string(p.metadata.AppendJSON(nil)))
	}
	if p.telescope != "" {
		b.WriteString(`,"telescope":"` + p.telescope + `"`)
	}
	if p.reference != "" {
		b.WriteString(`,"` + map[oda.Kind]string{oda.SBDefinition: "prj_ref", oda.ExecutionBlock: "sbd_ref"}[p.ref.Kind] + `":"` + p.reference + `"`)
	}
	if p.version > 0 {
		fmt.Fprintf(&b, `,"sbd_version":%d`, p.version)
	}
	b.WriteString(`,"targets":[`)
	for i, t := range p.targets {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"reference_coordinate":{"ra":%v,"dec":%v}}`, t[0], t[1])
	}
	fmt.Fprintf(&b, `],"status":"%s","n":%v}`, p.status, p.number)
	return b.String()
}

// search draws a search, and compares what it finds with the judgement of all
// pieces.
func (g *guesser) search() {
	g.t.Helper()
	var params []string
	filters := []func(*piece) bool{}
	add := func(param string, holds func(*piece) bool) {
		params, filters = append(params, param), append(filters, holds)
	}
	for range g.random.IntN(4) {
		g.filter(func(param string, holds func(*piece) bool) {
			name, _, _ := strings.Cut(param, "=")
			if !slices.ContainsFunc(params, func(p string) bool { return strings.HasPrefix(p, name+"=") }) || name == "where" {
				add(param, holds)
			}
		})
	}
	kind, order := pick(g, oda.SBDefinition, oda.ExecutionBlock), oda.Sort(g.random.IntN(6))
	params = append(params, "sort="+order.String(), fmt.Sprintf("limit=%d", 1+g.random.IntN(30)))
	want := []oda.Found{}
	for _, p := range g.all {
		if p.ref.Kind == kind && !slices.ContainsFunc(filters, func(holds func(*piece) bool) bool { return !holds(p) }) {
			want = append(want, oda.Found{Ref: p.ref, Metadata: p.metadata, Standing: p.stands()})
		}
	}
	slices.SortFunc(want, func(a, b oda.Found) int { return order.Compare(order.Place(&a), order.Place(&b)) })
	got := g.desk.find(kind, strings.Join(params, "&"), func() {})
	for i := range got {
		got[i].Summary, got[i].Standing = oda.Summary{}, visible(got[i].Standing)
	}
	same(g.t, strings.Join(params, "&"), got, want)
}

// filter draws a filter with the judge of it.
func (g *guesser) filter(add func(param string, holds func(*piece) bool)) {
	switch g.random.IntN(10) {
	case 0:
		user := pick(g, "anna", "Anna", "bob", "nobody")
		add("user="+user, func(p *piece) bool { return p.metadata.CreatedBy == user })
	case 1:
		telescope := pick(g, "ska_mid", "ska_low", "Meer KAT", "none")
		add("telescope="+telescope, func(p *piece) bool { return p.telescope == telescope })
	case 2:
		reference := pick(g, "x-1", "x-10", "Y 2", "z")
		add("ref="+reference, func(p *piece) bool { return p.reference == reference })
		if g.random.IntN(2) == 0 {
			version := 1 + g.random.Int64N(2)
			add(fmt.Sprintf("ref_version=%d", version), func(p *piece) bool { return p.version == version })
		}
	case 3:
		word, prefix := pick(g, "alpha", "BETA", "γάμμα", "delta2", "gamma"), pick(g, "al", "alphabet", "ΓΆ", "d", "b", "sbd", "eb-a")
		add("q="+word+", "+prefix, func(p *piece) bool { return p.has(word, false) && p.has(prefix, true) })
	case 4:
		centre, radius := g.position(), pick(g, 0, 0.3, 15, 90, 180)
		add(fmt.Sprintf("cone=%v,%v,%v", centre[0], centre[1], radius), func(p *piece) bool {
			return slices.ContainsFunc(p.targets, func(t [2]float64) bool { return angleBetween(centre, t) <= radius+1e-6 })
		})
	case 5:
		if len(g.all) == 0 {
			return
		}
		m := pick(g, g.all...).metadata
		switch g.random.IntN(4) {
		case 0:
			add("created_after="+m.CreatedOn.String(), func(p *piece) bool { return p.metadata.CreatedOn >= m.CreatedOn })
		case 1:
			add("created_before="+m.CreatedOn.String(), func(p *piece) bool { return p.metadata.CreatedOn <= m.CreatedOn })
		case 2:
			add("last_modified_after="+m.LastModifiedOn.String(), func(p *piece) bool { return p.metadata.LastModifiedOn >= m.LastModifiedOn })
		default:
			add("last_modified_before="+m.LastModifiedOn.String(), func(p *piece) bool { return p.metadata.LastModifiedOn <= m.LastModifiedOn })
		}
	case 6:
		status := pick(g, "draft", "in progress", "OBSERVED", "Ready", "non-sense", "nonsense")
		add("status="+status, func(p *piece) bool { return alike(p.stands().Text) == alike(status) })
	case 7:
		class := pick(g, oda.ClassPlanned, oda.ClassRunning, oda.ClassDone, oda.ClassFailed)
		add("class="+class.String(), func(p *piece) bool { return p.stands().Class == class })
	case 8:
		status := pick(g, "Draft", "Observed")
		add(`where=/status = "`+status+`"`, func(p *piece) bool { return p.status == status })
	default:
		n := float64(g.random.IntN(5))
		add(fmt.Sprintf("where=/n <= %.2fe0", n), func(p *piece) bool { return p.number <= n })
	}
}

// has tells whether words occur, all but the last as they are.
func (p *piece) has(text string, isPrefix bool) bool {
	own := " " + strings.ReplaceAll(p.ref.ID, "-", " ") + p.words
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == '-' || r == ' ' })
	for i, word := range words {
		if word = " " + word; i < len(words)-1 || !isPrefix {
			word += " "
		}
		if !strings.Contains(strings.ToLower(own), word) {
			return false
		}
	}
	return true
}

// angleBetween is the angle between two positions, by the law of cosines.
func angleBetween(a, b [2]float64) float64 {
	rad := func(deg float64) float64 { return deg * math.Pi / 180 }
	cos := math.Sin(rad(a[1]))*math.Sin(rad(b[1])) + math.Cos(rad(a[1]))*math.Cos(rad(b[1]))*math.Cos(rad(a[0]-b[0]))
	return math.Acos(math.Max(-1, math.Min(1, cos))) * 180 / math.Pi
}
