package suite

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/progress"
)

// planner makes random Projects and what may belong to them, and works out their progress
// the plain way.
type planner struct {
	t      *testing.T
	desk   *desk
	random *rand.Rand

	projects  []string // the SBDefinitions of each of the two blocks of p
	documents map[oda.Ref]*planned
}

// planned is a document in pieces. An empty piece is not in it.
type planned struct {
	created, version         int64
	status                   string
	said                     bool // the status, so the document's counts no more
	sbd, sbi, eb, prj, block string
	sbdVersion               int64
	calls                    []plannedCall
}

// plannedCall is a call from one second to another.
type plannedCall struct {
	from, to int
	failed   bool
}

func newPlanner(t *testing.T, d *desk) *planner {
	return &planner{t: t, desk: d, random: rand.New(rand.NewPCG(21, 22)), documents: map[oda.Ref]*planned{}}
}

func (p *planner) pick(list ...string) string { return list[p.random.IntN(len(list))] }

func (p *planner) run(rounds int) {
	p.projects = []string{"", ""}
	p.desk.mustPut(prj("p"), `{}`)
	for range rounds {
		for range p.random.IntN(4) {
			p.write()
		}
		for range p.random.IntN(3) { // changes that need no new look for runs
			p.record()
			p.say()
		}
		if p.random.IntN(4) == 0 {
			for i := range p.projects {
				p.projects[i] = strings.Join([]string{p.pick("d1", "d2", "d3"), p.pick("d1", "d4", "d5")}[:p.random.IntN(3)], `","`)
			}
			text := func(i int) string { return `"sbd_ids":["` + p.projects[i] + `"]` }
			p.desk.mustUpdate(prj("p"), `"obs_programmes":[{"name":"N",`+text(0)+`}],"obs_blocks":[{"obs_block_id":"ob",`+text(1)+`}]`)
		}
		got := p.desk.progress("p")
		for i := range got.Blocks {
			for j := range got.Blocks[i].Definitions {
				got.Blocks[i].Definitions[j].Class = oda.NoClass // clients do not get it
			}
		}
		same(p.t, "the progress", got, p.progress())
		same(p.t, "what was not observed", p.desk.found(oda.SBDefinition, "unobserved=true&sort=id"), p.unobserved())
	}
}

// write stores a random document.
func (p *planner) write() {
	ref := oda.Ref{Kind: oda.Kinds[p.random.IntN(3)]}
	n := &planned{status: p.pick("", "", "Observed", "failed", "Executing", "Strange")}
	members := []string{}
	add := func(field, value string) string {
		if value != "" {
			members = append(members, fmt.Sprintf(`%q:%q`, field, value))
		}
		return value
	}
	ids := []string{"1", "2", "3", "4", "5"}
	switch ref.Kind {
	case oda.SBDefinition:
		ref.ID = "d" + p.pick(ids...)
		n.prj, n.block = add("prj_ref", p.pick("", "", "p", "q")), add("ob_ref", p.pick("", "", "ob", "p", "other"))
	default:
		n.sbd = add(p.pick("sbd_ref", "sbd_id"), p.pick("", "d1", "d2", "d3", "d4"))
		if n.sbdVersion = int64(p.random.IntN(4)); n.sbdVersion > 0 {
			members = append(members, fmt.Sprintf(`"sbd_version":%d`, n.sbdVersion))
		}
	}
	switch ref.Kind {
	case oda.SBInstance:
		ref.ID = "i" + p.pick(ids...)
		n.eb = add("eb_ref", p.pick("", "", "b1", "b2", "b3"))
	case oda.ExecutionBlock:
		ref.ID = "b" + p.pick(ids...)
		n.sbi = add("sbi_ref", p.pick("", "i1", "i2", "i3", "i6"))
		members = append(members, listing(p.calls(n)...))
	}
	add("status", n.status)
	var stored *oda.Entity
	if p.documents[ref] == nil {
		stored = p.desk.mustPut(ref, `{`+strings.Join(members, ",")+`}`)
	} else {
		stored = p.desk.mustPut(ref, document(p.desk.mustGet(ref).Metadata, strings.Join(members, ",")))
	}
	if before := p.documents[ref]; before != nil && before.said {
		n.status, n.said = before.status, true
	}
	n.created, n.version = int64(stored.Metadata.CreatedOn), stored.Metadata.Version
	p.documents[ref] = n
}

// record adds calls to one of the blocks, if there is any.
func (p *planner) record() {
	if blocks := p.of(oda.ExecutionBlock); len(blocks) > 0 {
		ref := eb(p.pick(blocks...))
		for _, text := range p.calls(p.documents[ref]) {
			p.desk.mustRecord(ref.ID, text)
		}
	}
}

// say says the status of one of the SBDefinitions and SBInstances, if there is any.
func (p *planner) say() {
	kind := []oda.Kind{oda.SBDefinition, oda.SBInstance}[p.random.IntN(2)]
	if ids := p.of(kind); len(ids) > 0 {
		ref := oda.Ref{Kind: kind, ID: p.pick(ids...)}
		said := p.desk.mustSay(p.desk.saying(ref, p.pick("Observed", "failed", "Executing", "Strange")))
		p.documents[ref].status, p.documents[ref].said = said.Text, true
	}
}

// calls draws the calls of a block, in any order.
func (p *planner) calls(n *planned) (records []string) {
	for range p.random.IntN(5) {
		c := plannedCall{from: p.random.IntN(60), failed: p.random.IntN(3) == 0}
		c.to = c.from + p.random.IntN(20)
		n.calls = append(n.calls, c)
		status := "OK"
		if c.failed {
			status = "no"
		}
		records = append(records, fmt.Sprintf(`{"request":"r","status":%q,"request_sent_at":"2020-01-01T00:00:%02dZ","response_received_at":"2020-01-01T00:%02d:%02dZ"}`, status, c.from, c.to/60, c.to%60))
	}
	return records
}

// of returns the stored documents of a kind, by identifier.
func (p *planner) of(kind oda.Kind) []string {
	var ids []string
	for ref := range p.documents {
		if ref.Kind == kind {
			ids = append(ids, ref.ID)
		}
	}
	return slices.Sorted(slices.Values(ids))
}

func (p *planner) progress() *progress.Report {
	report := &progress.Report{Project: "p", Blocks: []progress.Block{}}
	if p.desk.mustGet(prj("p")).Metadata.Version == 1 {
		p.group(report, "", "", map[string]bool{}, p.naming(false))
		return report
	}
	listed := map[string]bool{}
	lists := [2][]string{}
	for i := range lists {
		for id := range strings.SplitSeq(p.projects[i], `","`) {
			if id != "" {
				lists[i] = append(lists[i], id)
			}
		}
	}
	all := map[string]bool{}
	for _, id := range slices.Concat(lists[0], lists[1]) {
		all[id] = true
	}
	isOther := func(id string) bool { return !all[id] }
	p.group(report, "", "N", listed, lists[0], true)
	p.group(report, "ob", "", listed, append(lists[1], filter(p.naming(true), isOther)...), true)
	p.group(report, "", "", listed, filter(p.naming(false), isOther))
	return report
}

func filter(list []string, keep func(string) bool) (some []string) {
	for _, one := range list {
		if keep(one) {
			some = append(some, one)
		}
	}
	return some
}

// naming returns the SBDefinitions that name the block of the Project, or else those that
// name only the Project.
func (p *planner) naming(block bool) (ids []string) {
	hasBlock := p.desk.mustGet(prj("p")).Metadata.Version > 1
	for _, id := range p.of(oda.SBDefinition) {
		d := p.documents[sbd(id)]
		namesBlock := hasBlock && d.block == "ob"
		if block && namesBlock || !block && !namesBlock && (d.prj == "p" || d.block == "p") {
			ids = append(ids, id)
		}
	}
	return ids
}

// group adds a block to a report; an empty one only where it is always there.
func (p *planner) group(report *progress.Report, id, name string, listed map[string]bool, ids []string, always ...bool) {
	block := progress.Block{Definitions: []progress.Definition{}}
	if id != "" {
		block.ID = &id
	}
	if name != "" {
		block.Name = &name
	}
	for _, id := range ids {
		if listed[id] {
			continue
		}
		listed[id] = true
		d := p.definition(id)
		if report.Definitions++; d.Done {
			report.Done++
		}
		block.Definitions = append(block.Definitions, d)
	}
	if len(block.Definitions) > 0 || len(always) > 0 {
		report.Blocks = append(report.Blocks, block)
	}
}

func (p *planner) definition(id string) progress.Definition {
	d := progress.Definition{ID: id, Runs: []progress.Run{}}
	type pair struct{ sbi, eb string }
	pairs := map[pair]bool{}
	for _, i := range p.of(oda.SBInstance) {
		n := p.documents[sbi(i)]
		if n.sbd != id {
			continue
		}
		blocks := map[string]bool{}
		if n.eb != "" {
			blocks[n.eb] = true
		}
		for _, b := range p.of(oda.ExecutionBlock) {
			if p.documents[eb(b)].sbi == i {
				blocks[b] = true
			}
		}
		if len(blocks) == 0 {
			blocks[""] = true
		}
		for b := range blocks {
			pairs[pair{i, b}] = true
		}
	}
	through := maps.Clone(pairs)
	for _, b := range p.of(oda.ExecutionBlock) {
		isRun := false
		for one := range through {
			isRun = isRun || one.eb == b
		}
		if n := p.documents[eb(b)]; n.sbd == id && !isRun {
			pairs[pair{n.sbi, b}] = true
		}
	}
	began := map[string]int64{}
	highest := int64(0)
	for one := range pairs {
		r := p.runOf(id, one.sbi, one.eb, began)
		if d.Runs = append(d.Runs, r); r.Version != nil {
			highest = max(highest, *r.Version)
		}
		d.Done = d.Done || r.Class == oda.ClassDone
	}
	slices.SortFunc(d.Runs, func(a, b progress.Run) int {
		return cmp.Or(cmp.Compare(began[runName(a)], began[runName(b)]), strings.Compare(runName(a), runName(b)))
	})
	if n := p.documents[sbd(id)]; n != nil {
		d.Version = &n.version
		if n.status != "" {
			d.Status = &n.status
		}
		if highest > 0 {
			changed := n.version > highest
			d.Changed = &changed
		}
	}
	return d
}

// runName tells runs apart; those without an instance or block come first.
func runName(r progress.Run) string {
	name := ""
	for _, id := range []*string{r.Instance, r.Block} {
		if id != nil {
			name += *id
		}
		name += " "
	}
	return name
}

func (p *planner) runOf(id, instance, block string, began map[string]int64) progress.Run {
	var r progress.Run
	if instance != "" {
		r.Instance = &instance
	}
	if block != "" {
		r.Block = &block
	}
	b, i := p.documents[eb(block)], p.documents[sbi(instance)]
	for _, n := range []*planned{b, i} {
		if n == nil {
			continue
		}
		if r.Version == nil && n.sbd == id && n.sbdVersion > 0 {
			r.Version = &n.sbdVersion
		}
		if r.Status == nil && n.status != "" {
			r.Status, r.Class = &n.status, oda.ClassOf(n.status)
		}
	}
	switch {
	case b != nil:
		began[runName(r)] = b.created
		p.sum(&r, b.calls, began)
	case i != nil:
		began[runName(r)] = i.created
	}
	return r
}

// sum adds up calls, second by second.
func (p *planner) sum(r *progress.Run, all []plannedCall, began map[string]int64) {
	calls, failures, busy := int64(len(all)), int64(0), oda.Elapsed(0)
	isBusy := [100]bool{}
	from, to := 100, 0
	for _, c := range all {
		from, to = min(from, c.from), max(to, c.to)
		for second := c.from; second < c.to; second++ {
			isBusy[second] = true
		}
		if c.failed {
			failures++
		}
	}
	for _, one := range isBusy {
		if one {
			busy += 1_000_000
		}
	}
	r.Calls, r.Failures, r.Busy = &calls, &failures, &busy
	if calls == 0 {
		return
	}
	year := oda.InstantOf(at("2020-01-01"))
	started, ended := oda.Moment(year+oda.Instant(from)*1_000_000), oda.Moment(year+oda.Instant(to)*1_000_000)
	began[runName(*r)] = int64(started)
	if r.Started = &started; r.Class != oda.ClassRunning {
		r.Ended = &ended
	}
}

// unobserved returns the stored SBDefinitions of which no run is done.
func (p *planner) unobserved() []string {
	ids := []string{}
	for _, id := range p.of(oda.SBDefinition) {
		if !p.definition(id).Done {
			ids = append(ids, id)
		}
	}
	return ids
}
