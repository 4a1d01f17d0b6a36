package skuid

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oda"
	"oda/internal/test/must"
)

func TestTheClientUnderstandsTheRealService(t *testing.T) {
	for about, c := range map[string]child{
		"encoded once":  {Generator: 7},
		"encoded twice": {Generator: 7, Twice: true},
	} {
		t.Run(about, func(t *testing.T) {
			client := newClient(t, startProcess(t, c).addr, nil)
			for _, kind := range oda.Kinds {
				id := must.Get(client.Mint(context.Background(), kind))(t)
				prefix, at, generator, _ := parse(t, id)
				if prefix != kind.Prefix() || generator != 7 || time.Since(at).Abs() > time.Minute {
					t.Errorf("%s: got %s", kind, id)
				}
			}
		})
	}
}

func TestOlderTypesAreServedAndUnknownOnesAreNot(t *testing.T) {
	address := startProcess(t, child{}).addr
	id, err := newClient(t, address, map[oda.Kind]string{oda.Project: "opj"}).Mint(context.Background(), oda.Project)
	if err != nil || !strings.HasPrefix(id, "opj-") {
		t.Errorf("got %q, %v", id, err)
	}
	id, err = newClient(t, address, map[oda.Kind]string{oda.Project: "project"}).Mint(context.Background(), oda.Project)
	checkProblem(t, id, err, "does not know that type")
}

func TestMintFailsWhileTheServiceHangs(t *testing.T) {
	p := startProcess(t, child{})
	client := newClient(t, p.addr, nil)
	client.TryTimeout = 100 * time.Millisecond
	must.Get(client.Mint(context.Background(), oda.SBDefinition))(t)
	p.signal(t, syscall.SIGSTOP)
	// The signal takes effect a moment after it is sent.
	var id string
	var err error
	var begin time.Time
	for patience := time.Now().Add(10 * time.Second); err == nil && time.Now().Before(patience); {
		begin = time.Now()
		id, err = client.Mint(context.Background(), oda.SBDefinition)
	}
	if took := time.Since(begin); took >= client.Timeout {
		t.Errorf("Mint took %s", took)
	}
	checkProblem(t, id, err, "did not answer")
	p.signal(t, syscall.SIGCONT)
	client.TryTimeout = 2 * time.Second
	if _, err := client.Mint(context.Background(), oda.SBDefinition); err != nil {
		t.Error(err)
	}
}

func TestTheServiceStopsGracefully(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	p := startProcess(t, child{StateFile: state})
	client := newClient(t, p.addr, nil)
	id := must.Get(client.Mint(context.Background(), oda.SBDefinition))(t)
	p.signal(t, syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the service ended with %v: %s", err, p.cmd.Stderr)
	}
	_, at, _, _ := parse(t, id)
	if got := reservation(t, state); got != at.UnixMilli()-epoch {
		t.Errorf("the state says %d, the last identifier %d", got, at.UnixMilli()-epoch)
	}
}

func TestASecondServiceOnTheSameStateFileFails(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	startProcess(t, child{StateFile: state})
	cmd, _ := childCommand(t, child{Listen: "127.0.0.1:0", StateFile: state})
	err := cmd.Run()
	if message := cmd.Stderr.(*strings.Builder).String(); err == nil || !strings.Contains(message, "in use by another process") {
		t.Errorf("got %v: %s", err, message)
	}
}

// Every start sees the same instant on its clock, and the services are killed
// while they answer: without the state file the identifiers would repeat.
func TestKilledServicesRepeatNoIdentifierWhileTheClockStandsStill(t *testing.T) {
	const rounds, perRound = 5, 300
	frozen := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	all := &answerSet{seen: make(map[string]bool)}
	steady := startProcess(t, child{Generator: 3, Frozen: frozen})
	for range rounds {
		first := startProcess(t, child{Generator: 1, StateFile: filepath.Join(dir, "first"), Frozen: frozen})
		second := startProcess(t, child{Generator: 2, StateFile: filepath.Join(dir, "second"), Frozen: frozen})
		enough := make(chan struct{})
		var once sync.Once
		ctx, cancel := context.WithCancel(context.Background())
		var wait sync.WaitGroup
		begin := all.size()
		for _, p := range []*process{first, second, steady} {
			client := newClient(t, p.addr, nil)
			client.Tries = 1
			for range 2 {
				wait.Go(func() {
					for ctx.Err() == nil {
						id, err := client.Mint(ctx, oda.ExecutionBlock)
						if err != nil {
							return
						}
						if all.add(t, id)-begin >= perRound {
							once.Do(func() { close(enough) })
						}
					}
				})
			}
		}
		select {
		case <-enough:
		case <-time.After(20 * time.Second):
			t.Error("the services minted too few identifiers")
		}
		first.kill()
		second.kill()
		cancel()
		wait.Wait()
	}
	byGenerator := make(map[uint64]int)
	for id := range all.seen {
		_, _, generator, _ := parse(t, "eb"+id)
		byGenerator[generator]++
	}
	for generator := uint64(1); generator <= 3; generator++ {
		if byGenerator[generator] == 0 {
			t.Errorf("generator %d minted nothing", generator)
		}
	}
}

// answerSet collects identifiers and fails the test if one is repeated.
type answerSet struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (s *answerSet) add(t *testing.T, id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := strings.TrimPrefix(id, "eb")
	if s.seen[number] {
		t.Errorf("%s was repeated", id)
	}
	s.seen[number] = true
	return len(s.seen)
}

func (s *answerSet) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	must.Do(t, p.cmd.Process.Signal(s))
}
