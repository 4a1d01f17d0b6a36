package moving

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"oda"
)

// Bounds of an answer with statuses. None takes more than a few times its longest reason.
const (
	remoteStatuses    = "100"
	remoteStatusBytes = 4 << 20
)

// hasStatuses reports whether the archive has statuses of entities. Only if it knows nothing
// of the kind, so that a bad answer is not taken for an entity without a status.
func (r *remote) hasStatuses(ctx context.Context, kind oda.Kind, ids []string) (bool, error) {
	for _, id := range ids[:min(len(ids), 3)] {
		_, _, err := r.statusPage(ctx, oda.Ref{Kind: kind, ID: id}, "")
		refused, answered := errors.AsType[*refusedError](err)
		switch {
		case err != nil && (!answered || refused.always()):
			return false, err
		case err == nil || refused.status != http.StatusNotFound:
			return true, nil
		}
	}
	return false, nil
}

// statuses returns the statuses of an entity, oldest first.
func (r *remote) statuses(ctx context.Context, ref oda.Ref) (all []said, err error) {
	for cursor := ""; ; {
		var page []said
		if page, cursor, err = r.statusPage(ctx, ref, cursor); err != nil {
			return nil, err
		}
		all = append(all, page...)
		if cursor == "" {
			slices.Reverse(all)
			return all, nil
		}
	}
}

// statusPage returns some statuses of an entity, newest first, and the cursor of the next
// ones.
func (r *remote) statusPage(ctx context.Context, ref oda.Ref, cursor string) (page []said, next string, err error) {
	path := entityPath(ref) + "/status/history"
	query := url.Values{"limit": {remoteStatuses}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	text, err := r.read(ctx, path+"?"+query.Encode(), remoteStatusBytes)
	if err != nil {
		return nil, "", err
	}
	var answer struct {
		Statuses []json.RawMessage
		Next     string
	}
	if json.Unmarshal(text, &answer) != nil || answer.Statuses == nil || len(answer.Statuses) == 0 && answer.Next != "" {
		return nil, "", &refusedError{http.StatusOK, "no list of statuses", text}
	}
	for _, one := range answer.Statuses {
		var entry struct {
			Sequence, Version            int64
			Status, Reason, Previous, By string
			Class                        oda.Class
			At, On                       oda.Moment
		}
		if json.Unmarshal(one, &entry) != nil || entry.Sequence < 1 {
			return nil, "", &refusedError{http.StatusOK, "something that is not a status", text}
		}
		page = append(page, said{
			Origin: Origin{File: r.shown(path)}, text: one,
			Status: oda.Status{
				Ref: ref, Sequence: entry.Sequence, Text: entry.Status, Class: entry.Class, Reason: entry.Reason, At: oda.Instant(entry.At),
				Version: entry.Version, Previous: entry.Previous, By: entry.By, On: oda.Instant(entry.On),
			},
		})
	}
	return page, answer.Next, nil
}
