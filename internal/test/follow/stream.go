package follow

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"oda"
)

// readStream reads Server-Sent Events until the stream ends.
func (f *follower) readStream(ctx context.Context) error {
	query, header := url.Values{}, http.Header{"Accept": {"text/event-stream"}}
	// A program asks after its position; a browser sends the last event that it
	// has seen, and goes on asking after the position that it began with.
	if rand.N(2) == 0 {
		query.Set("after", text(f.at))
	} else {
		query.Set("after", text(f.start))
		header.Set("Last-Event-ID", text(f.at))
	}
	if rand.N(2) == 0 { // else the transport asks for gzip
		header.Set("Accept-Encoding", "identity")
	}
	listening, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer silent.Stop()
	response, err := f.ask(listening, query, header)
	if err != nil {
		return quiet(listening, err)
	}
	defer response.Body.Close()
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if response.StatusCode != http.StatusOK || media != "text/event-stream" {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("%s, %s: %s", response.Status, media, body)
	}
	lines := bufio.NewReader(heard{response.Body, silent})
	for {
		changes, err := readEvent(lines)
		if err != nil {
			return quiet(listening, err)
		}
		f.take(changes, changes[len(changes)-1].position)
	}
}

// silence is how long a stream may send nothing. It has a heartbeat every 15 s.
const silence = 30 * time.Second

var errSilent = fmt.Errorf("nothing came for %v, not even a heartbeat", silence)

// heard puts off the end of a silence with every byte.
type heard struct {
	io.Reader
	silent *time.Timer
}

func (h heard) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	h.silent.Reset(silence)
	return n, err
}

// quiet returns the silence if that was the reason for an error.
func quiet(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// readEvent reads the next change of a stream. An event that was cut off does
// not count, as in a browser.
func readEvent(lines *bufio.Reader) ([]step, error) {
	event := map[string]string{}
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errCut, err)
		}
		line = strings.TrimRight(line, "\r\n")
		name, value, _ := strings.Cut(line, ":")
		switch {
		case line == "" && event["data"] != "":
			return decodeEvent(event)
		case line == "": // an event without data is none
			clear(event)
		case name == "" || name == "retry": // a comment, a setting
		case name != "id" && name != "event" && name != "data" || event[name] != "":
			return nil, fmt.Errorf("this does not belong in an event: %q", line)
		default:
			event[name] = strings.TrimPrefix(value, " ")
		}
	}
}

func decodeEvent(event map[string]string) ([]step, error) {
	if event["event"] != "change" {
		return nil, fmt.Errorf("this is not an event with a change: %q", event)
	}
	changes, err := decodeChange([]byte(event["data"]))
	if err != nil {
		return nil, err
	}
	id, err := strconv.ParseInt(event["id"], 10, 64)
	if last := changes[len(changes)-1].position; err != nil || oda.Position(id) != last {
		return nil, fmt.Errorf("the event's id is %q, its position %d", event["id"], last)
	}
	return changes, nil
}
