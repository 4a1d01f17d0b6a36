package postgres

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"oda"
)

// cluster simulates a cluster in which transactions take numbers and commit or roll
// back, in any order.
type cluster struct {
	random            *rand.Rand
	now               int64 // counts what happens
	number, xid, last int64 // given last; last: transaction that ended last
	running           []*transaction
	committed         []*transaction // the order is that of commits
	end               ending
	rounds            []*round
}

type transaction struct {
	xid              int64
	numbers          []numbered
	began, committed int64 // when
}

func (c *cluster) begin() {
	c.xid++
	c.running = append(c.running, &transaction{xid: c.xid, began: c.now})
}

func (c *cluster) take() {
	if len(c.running) == 0 {
		return
	}
	c.number++
	one := c.running[c.random.IntN(len(c.running))]
	one.numbers = append(one.numbers, numbered{c.number, 1 + c.random.Int64N(3)})
}

func (c *cluster) finish(commit bool) {
	if len(c.running) == 0 {
		return
	}
	i := c.random.IntN(len(c.running))
	one := c.running[i]
	c.running = slices.Delete(c.running, i, i+1)
	c.last = max(c.last, one.xid)
	if commit {
		one.committed = c.now
		c.committed = append(c.committed, one)
	}
}

// restore moves the database into another cluster, which knows none of the
// transactions. Numbers continue somewhere after the last.
func (c *cluster) restore() {
	c.running, c.last = nil, c.random.Int64N(c.last+10)
	c.xid = c.last
	c.number += c.random.Int64N(1000)
}

// round makes a round from what a snapshot shows, as numbering.round does.
func (c *cluster) round() {
	xmax := c.last + 1
	xmin := xmax
	for _, one := range c.running {
		xmin = min(xmin, one.xid)
	}
	var found []numbered
	for _, one := range c.committed {
		for _, n := range one.numbers {
			if n.number > c.end.seen || slices.ContainsFunc(c.end.gaps, func(g gap) bool { return n.number >= g.first && n.number <= g.last }) {
				found = append(found, n)
			}
		}
	}
	found, _ = cut(found, c.end.seen)
	r := c.end.next(found, xmin, xmax)
	if r == nil {
		return
	}
	c.xid++
	c.last = max(c.last, c.xid)
	for i := range r.gaps {
		r.gaps[i].since = cmp.Or(r.gaps[i].since, c.xid)
	}
	c.rounds = append(c.rounds, r)
	c.end = r.ending
}

// In whatever order transactions commit, each number is in one round, and none comes
// after a number whose transaction began after its own had committed.
func TestRoundsHaveEachNumberOnceAndNoneOvertakesAnEarlierOne(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		c := &cluster{random: rand.New(rand.NewPCG(seed, 1))}
		for range 400 {
			c.now++
			switch n := c.random.IntN(100); {
			case n < 25:
				c.begin()
			case n < 60:
				c.take()
			case n < 80:
				c.finish(n < 75)
			case n == 80 && seed%3 == 0:
				c.restore()
			default:
				c.round()
			}
		}
		for len(c.running) > 0 {
			c.finish(true)
		}
		c.begin()
		c.take()
		c.finish(true)
		c.round()
		c.round()
		if err := c.check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func (c *cluster) check() error {
	place := make(map[int64]int)
	var last oda.Position
	for _, r := range c.rounds {
		for i := 0; i < len(r.runs); i += 2 {
			for n := r.runs[i]; n <= r.runs[i+1]; n++ {
				if place[n] != 0 {
					return fmt.Errorf("number %d is in two rounds", n)
				}
				place[n] = len(place) + 1
			}
		}
	}
	for _, one := range c.committed {
		for _, n := range one.numbers {
			if place[n.number] == 0 {
				return fmt.Errorf("number %d is in no round", n.number)
			}
			last += oda.Position(n.width)
			for _, before := range c.committed {
				if len(before.numbers) > 0 && before.committed < one.began && place[before.numbers[0].number] > place[n.number] {
					return fmt.Errorf("number %d comes after %d, which was sent later", before.numbers[0].number, n.number)
				}
			}
		}
	}
	switch {
	case len(place) > int(c.number):
		return fmt.Errorf("%d of %d numbers are there", len(place), c.number)
	case last != c.end.last:
		return fmt.Errorf("the log ends at %d, but should end at %d", c.end.last, last)
	}
	return nil
}

// Gaps are forgotten if no transaction can fill them any more.
func TestAGapIsForgottenWhenAllThatMayFillItHaveEnded(t *testing.T) {
	t.Parallel()
	end := ending{last: 10, seen: 20, gaps: []gap{{5, 9, 100}, {15, 15, 200}}}
	for _, c := range []struct {
		name       string
		found      []numbered
		xmin, xmax int64
		want       []gap
	}{
		{"somebody may fill both", []numbered{{21, 1}}, 99, 300, []gap{{5, 9, 100}, {15, 15, 200}}},
		{"somebody may fill one", []numbered{{21, 1}}, 150, 300, []gap{{15, 15, 200}}},
		{"nobody may", []numbered{{21, 1}}, 200, 300, nil},
		{"one was noted in another cluster", []numbered{{21, 1}}, 50, 150, []gap{{5, 9, 100}}},
		{"one is filled in part", []numbered{{7, 1}, {21, 1}}, 50, 300, []gap{{5, 6, 100}, {8, 9, 100}, {15, 15, 200}}},
		{"one is filled and the next begins", []numbered{{15, 1}, {25, 1}}, 50, 300, []gap{{5, 9, 100}, {21, 24, 0}}},
	} {
		if got := end.next(c.found, c.xmin, c.xmax).gaps; !slices.Equal(got, c.want) {
			t.Errorf("%s: the gaps are %v, want %v", c.name, got, c.want)
		}
	}
	if r := end.next(nil, 200, 300); r != nil {
		t.Errorf("a round is empty: %+v", r)
	}
}

// However many transactions are rolled back while another stays open, the number of
// gaps in a row is bounded, and later numbers wait.
func TestTheListOfGapsIsBounded(t *testing.T) {
	t.Parallel()
	var found []numbered
	for i := range int64(mostGaps + 100) {
		found = append(found, numbered{2 * (i + 1), 1})
	}
	var end ending
	r := end.next(found, 1, 10)
	if !r.full || len(r.gaps) != mostGaps || r.last != mostGaps {
		t.Fatalf("%d numbers are taken, with %d gaps, full: %v", r.last, len(r.gaps), r.full)
	}
	for i := range r.gaps {
		r.gaps[i].since = 5
	}
	if r := r.next(found[mostGaps:], 1, 10); !r.full || r.runs != nil {
		t.Errorf("the next round has %v", r.runs)
	}
	if r := r.next(found[mostGaps:], 7, 10); r.full || r.last != oda.Position(len(found)) {
		t.Errorf("numbering does not continue when it can: %d", r.last)
	}
}
