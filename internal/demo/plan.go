package demo

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// Who acts. They are roles, since nobody in particular did any of it.
const (
	scheduler = "scheduler"
	scientist = "duty-scientist"
)

const (
	mid = "ska_mid"
	low = "ska_low"
)

// plan is a week, before it is stored.
type plan struct {
	projects     []project
	definitions  []definition
	observations []observation // by their beginning
	notes        []note
}

// observation is one use of a definition: an instance, and the block with what
// was called.
type observation struct {
	begin    time.Time
	instance instance
	block    block
	calls    []record
	ended    ending
}

// ending is how an observation came to its end.
type ending int

const (
	complete ending = iota
	failed          // given up after a fault
	stopped         // by the operator
	silent          // the recorder was killed, so nobody said how it ended
	running         // has not come to its end
)

// operator is who records.
func (o *observation) operator() string {
	if o.block.Telescope == low {
		return "operator-low"
	}
	return "operator-mid"
}

// outcome returns what is said of the block and its instance at the end, and why. It
// returns nothing if nobody says it.
func (o *observation) outcome() (block, instance, reason string) {
	switch o.ended {
	case complete:
		return "Observed", "Fully Observed", ""
	case failed:
		return "Failed", "Observing Failed", o.lastFault()
	case stopped:
		return "Aborted", "Aborted", "Wind above the limit for ten minutes; stopped by the operator."
	}
	return "", "", ""
}

// lastFault returns the fault of the last call that failed.
func (o *observation) lastFault() string {
	for _, c := range slices.Backward(o.calls) {
		if c.Error != nil {
			return c.Error.Detail
		}
	}
	return ""
}

// end is when the last of the calls was answered.
func (o *observation) end() time.Time { return end(o.calls, o.begin) }

func (o *observation) failures() int {
	n := 0
	for i := range o.calls {
		if o.calls[i].Error != nil {
			n++
		}
	}
	return n
}

// planner makes a plan. Everything it makes up comes from one source of chance.
type planner struct {
	*rand.Rand
	plan
}

func newPlan(o Options) *plan {
	p := planner{Rand: rand.New(rand.NewPCG(o.Seed, 0x0da))}
	for _, of := range programmes {
		p.project(of)
	}
	p.week(o.Now.UTC(), o.Longest)
	p.remarks(o.Now.UTC())
	return &p.plan
}

// id makes up an identifier in the form that the archive's own have.
func (p *planner) id(prefix string) string {
	const digits = "0123456789abcdefghjkmnpqrstvwxyz"
	id := []byte(prefix + "-d") // of the demo
	for range 10 {
		id = append(id, digits[p.IntN(len(digits))])
	}
	return string(id)
}

// programme is what a Project is about.
type programme struct {
	name      string
	telescope string
	band      string
	centre    float64 // Hz
	blocks    []string
	sources   int // how many it looks at
}

var programmes = []programme{
	{"Neutral hydrogen in nearby galaxies", mid, "1", 1.42e9, []string{"Pilot", "Deep fields"}, 6},
	{"Transients in the southern sky", mid, "2", 1.284e9, []string{"Weekly monitoring"}, 5},
	{"Pulsar timing array", mid, "2", 1.4e9, []string{"Bright pulsars", "Search"}, 4},
	{"Commissioning: pointing and holography", mid, "1", 1.1e9, []string{"Pointing"}, 3},
	{"Radio galaxies at low frequencies", low, "low", 1.6e8, []string{"Snapshots", "Long tracks"}, 5},
	{"Reionisation test field", low, "low", 1.8e8, []string{"Field 1"}, 3},
}

func (p *planner) project(of programme) {
	prj := project{head: newHead("prj"), ID: p.id("prj"), Name: of.name, Status: "Draft"}
	for i, name := range of.blocks {
		prj.ObsBlocks = append(prj.ObsBlocks, obsBlock{ID: p.id("ob"), Name: name, Definitions: []string{}})
		if i == 0 {
			prj.Status = "Ready"
		}
	}
	for i, at := range p.Perm(len(sources))[:of.sources] {
		into := &prj.ObsBlocks[i%len(prj.ObsBlocks)]
		d := p.definition(of, sources[at], into.ID)
		into.Definitions = append(into.Definitions, d.ID)
		p.definitions = append(p.definitions, d)
	}
	p.projects = append(p.projects, prj)
}

func (p *planner) definition(of programme, source place, obsBlock string) definition {
	calibrator := calibrators[p.IntN(len(calibrators))]
	d := definition{
		head: newHead("sbd"), ID: p.id("sbd"), Telescope: of.telescope, ObsBlock: obsBlock,
		Name:        source.name + " in band " + of.band,
		Description: fmt.Sprintf("%s, with %s as calibrator.", of.name, calibrator.name),
		Activities: map[string]activity{"observe": {
			Kind: "filesystem", Path: "/scripts/allocate_and_observe_sb.py", Branch: "main",
			Args: args{Args: []any{}, Kwargs: map[string]any{"subarray_id": 1, "with_processing": true}},
		}},
		Targets: []target{source.target("target-1"), calibrator.target("calibrator-1")},
		CSP: []csp{{
			ID: "csp-1", Name: "Band " + of.band + " continuum", Band: of.band, Centre: of.centre,
			Bandwidth: 1.0e8, Channels: 4096 << p.IntN(3),
		}},
	}
	minutes := 2 + p.IntN(9)
	scans := []scan{{"scan-1", "calibrator-1", "csp-1", 90_000, "Calibrator"}}
	for i := range 1 + p.IntN(3) {
		scans = append(scans, scan{"scan-" + strconv.Itoa(i+2), "target-1", "csp-1", minutes * 60_000, "Science"})
	}
	if of.telescope == mid {
		d.Dishes = &dishes{ID: "dishes-1", Array: "AA1", Scans: scans}
		for i := range 4 + 4*p.IntN(2) {
			d.Dishes.Dishes = append(d.Dishes.Dishes, fmt.Sprintf("SKA%03d", 1+7*i))
		}
	} else {
		d.Stations = &stations{ID: "stations-1", Array: "AA1", Scans: scans}
		for i := range 4 + 2*p.IntN(3) {
			d.Stations.Stations = append(d.Stations.Stations, 345+i)
		}
	}
	d.edits = edits[:max(0, p.IntN(len(edits)+2)-1)]
	return d
}

// The subarrays that observe, each through its own nights.
var subarrays = []struct {
	telescope string
	number    int
	from      time.Duration // into the day, UTC
	blocks    int           // in a night, about
}{
	{mid, 1, 15 * time.Hour, 6},
	{mid, 2, 18 * time.Hour, 3},
	{low, 1, 11 * time.Hour, 4},
}

// week plans what was observed in the seven days before now.
func (p *planner) week(now time.Time, longest int) {
	today := now.Truncate(24 * time.Hour)
	for day := 7; day >= 0; day-- {
		for _, s := range subarrays {
			at := today.AddDate(0, 0, -day).Add(s.from)
			for range s.blocks - 1 + p.IntN(3) {
				at = at.Add(time.Duration(4+p.IntN(25)) * time.Minute)
				if p.IntN(8) == 0 { // wind, or lightning
					at = at.Add(time.Duration(40+p.IntN(80)) * time.Minute)
				}
				o := p.observation(s.telescope, s.number, at, p.length(), false)
				at = end(o.calls, at)
				p.take(o, now)
			}
		}
	}
	// One block is much longer than all others.
	p.take(p.observation(mid, 3, today.AddDate(0, 0, -1).Add(20*time.Hour), longest, true), now)
	slices.SortFunc(p.observations, func(a, b observation) int {
		return cmp.Or(a.begin.Compare(b.begin), cmp.Compare(a.block.ID, b.block.ID))
	})
	p.mishaps(now)
}

// mishaps ends two of the observations of the last days early: one was stopped, and the
// recorder of another was killed.
func (p *planner) mishaps(now time.Time) {
	endings := []ending{silent, stopped}
	for i := len(p.observations) - 1; i >= 0 && len(endings) > 0; i-- {
		o := &p.observations[i]
		if o.ended != complete || o.instance.Subarray == 3 || len(o.calls) < 12 || now.Sub(o.end()) < 12*time.Hour {
			continue
		}
		o.ended, o.calls = endings[0], o.calls[:len(o.calls)*2/3]
		endings = endings[1:]
		if o.ended == stopped {
			s := script{Rand: p.Rand, subarray: o.instance.Subarray, at: o.end().Add(time.Second), calls: o.calls}
			s.call(devices+"abort", s.seconds(1, 4), "<ObsState.ABORTED: 7>")
			o.calls = s.calls
		}
	}
}

// take adds an observation to the plan, with the calls that were made before now.
func (p *planner) take(o observation, now time.Time) {
	if now.Sub(o.begin) > 7*24*time.Hour || !o.begin.Before(now) {
		return
	}
	n := slices.IndexFunc(o.calls, func(r record) bool { return r.Sent != nil && r.Sent.After(now) })
	if n >= 0 {
		o.calls, o.ended = o.calls[:n], running
	}
	p.observations = append(p.observations, o)
}

// length makes up how many calls a block has: mostly few.
func (p *planner) length() int {
	switch n := p.IntN(20); {
	case n < 14:
		return 10 + p.IntN(40)
	case n < 19:
		return 50 + p.IntN(250)
	}
	return 500 + p.IntN(1000)
}

func (p *planner) observation(telescope string, subarray int, at time.Time, calls int, steady bool) observation {
	var fit []*definition
	for i := range p.definitions {
		if p.definitions[i].Telescope == telescope {
			fit = append(fit, &p.definitions[i])
		}
	}
	d := fit[p.IntN(len(fit))]
	version := 1 + p.IntN(len(d.edits)+1)
	o := observation{
		begin: at,
		instance: instance{
			head: newHead("sbi"), ID: p.id("sbi"), Telescope: telescope, Definition: d.ID, Version: version,
			Block: p.id("eb"), Subarray: subarray, Status: "Created",
		},
	}
	o.block = block{head: newHead("eb"), ID: o.instance.Block, Telescope: telescope, Definition: d.ID, Version: version, Instance: o.instance.ID}
	s := script{Rand: p.Rand, definition: d, subarray: subarray, steady: steady, at: at}
	var aborted bool
	if o.calls, aborted = s.observe(calls); aborted {
		o.ended = failed
	}
	return o
}

// end is when the last of the calls was answered.
func end(calls []record, begin time.Time) time.Time {
	end := begin
	for i := range calls {
		if r := calls[i].Received; r != nil && r.After(end) {
			end = *r
		}
	}
	return end
}
