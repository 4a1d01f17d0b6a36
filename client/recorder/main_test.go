package recorder_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oda"
	"oda/client"
	"oda/client/recorder"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// childVariable turns the test binary into a script that records: it names the
// archive, the spool and how the script behaves.
const childVariable = "RECORDER_TEST_CHILD"

func TestMain(m *testing.M) {
	if arguments := os.Getenv(childVariable); arguments != "" {
		script(strings.Split(arguments, "|"))
		return
	}
	syscall.Umask(0o022) // spools are folders that the tests make
	os.Exit(env.Main(m))
}

// patience bounds every wait of a test. The machine may be busy.
const patience = 2 * time.Minute

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// away returns the address of an archive that is unavailable.
func away(t testing.TB) string {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	// The port stays taken, so that nobody else answers there; connections are
	// cut.
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

// clientOf returns a client that closes its connections after the test.
func clientOf(t testing.TB, address string, options ...client.Option) *client.Client {
	t.Helper()
	c := must.Get(client.New(address, options...))(t)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// connect returns a client whose requests are checked against the API
// description.
func connect(t testing.TB, archive *env.Archive) *client.Client {
	t.Helper()
	return clientOf(t, archive.URL(), client.WithHTTPClient(archive.Client()))
}

// opened returns a recorder of a new block, and its log.
func opened(t testing.TB, archive *client.Client, options recorder.Options) (*recorder.Recorder, *env.Journal) {
	t.Helper()
	log := &env.Journal{}
	if options.Logger == nil {
		options.Logger = log.Logger()
	}
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	rec := must.Get(recorder.Open(patient(t), archive, options))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = rec.Close(ctx) // if the test did not close it
	})
	return rec, log
}

// numbered returns a call that is recognised by its number.
func numbered(n int) recorder.Call {
	return recorder.Call{
		Request: "functions.scan", RequestArgs: map[string]any{"n": n}, Status: "OK",
		Response: map[string]any{"result": "a result of some length, as they are"},
	}
}

// recordNumbers records the numbers from first to last.
func recordNumbers(t testing.TB, rec *recorder.Recorder, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		if err := rec.Record(numbered(n)); err != nil {
			t.Fatalf("record %d: %v", n, err)
		}
	}
}

// recordsOf returns the records of a block, in order.
func recordsOf(t testing.TB, archive *client.Client, block string) []oda.Record {
	t.Helper()
	var all []oda.Record
	for r, err := range archive.Records(patient(t), block, 0) {
		must.Do(t, err)
		all = append(all, r)
	}
	return all
}

// stored returns the numbers of the records of a block, in order.
func stored(t testing.TB, archive *client.Client, block string) []int {
	t.Helper()
	var numbers []int
	for _, r := range recordsOf(t, archive, block) {
		numbers = append(numbers, numberOf(t, r))
	}
	return numbers
}

func numberOf(t testing.TB, r oda.Record) int {
	t.Helper()
	var in struct {
		Args struct {
			N int `json:"n"`
		} `json:"request_args"`
	}
	if err := json.Unmarshal(r.Text, &in); err != nil {
		t.Fatalf("%v: %s", err, r.Text)
	}
	return in.Args.N
}

// wantNumbers checks that a block has the numbers from 1 to last, each once and
// in order.
func wantNumbers(t testing.TB, archive *client.Client, block string, last int) {
	t.Helper()
	got := stored(t, archive, block)
	for i, n := range got {
		if n != i+1 {
			t.Fatalf("record %d of %d is number %d", i+1, len(got), n)
		}
	}
	if len(got) != last {
		t.Fatalf("there are %d records, want %d", len(got), last)
	}
}

// sessionsIn returns the folders of the sessions in a spool.
func sessionsIn(t testing.TB, dir string) []string {
	t.Helper()
	found := must.Get(filepath.Glob(filepath.Join(dir, "*")))(t)
	return found
}

// wantSent checks that a spool has no sessions, so that everything was sent.
func wantSent(t testing.TB, dir string) {
	t.Helper()
	if left := sessionsIn(t, dir); len(left) > 0 {
		t.Errorf("sessions left: %v", left)
	}
}

func closeRecorder(t testing.TB, rec *recorder.Recorder) {
	t.Helper()
	must.Do(t, rec.Close(patient(t)))
}

// leave closes a recorder whose archive is unavailable, and leaves its records
// in the spool.
func leave(t testing.TB, rec *recorder.Recorder) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := rec.Close(ctx); err == nil {
		t.Fatal("nothing was left in the spool")
	}
}

// relay is a network between a recorder and an archive. Its address stays the
// same, whatever happens to the archive.
type relay struct {
	listener net.Listener
	mu       sync.Mutex
	target   string // empty if there is no archive
	swallow  int    // answers still to be cut off
	delay    time.Duration
	upload   int // bytes per second towards the archive; 0 is unlimited
	lost     int
	open     map[net.Conn]bool
}

func newRelay(t testing.TB) *relay {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	r := &relay{listener: listener, open: make(map[net.Conn]bool)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { r.carry(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		r.point("")
		running.Wait()
	})
	return r
}

// unconnected returns a network without an archive, and a client that sends through it.
func unconnected(t testing.TB) (*relay, *client.Client) {
	t.Helper()
	network := newRelay(t)
	return network, clientOf(t, network.address())
}

func (r *relay) address() string { return r.listener.Addr().String() }

// point connects to another archive, or to none, and ends all connections.
func (r *relay) point(target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
	for conn := range r.open {
		_ = conn.Close()
	}
}

// lose cuts the connection in the middle of the next answers.
func (r *relay) lose(answers int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.swallow, r.lost = answers, 0
}

func (r *relay) answersLost() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

func (r *relay) slow(delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay = delay
}

// narrow limits the bytes per second towards the archive.
func (r *relay) narrow(rate int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.upload = rate
}

// send copies data to the archive, as fast as the link allows.
func (r *relay) send(far io.Writer, near io.Reader) {
	buffer := make([]byte, 2<<10)
	for {
		n, err := near.Read(buffer)
		r.mu.Lock()
		rate := r.upload
		r.mu.Unlock()
		if rate > 0 {
			time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
		}
		if _, failed := far.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

func (r *relay) carry(near net.Conn) {
	defer near.Close()
	r.mu.Lock()
	target := r.target
	r.mu.Unlock()
	far, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer far.Close()
	r.mu.Lock()
	same := r.target == target
	r.open[near], r.open[far] = true, true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, near)
		delete(r.open, far)
	}()
	if !same {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		defer near.Close()
		buffer := make([]byte, 32<<10)
		for {
			n, err := far.Read(buffer)
			if err != nil {
				return
			}
			r.mu.Lock()
			cut, delay := r.swallow > 0, r.delay
			if cut {
				r.swallow--
				r.lost++
			}
			r.mu.Unlock()
			time.Sleep(delay)
			if cut {
				_, _ = near.Write(buffer[:n/2])
				return
			}
			if _, err := near.Write(buffer[:n]); err != nil {
				return
			}
		}
	})
	r.send(far, near)
	_ = far.Close()
	back.Wait()
}

// texts returns the texts of records.
func texts(records []oda.Record) []string {
	out := make([]string, len(records))
	for i, r := range records {
		out[i] = string(r.Text)
	}
	return out
}
