package env

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"oda/internal/test/must"
)

// Event is an event or a comment of a stream, or another note such as retry.
type Event struct {
	ID, Name, Data string
	Comment        string
	Retry          string
}

// Events is a stream of Server-Sent Events.
type Events struct {
	Response *http.Response
	lines    *bufio.Reader
	close    context.CancelFunc
}

// Events asks for a stream on a connection of its own. The stream ends with the test
// at the latest. It is not checked against the API description, because it has no
// end.
func (a *Archive) Events(path string, headers ...string) *Events {
	a.tb.Helper()
	e := must.Get(Follow(a.tb, a.URL()+path, headers...))(a.tb)
	if e.Response.StatusCode != http.StatusOK {
		a.tb.Fatalf("the stream answers %s", e.Response.Status)
	}
	return e
}

// Follow asks for a stream at a URL.
func Follow(tb testing.TB, url string, headers ...string) (*Events, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	tb.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	return &Events{response, bufio.NewReader(response.Body), cancel}, nil
}

// Close closes the connection.
func (e *Events) Close() { e.close() }

// Next waits for the next event, comment or note.
func (e *Events) Next() (Event, error) {
	var event Event
	var data []string
	for {
		line, err := e.lines.ReadString('\n')
		if err != nil {
			return Event{}, err
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, found := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			event.Data = strings.Join(data, "\n")
			return event, nil
		case !found:
			return Event{}, fmt.Errorf("the stream has the line %q", line)
		case name == "":
			event.Comment = value
		case name == "id":
			event.ID = value
		case name == "event":
			event.Name = value
		case name == "data":
			data = append(data, value)
		case name == "retry":
			event.Retry = value
		}
	}
}

// Data waits for the next event and returns its data.
func (e *Events) Data() (Event, error) {
	for {
		if event, err := e.Next(); err != nil || event.Data != "" {
			return event, err
		}
	}
}
