package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"oda"
)

// game is a few entities and the history of what players do with them.
type game struct {
	target  Target
	refs    []oda.Ref // the first is an ExecutionBlock
	started time.Time
	hasty   bool // clients sometimes do not wait for an answer

	mu      sync.Mutex
	history []operation
}

// newGame returns a game with entities that do not exist yet.
func newGame(target Target, name string, entities int) *game {
	refs := []oda.Ref{
		{Kind: oda.ExecutionBlock, ID: "eb-" + name},
		{Kind: oda.SBDefinition, ID: "sbd-" + name},
		{Kind: oda.Project, ID: "prj-" + name},
	}
	return &game{target: target, refs: refs[:entities], started: time.Now(), hasty: true}
}

func (g *game) now() int64 { return int64(time.Since(g.started)) }

func (g *game) note(op operation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.history = append(g.history, op)
}

// Bounds of a client's waits, and of its retries after an unclear answer.
const (
	keyedTries = 20
	pause      = 20 * time.Millisecond
	haste      = 5 * time.Millisecond
	hastyIn    = 60 // one in this many requests is given up early
	finalTime  = 60 * time.Second
)

// do sends a request and notes it. With a key it is sent again until the answer
// is clear, and counts as one operation, as a key promises.
func (g *game) do(ctx context.Context, client int, in request) (response, error) {
	call := g.now()
	tries := 1
	if in.Keyed {
		tries = keyedTries
	}
	var out response
	var err error
	lost := false
	for range tries {
		if out, err = g.ask(ctx, in); err != nil || out.Outcome != unclear {
			break
		}
		lost = true
		time.Sleep(rand.N(pause))
	}
	if err != nil || lost && out.Outcome != done {
		// One of the earlier tries may still take effect.
		out = response{Outcome: unclear}
	}
	g.note(operation{Client: client, Call: call, Return: g.now(), Request: in, Response: out})
	return out, err
}

// ask sends the request once.
func (g *game) ask(ctx context.Context, in request) (response, error) {
	if g.hasty && rand.N(hastyIn) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rand.N(haste))
		defer cancel()
	}
	w := g.wire(in)
	if w.header == nil {
		w.header = map[string]string{}
	}
	w.header["X-Forwarded-User"] = in.User
	a, err := g.target.send(ctx, w)
	if err != nil && ctx.Err() != nil {
		return response{Outcome: unclear}, nil // given up before it was sent
	}
	if err != nil {
		return response{}, err
	}
	out, err := g.decode(in, a)
	if err != nil {
		return response{}, fmt.Errorf("%s %s: %w", w.method, w.path, err)
	}
	return out, nil
}

// wire encodes a request.
func (g *game) wire(in request) wire {
	ref := g.refs[in.Entity]
	switch {
	case in.Action == read:
		return wire{method: http.MethodGet, path: path(ref)}
	case in.Action == record || in.Action == repeat:
		w := wire{method: http.MethodPost, path: path(ref) + "/request_response", body: marshal(wireRecord{in.Marker})}
		if rand.N(2) == 0 {
			w.method = http.MethodPatch
		}
		if in.Keyed || in.Action == repeat {
			w.header = map[string]string{"Idempotency-Key": in.Marker}
		}
		return w
	case len(in.Puts) > 1:
		body := make(map[string][]wireDocument)
		for _, p := range in.Puts {
			ref := g.refs[p.Entity]
			name := ref.Kind.Collection()
			body[name] = append(body[name], p.encode(ref, in.Marker))
		}
		return wire{method: http.MethodPut, path: "/", body: marshal(body)}
	}
	p := in.Puts[0]
	ref = g.refs[p.Entity]
	w := wire{method: http.MethodPut, path: path(ref), body: marshal(p.encode(ref, in.Marker)), header: map[string]string{}}
	if p.Keep {
		w.path += "?records=keep"
	}
	if p.Match != "" {
		w.header["If-Match"] = `"` + p.Match + `"`
	}
	if p.CreateOnly {
		w.header["If-None-Match"] = "*"
	}
	return w
}

func path(ref oda.Ref) string { return "/" + ref.Kind.Collection() + "/" + ref.ID }

// decode decodes an answer.
func (g *game) decode(in request, a answer) (out response, err error) {
	refs := make([]oda.Ref, len(in.Puts))
	for i, p := range in.Puts {
		refs[i] = g.refs[p.Entity]
	}
	several := len(refs) > 1
	switch a.status {
	case 0:
		out.Outcome = unclear
	case http.StatusNotFound:
		out.Outcome = missing
	case http.StatusPreconditionFailed:
		out.Outcome = condition
	case http.StatusUnprocessableEntity:
		out.Outcome = mismatch
		at := []string{""}
		if several {
			at = places(refs)
		}
		out.Faults, err = decodeFaults(a.body, at)
	default:
		out.Outcome = done
		switch {
		case in.Action == record || in.Action == repeat:
			out.Recorded, err = decodeRecorded(a.body)
		case several:
			out.Documents, err = decodeSeveral(a.body, refs)
		default:
			out.Documents, err = decodeDocument(a.body)
		}
	}
	return out, err
}

// final reads every entity once more, until the answer is clear.
func (g *game) final(ctx context.Context) ([]response, error) {
	ctx, cancel := context.WithTimeout(ctx, finalTime)
	defer cancel()
	finals := make([]response, len(g.refs))
	for i := range g.refs {
		finals[i].Outcome = unclear
		for finals[i].Outcome == unclear {
			var err error
			finals[i], err = g.do(ctx, judge, request{Action: read, User: "judge", Entity: i})
			if err != nil {
				return nil, err
			}
			if ctx.Err() != nil {
				return nil, fmt.Errorf("could not read %s at the end: no clear answer in %v", g.refs[i].ID, finalTime)
			}
		}
	}
	return finals, nil
}

// judge is the client that reads at the end; players count from 1.
const judge = 0
