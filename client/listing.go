package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"oda"
)

// List returns the identifiers that match, oldest first, as they arrive; it
// never holds all of them. The sequence ends after an error, and is then
// incomplete.
//
// If the query has no limit, there is a single answer, which is streamed and shows
// the archive at one moment. Otherwise List requests pages of so many identifiers,
// one after the other, and repeats a request that fails.
func (c *Client) List(ctx context.Context, query oda.Query) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for values := url.Values(query.Params()); values != nil; {
			r, err := c.do(ctx, request{
				method: http.MethodGet, path: api + "/" + query.Kind.Collection() + "?" + values.Encode(),
				repeatable: true, stream: query.Limit == 0,
			})
			stopped := false
			if err == nil {
				stopped, err = identifiers(r, func(id string) bool { return yield(id, nil) })
			}
			if err == nil && !stopped {
				values, err = next(r, values)
			}
			if err != nil {
				yield("", err)
			}
			if err != nil || stopped {
				return
			}
		}
	}
}

// identifiers yields the identifiers of a reply until the caller stops.
func identifiers(r *reply, yield func(string) bool) (stopped bool, err error) {
	var body io.Reader = bytes.NewReader(r.body)
	if r.stream != nil {
		defer r.stream.Close()
		body = r.stream
	}
	list := &list{r, json.NewDecoder(body)}
	if err := list.expect(json.Delim('[')); err != nil {
		return false, err
	}
	for list.decoder.More() {
		var id string
		if err := list.decoder.Decode(&id); err != nil {
			return false, list.broken(err)
		}
		if !yield(id) {
			return true, nil
		}
	}
	if err := list.expect(json.Delim(']')); err != nil {
		return false, err
	}
	// Reading to the end lets the connection be reused.
	if token, err := list.decoder.Token(); err == nil {
		return false, garbled(r, fmt.Errorf("%v follows the list", token))
	} else if !errors.Is(err, io.EOF) {
		return false, list.broken(err)
	}
	return false, nil
}

// list is a listing that is being received.
type list struct {
	reply   *reply
	decoder *json.Decoder
}

func (l *list) expect(delim json.Delim) error {
	token, err := l.decoder.Token()
	if err != nil {
		return l.broken(err)
	}
	if token != delim {
		return garbled(l.reply, fmt.Errorf("it has %v where %v should be", token, delim))
	}
	return nil
}

// broken distinguishes a listing that is wrong from one that was cut off.
func (l *list) broken(err error) error {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, wrongType := errors.AsType[*json.UnmarshalTypeError](err)
	if syntax || wrongType || l.reply.stream == nil {
		return garbled(l.reply, err)
	}
	return fmt.Errorf("%w: the listing was cut off: %w", ErrNoAnswer, err)
}

// next returns the query of the next page, or nil if there is none. Only the
// query of the link counts; its path is the collection that was asked for.
func next(r *reply, asked url.Values) (url.Values, error) {
	values, err := linked(r.header)
	if values == nil && err == nil {
		return nil, nil
	}
	if err != nil {
		return nil, garbled(r, errors.New("its link to the next page cannot be read"))
	}
	if cursor := values.Get("cursor"); cursor == "" || cursor == asked.Get("cursor") {
		return nil, garbled(r, errors.New("its link does not lead to a next page"))
	}
	return values, nil
}

// linked returns the query of the link in an answer, nil if it has none.
func linked(header http.Header) (url.Values, error) {
	link := header.Get("Link")
	if link == "" {
		return nil, nil
	}
	_, link, _ = strings.Cut(link, "<")
	link, _, _ = strings.Cut(link, ">")
	place, err := url.Parse(link)
	if err != nil {
		return nil, err
	}
	return place.Query(), nil
}
