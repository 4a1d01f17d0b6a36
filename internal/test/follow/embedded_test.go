package follow

import (
	"context"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"oda"
	"oda/internal/test/embedded"
	"oda/internal/test/env"
	"oda/internal/test/history"
	"oda/internal/test/must"
)

// The server is killed with SIGKILL, or stopped as an operator does it, and
// started again at another address.
func TestFollowersOfTheEmbeddedEngineMissNothing(t *testing.T) {
	t.Parallel()
	db := "--db=sqlite:" + filepath.Join(t.TempDir(), "archive.db")
	server := env.Oda(t, "serve", db)
	p := start(t, hosts(server), hosts(server))
	restart := func() {
		server = env.Oda(t, "serve", db)
		p.move(hosts(server), hosts(server))
	}
	rounds(t, p, func() {
		server.Kill()
		restart()
	}, func() {
		if code := server.Stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		restart()
	}, func() {
		server.Kill()
		restart()
	})
	nothingMissed(t, p, server.Host(), "unclear")
}

// Where something new is written while the log is read, there is always more to
// read, and followers must get what there is all the same.
func TestAStreamGoesOnWhileTheLogGrows(t *testing.T) {
	t.Parallel()
	api := must.Get(history.Serve(t, endless{embedded.Engine(t)}).URL(t.Context()))(t)
	f := newFollower("stream", api, stream, nil, ignored)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx) }()
	f.reach(ctx, 10, patience)
	cancel()
	if log, _ := f.saw(); len(log) == 0 {
		t.Errorf("the stream had no change in %v", patience)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAPollIsAnsweredWhileTheLogGrows(t *testing.T) {
	t.Parallel()
	api := must.Get(history.Serve(t, endless{embedded.Engine(t)}).URL(t.Context()))(t)
	f := newFollower("polling", api, polling, nil, ignored)
	for _, kind := range []string{"", "&kind=sbds"} {
		query := must.Get(url.ParseQuery("limit=1000" + kind))(t)
		log, next, err := f.page(t.Context(), query, 1000)
		if err != nil || len(log) != 1 || next != 1 {
			t.Errorf("the page%s has %d changes and leads to %d, %v; want the one that there was", kind, len(log), next, err)
		}
	}
}

// ignored is the clock of a follower whose delays nobody looks at.
func ignored() time.Duration { return 0 }

// endless always has one more change when its log is read.
type endless struct{ engine }

func (endless) Changes(_ context.Context, after oda.Position, _ int) ([]oda.Change, oda.Position, error) {
	time.Sleep(5 * time.Millisecond)
	return []oda.Change{{Position: after + 1, Ref: plan, Version: int64(after) + 1, By: "mary", On: 1}}, after + 1, nil
}

func (endless) Await(context.Context, oda.Position) error { return nil }
