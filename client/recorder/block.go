package recorder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"oda"
	"oda/client"
	"oda/internal/rawjson"
)

// create stores the block of a session that was begun without the archive. If
// the identifier is already in use, either an earlier try was stored and its
// answer lost, or another block has the identifier; the document tells which.
func (p *shipper) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	document := p.s.block.toCreate()
	_, err := p.archive.Store(ctx, oda.ExecutionBlock, p.s.block.Block, document, client.CreateOnly())
	if oda.CodeOf(err) == oda.Precondition {
		stored, err := p.archive.Get(ctx, oda.ExecutionBlock, p.s.block.Block)
		if err != nil {
			return stuckIfRefused(err)
		}
		if !holds(stored.Body, document) {
			return &stuckError{fmt.Errorf("another block already has the identifier %s, which was made for this one", p.s.block.Block)}
		}
	} else if isRefused(err) {
		return &stuckError{fmt.Errorf("the archive refuses the block itself: %w", err)}
	} else if err != nil {
		return stuckIfRefused(err)
	}
	p.created = true
	p.settled(p.at, tally{})
	if err := storePosition(p.s.in, p.at); err != nil {
		p.log.Warn("cannot note that the archive has the block; it will be asked again", "error", err)
	}
	return nil
}

// holds reports whether a stored block has the members of a document, apart
// from those that the archive writes. Numbers are compared by value, since
// another program may spell them differently.
func holds(stored, document []byte) bool {
	var have, want map[string]any
	if json.Unmarshal(stored, &have) != nil || json.Unmarshal(document, &want) != nil {
		return false
	}
	for name, value := range want {
		if name == "metadata" || name == "request_responses" {
			continue
		}
		if other, there := have[name]; !there || !reflect.DeepEqual(value, other) {
			return false
		}
	}
	return true
}

// bareDocument returns the document of a new block without the members that the
// archive writes. The rest stays as it was given.
func bareDocument(document []byte) ([]byte, error) {
	if len(bytes.TrimSpace(document)) == 0 {
		return []byte("{}"), nil
	}
	if !json.Valid(document) {
		return nil, fmt.Errorf("the document of a new block is not JSON: %w", oda.CheckJSON(document))
	}
	if bytes.TrimSpace(document)[0] != '{' {
		return nil, errors.New("the document of a new block must be a JSON object")
	}
	out := []byte{'{'}
	decoder := json.NewDecoder(bytes.NewReader(document))
	_, _ = decoder.Token() // it is an object
	for decoder.More() {
		name, _ := decoder.Token() // it is well-formed
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, fmt.Errorf("read the document: %w", err)
		}
		switch name {
		case "request_responses":
			var records []json.RawMessage
			if json.Unmarshal(value, &records) != nil || len(records) > 0 {
				return nil, errors.New("the document of a new block has records; record them one by one")
			}
			continue
		case oda.ExecutionBlock.IDField(), "metadata":
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		text, err := rawjson.Marshal(name)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, text...), ':'), value...)
	}
	return append(out, '}'), nil
}
