package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"time"

	"oda"
)

// NewStatus is a status to be said of an entity.
type NewStatus struct {
	Status  string
	Class   oda.Class // NoClass: by the words
	Reason  string
	At      time.Time // zero: now
	Version int64     // that is meant; 0: the current one

	// Previous is the status that must be the current one, empty if there must be
	// none. With nil, nothing is checked.
	Previous *string

	// Key makes it safe to say the same again. If it is empty, the call makes one for
	// its own retries.
	Key string
}

// Say says what came of an entity. Unknown: oda.NotFound. If the current status is
// not Previous, the error is oda.StatusMismatch; if the entity does not have the version,
// oda.UnknownVersion.
func (c *Client) Say(ctx context.Context, ref oda.Ref, say NewStatus) (oda.Status, error) {
	body, err := say.body()
	if err != nil {
		return oda.Status{}, err
	}
	return c.say(ctx, ref, say.Key, body)
}

// SendStatus is Say with a body that was written before, which is sent byte for byte.
func (c *Client) SendStatus(ctx context.Context, ref oda.Ref, key string, body []byte) error {
	_, err := c.say(ctx, ref, key, body)
	return err
}

func (c *Client) say(ctx context.Context, ref oda.Ref, key string, body []byte) (oda.Status, error) {
	r, err := c.write(ctx, http.MethodPost, statusPath(ref), body, key)
	if err != nil {
		return oda.Status{}, err
	}
	said, err := statusIn(r)
	if err == nil && (said.Ref != ref || said.Sequence < 1) {
		err = garbled(r, errors.New("it is no status of that entity"))
	}
	return said, err
}

func (n *NewStatus) body() ([]byte, error) {
	out := struct {
		Status   string          `json:"status"`
		Class    oda.Class       `json:"class,omitzero"`
		Reason   string          `json:"reason,omitempty"`
		At       time.Time       `json:"at,omitzero"`
		Version  int64           `json:"version,omitempty"`
		Previous json.RawMessage `json:"previous,omitempty"`
	}{n.Status, n.Class, n.Reason, n.At.UTC(), n.Version, nil}
	if n.Previous != nil && *n.Previous == "" {
		out.Previous = json.RawMessage("null")
	} else if n.Previous != nil {
		var err error
		if out.Previous, err = json.Marshal(*n.Previous); err != nil {
			return nil, err
		}
	}
	return json.Marshal(out)
}

// Status returns the current status of an entity. As long as nobody has said one, its
// Sequence is 0, and its Text what the document has as its status, if it has one. Current
// is not told. Unknown: oda.NotFound.
func (c *Client) Status(ctx context.Context, ref oda.Ref) (oda.Status, error) {
	r, err := c.read(ctx, statusPath(ref), nil)
	if err != nil {
		return oda.Status{}, err
	}
	return statusIn(r)
}

// Statuses returns what was said of an entity, newest first. It reads page by page while
// the caller continues, and ends after an error. Unknown: oda.NotFound.
func (c *Client) Statuses(ctx context.Context, ref oda.Ref) iter.Seq2[oda.Status, error] {
	return newestFirst(oda.MaxStatuses, func(values url.Values) ([]oda.Status, *reply, error) {
		var in struct {
			Statuses []statusEntry `json:"statuses"`
		}
		r, err := c.readJSON(ctx, statusPath(ref)+"/history?"+values.Encode(), &in)
		if err != nil {
			return nil, nil, err
		}
		page := make([]oda.Status, len(in.Statuses))
		for i := range in.Statuses {
			page[i] = in.Statuses[i].status()
		}
		return page, r, nil
	})
}

func statusPath(ref oda.Ref) string { return path(ref.Kind, ref.ID) + "/status" }

func statusIn(r *reply) (oda.Status, error) {
	var in statusEntry
	if err := json.Unmarshal(r.body, &in); err != nil {
		return oda.Status{}, garbled(r, err)
	}
	return in.status(), nil
}

// statusEntry is an entry of the statuses of an entity on the wire.
type statusEntry struct {
	oda.Ref
	Sequence int64      `json:"sequence"`
	Status   string     `json:"status"`
	Class    oda.Class  `json:"class"`
	Reason   string     `json:"reason"`
	At       oda.Moment `json:"at"`
	Version  int64      `json:"version"`
	Previous string     `json:"previous"`
	By       string     `json:"by"`
	On       oda.Moment `json:"on"`
}

func (s *statusEntry) status() oda.Status {
	return oda.Status{
		Ref: s.Ref, Sequence: s.Sequence, Text: s.Status, Class: s.Class, Reason: s.Reason, At: oda.Instant(s.At),
		Version: s.Version, Previous: s.Previous, By: s.By, On: oda.Instant(s.On),
	}
}
