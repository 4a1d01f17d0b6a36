package history

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options say how many games to play.
type Options struct {
	Teams   int // games at the same time
	Players int // per game
	Turns   int // maximum per player and game
	Games   int // maximum per team; 0 to play until the context ends

	// Dir is where the history of a failed game is saved. The default is the
	// directory for temporary files, where it outlives a test.
	Dir string
}

// Report describes the games that were played.
type Report struct {
	Games      int
	Operations int
	// Counts has the number of operations by action and outcome: "store done",
	// "record unclear" and so on. A store of several entities is called
	// "several".
	Counts map[string]int
	// Slowest is the longest time that deciding a game took.
	Slowest time.Duration

	finals []final
}

// final is the end of a game.
type final struct {
	game    *game
	shown   []response
	unclear map[string]bool // markers of writes that may take effect late
}

// Play plays one game after the other until ctx ends or all are played, and
// checks each. It stops at the first game that cannot be explained, with
// ErrNotLinearizable, or at any other error.
func Play(ctx context.Context, target Target, o Options) (*Report, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	report := &Report{Counts: make(map[string]int)}
	series := strings.ToLower(crand.Text()[:8])
	var mu sync.Mutex
	var failed error
	var teams sync.WaitGroup
	for team := range o.Teams {
		teams.Go(func() {
			for n := 0; ctx.Err() == nil && (o.Games == 0 || n < o.Games); n++ {
				// Games with two and three entities alternate.
				g := newGame(target, fmt.Sprintf("%s-%d-%d", series, team, n), 2+n%2)
				end, took, err := g.play(ctx, o)
				mu.Lock()
				report.add(g, end, took)
				if failed == nil {
					failed = err
				}
				mu.Unlock()
				if err != nil {
					stop()
				}
			}
		})
	}
	teams.Wait()
	return report, failed
}

// play lets the players play, and checks the game.
func (g *game) play(ctx context.Context, o Options) (*final, time.Duration, error) {
	errs := make([]error, o.Players)
	// Short games test beginnings, long ones what follows.
	turns := o.Turns
	if rand.N(2) == 0 {
		turns = 1 + rand.N(o.Turns)
	}
	var players sync.WaitGroup
	for i := range o.Players {
		players.Go(func() { errs[i] = newPlayer(g, i+1).play(ctx, turns) })
	}
	players.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, 0, errors.Join(err, keep(o.Dir, g.history, nil))
	}
	shown, err := g.final(context.WithoutCancel(ctx))
	if err != nil {
		return nil, 0, errors.Join(err, keep(o.Dir, g.history, nil))
	}
	begun := time.Now()
	err = check(g.history, len(g.refs), o.Dir)
	return &final{&game{target: g.target, refs: g.refs}, shown, unclearMarkers(g.history)}, time.Since(begun), err
}

func (r *Report) add(g *game, end *final, took time.Duration) {
	r.Games++
	r.Operations += len(g.history)
	r.Slowest = max(r.Slowest, took)
	for _, op := range g.history {
		name := string(op.Request.Action)
		if len(op.Request.Puts) > 1 {
			name = "several"
		}
		r.Counts[name+" "+string(op.Response.Outcome)]++
	}
	if end != nil {
		r.finals = append(r.finals, *end)
	}
}

// merge adds what was played later.
func (r *Report) merge(later *Report) {
	r.Games += later.Games
	r.Operations += later.Operations
	for name, n := range later.Counts {
		r.Counts[name] += n
	}
	r.Slowest = max(r.Slowest, later.Slowest)
	r.finals = append(r.finals, later.finals...)
}

func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d games with %d operations, the slowest decided in %v:", r.Games, r.Operations, r.Slowest.Round(time.Millisecond))
	for _, name := range slices.Sorted(maps.Keys(r.Counts)) {
		fmt.Fprintf(&b, " %s %d,", name, r.Counts[name])
	}
	return strings.TrimSuffix(b.String(), ",")
}

// Enough returns an error if one of the named operations did not occur, so that
// nothing is proved about it.
func (r *Report) Enough(names ...string) error {
	for _, name := range names {
		if r.Counts[name] == 0 {
			return fmt.Errorf("there was no %q, so nothing is proved about it", name)
		}
	}
	return nil
}
