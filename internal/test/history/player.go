package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
)

// player is a client. It remembers the last state that it saw of each entity,
// and the one before.
type player struct {
	game   *game
	number int
	writes int // number of writes, for markers
	last   []*document
	older  []*document
	again  []int     // entities to read next
	keyed  []request // records with a key, to send again
}

func newPlayer(g *game, number int) *player {
	return &player{game: g, number: number, last: make([]*document, len(g.refs)), older: make([]*document, len(g.refs))}
}

// play takes the player's turns, until ctx ends.
func (p *player) play(ctx context.Context, turns int) error {
	// A request is finished even if ctx ends, so that only chosen requests are
	// given up.
	calls := context.WithoutCancel(ctx)
	for turn := range turns {
		if ctx.Err() != nil {
			return nil
		}
		in := p.choose(turn)
		out, err := p.game.do(calls, p.number, in)
		if err != nil {
			return err
		}
		p.learn(in, out)
	}
	return nil
}

// choose picks the next request. At the beginning of a game everybody creates
// and records.
func (p *player) choose(turn int) request {
	in := request{User: fmt.Sprintf("u%d", p.number), Entity: rand.N(len(p.game.refs))}
	if len(p.again) > 0 {
		in.Action, in.Entity = read, p.again[0]
		p.again = p.again[1:]
		return in
	}
	dice := rand.N(100)
	if turn < 3 {
		dice = 50 + rand.N(50)
	}
	switch {
	case dice < 25:
		in.Action = read
		return in
	case dice < 30 && len(p.keyed) > 0:
		in = p.keyed[rand.N(len(p.keyed))]
		in.Action, in.Keyed = repeat, false
		return in
	case dice < 70:
		in.Action, in.Marker = store, p.marker()
		in.Puts = []put{p.update(in.Entity)}
	case dice < 80:
		in.Action, in.Marker = store, p.marker()
		for i := range p.game.refs {
			in.Puts = append(in.Puts, p.update(i))
		}
		if len(in.Puts) > 2 && rand.N(2) == 0 {
			in.Puts = slices.Delete(in.Puts, 0, 1)
		}
		for i := range in.Puts {
			// Paths and headers cannot express options for several documents.
			in.Puts[i].Keep, in.Puts[i].Match, in.Puts[i].CreateOnly = false, "", false
		}
		rand.Shuffle(len(in.Puts), func(i, j int) { in.Puts[i], in.Puts[j] = in.Puts[j], in.Puts[i] })
	default:
		in.Action, in.Marker, in.Entity, in.Keyed = record, p.marker(), 0, rand.N(2) == 0
	}
	return in
}

// marker returns a unique word.
func (p *player) marker() string {
	p.writes++
	return fmt.Sprintf("%d.%d", p.number, p.writes)
}

// update makes a document for an entity from the last state seen, or sometimes
// from the one before. An entity that was never seen is stored as new.
func (p *player) update(i int) put {
	from := p.last[i]
	if p.older[i] != nil && rand.N(8) == 0 {
		from = p.older[i]
	}
	out := put{Entity: i}
	block := i == 0
	if from == nil || rand.N(25) == 0 {
		out.CreateOnly = rand.N(2) == 0
		out.Listed = block && rand.N(2) == 0
		return out
	}
	claim := from.Metadata
	out.Claim = &claim
	if rand.N(6) == 0 {
		out.Match = claim.Tag()
	}
	if !block {
		return out
	}
	switch rand.N(8) {
	case 0: // without a list
	case 1:
		out.Keep = true
	case 2: // some records dropped
		out.Listed = true
		for _, r := range from.Records {
			if rand.N(3) > 0 {
				out.Records = append(out.Records, r)
			}
		}
	case 3: // one record added
		out.Listed, out.Records = true, append(slices.Clone(from.Records), p.marker())
	default:
		out.Listed, out.Records = from.Listed, slices.Clone(from.Records)
	}
	return out
}

// learn remembers what an answer shows.
func (p *player) learn(in request, out response) {
	if out.Outcome != done {
		// A refused player must read, or it gets nowhere.
		if out.Outcome == mismatch || out.Outcome == condition {
			for _, one := range in.Puts {
				if rand.N(3) > 0 {
					p.again = append(p.again, one.Entity)
				}
			}
		}
		return
	}
	switch in.Action {
	case read:
		p.show(in.Entity, out.Documents[0])
	case store:
		for i, one := range in.Puts {
			p.show(one.Entity, out.Documents[i])
		}
	case record:
		if in.Keyed {
			in.First = out.Recorded
			p.keyed = append(p.keyed, in)
		}
	}
}

func (p *player) show(i int, d document) {
	p.older[i], p.last[i] = p.last[i], &d
}
