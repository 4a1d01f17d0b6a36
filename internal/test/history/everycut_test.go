package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync/atomic"
	"testing"

	"oda/internal/test/env"
	"oda/internal/test/fault"
	"oda/internal/test/must"
)

// everyMessage is more than the number of messages of any write to PostgreSQL
// over an open connection.
const everyMessage = 16

// Each kind of write is cut at each of its messages, in each way ("make proof"), or
// at a third of them. The client may be told that the outcome is unclear, but never anything wrong.
func TestAWriteCutAtAnyMessageIsNeitherRepeatedNorDenied(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	server := must.Get(url.Parse(dsn))(t)
	proxy := env.NewProxy(t, server.Host)
	target := At(t, env.Oda(t, "serve", "--db="+proxy.DSN(dsn)).URL)
	cuts := map[string]fault.Cut{"before": fault.CutBefore, "inside": fault.CutInside, "after": fault.CutAnswer}
	claim := func(d document) *put { return &put{Claim: &d.Metadata} }
	writes := map[string]func(shown []document) request{
		"first store": func([]document) request { return request{Action: store, Puts: []put{{Entity: 2}}} },
		"update":      func(shown []document) request { return request{Action: store, Puts: []put{*claim(shown[0])}} },
		"several": func(shown []document) request {
			second := claim(shown[1])
			second.Entity = 1
			return request{Action: store, Puts: []put{*claim(shown[0]), *second, {Entity: 2}}}
		},
		"record":          func([]document) request { return request{Action: record} },
		"record with key": func([]document) request { return request{Action: record, Keyed: true} },
	}
	outcomes := make(map[outcome]int)
	games, begin := 0, rand.Int64N(3)
	for about, write := range writes {
		for where, cut := range cuts {
			for n := range int64(everyMessage) {
				if !env.InProof() && (n+begin)%3 != 0 {
					continue // another third each time
				}
				name := fmt.Sprintf("%s cut %s message %d", about, where, n+1)
				g := newGame(target, fmt.Sprintf("cut-%d", games), 3)
				g.hasty = false
				games++
				out, err := g.cutWrite(proxy, write, cut, n)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				outcomes[out]++
			}
		}
	}
	t.Logf("the writes: %v", outcomes)
	if outcomes[unclear] == 0 || outcomes[done] == 0 {
		t.Error("want both clear and unclear answers")
	}
}

// cutWrite makes two entities, cuts one write, and checks the outcome.
func (g *game) cutWrite(proxy *fault.Proxy, write func([]document) request, cut fault.Cut, n int64) (outcome, error) {
	ctx := context.Background()
	ready, err := g.do(ctx, 1, request{Action: store, User: "u1", Marker: "x", Puts: []put{{}, {Entity: 1}}})
	if err != nil || ready.Outcome != done {
		return "", fmt.Errorf("make the entities: %v, %w", ready, err)
	}
	in := write(ready.Documents)
	in.User, in.Marker = "u1", "y"
	var seen atomic.Int64
	proxy.OnClientMessage(func([]byte) fault.Cut {
		if seen.Add(1) == n+1 {
			return cut
		}
		return fault.NoCut
	})
	out, err := g.do(ctx, 1, in)
	proxy.OnClientMessage(nil)
	if err != nil {
		return "", err
	}
	if _, err := g.final(ctx); err != nil {
		return "", err
	}
	return out.Outcome, check(g.history, len(g.refs), "")
}
