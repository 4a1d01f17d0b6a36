package follow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"oda"
	"oda/client"
)

// mode is a way to follow the feed.
type mode string

const (
	polling  mode = "polling"
	longPoll mode = "long poll"
	stream   mode = "stream"
	goClient mode = "Go client" // which resumes by itself
)

// Bounds of a follower.
const (
	pollPause   = 40 * time.Millisecond // the longest pause before the next poll of an end
	resumePause = 50 * time.Millisecond // the longest pause before a cut follower resumes
	longest     = 2                     // seconds of a long poll
)

// follower follows the feed, and resumes where it was whenever it is cut off.
type follower struct {
	name   string
	url    string // of the API
	mode   mode
	filter url.Values
	most   int // changes of a page; chosen for each page
	http   *http.Client
	now    func() time.Duration

	mu      sync.Mutex
	start   oda.Position
	at      oda.Position // asks after this
	log     []step
	ends    []end // the last that it was told of at each position
	resumes int
	grown   chan struct{} // is closed at the next change of the log
}

func newFollower(name, api string, m mode, filter url.Values, now func() time.Duration) *follower {
	return &follower{
		name: name, url: api, mode: m, filter: filter, most: 50, now: now, grown: make(chan struct{}),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2}},
	}
}

// errCut means that the follower got no answer, or was cut off, and resumes.
var errCut = errors.New("cut off")

// run follows until ctx ends. It returns an error if the archive answers what
// it must not.
func (f *follower) run(ctx context.Context) error {
	defer f.http.CloseIdleConnections()
	for ctx.Err() == nil {
		var err error
		switch f.mode {
		case goClient:
			err = f.readClient(ctx)
		case stream:
			err = f.readStream(ctx)
		default:
			err = f.readPage(ctx)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		if !errors.Is(err, errCut) {
			return fmt.Errorf("%s, after position %d: %w", f.name, f.at, err)
		}
		f.mu.Lock()
		f.resumes++
		f.mu.Unlock()
		time.Sleep(rand.N(resumePause))
	}
	return nil
}

// readClient follows with the Go client.
func (f *follower) readClient(ctx context.Context) error {
	c, err := client.New(f.url)
	if err != nil {
		return err
	}
	defer c.CloseIdleConnections()
	for change, err := range c.Follow(ctx, f.at, oda.ChangeFilter{}) {
		if err != nil {
			return err
		}
		f.take(steps(change), change.Position)
	}
	return errors.New("the Go client ended")
}

// ask sends a request for what comes after the follower's position. The caller
// closes the body.
func (f *follower) ask(ctx context.Context, query url.Values, header http.Header) (*http.Response, error) {
	for name, values := range f.filter {
		query[name] = values
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/changes?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	r.Header = header
	response, err := f.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCut, err)
	}
	if response.StatusCode == http.StatusServiceUnavailable {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%w: %s", errCut, response.Status)
	}
	return response, nil
}

// take adds changes to the log.
func (f *follower) take(changes []step, next oda.Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range changes {
		changes[i].seen = f.now()
	}
	f.at = next
	if len(changes) > 0 {
		f.log = append(f.log, changes...)
		close(f.grown)
		f.grown = make(chan struct{})
	}
}

// saw returns the log so far, and a channel that is closed when it grows.
func (f *follower) saw() ([]step, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log, f.grown
}

// readAll reads pages from the follower's position to the end.
func (f *follower) readAll(ctx context.Context) error {
	for {
		before, _ := f.saw()
		err := f.readPage(ctx)
		switch now, _ := f.saw(); {
		case ctx.Err() != nil || err != nil && !errors.Is(err, errCut):
			return errors.Join(ctx.Err(), err)
		case err == nil && len(now) == len(before):
			return nil
		}
	}
}

// reach waits until the follower has come to a position, or the time is over.
func (f *follower) reach(ctx context.Context, position oda.Position, most time.Duration) {
	timeout := time.After(most)
	for {
		log, grown := f.saw()
		if len(log) > 0 && log[len(log)-1].position >= position {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-timeout:
			return
		case <-grown:
		}
	}
}

func text(p oda.Position) string { return strconv.FormatInt(int64(p), 10) }
