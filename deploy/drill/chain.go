package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// A chain is an SBDefinition with two writers, one per server, that store
// version after version. Each version has its own mark.

func chainID(chain int) string { return fmt.Sprintf("sbd-drill-%d", chain) }

func chainWriter(chain, writer int) string { return fmt.Sprintf("c%d-w%d", chain, writer) }

// chainMaker is the writer of the first version of a chain.
func chainMaker(chain int) string { return fmt.Sprintf("c%d-first", chain) }

// version is a writer's knowledge of the current version.
type version struct {
	Mark     string          `json:"mark"`
	Metadata json.RawMessage `json:"metadata"`
}

func (v version) number() int64 {
	var metadata struct{ Version int64 }
	if json.Unmarshal(v.Metadata, &metadata) != nil {
		return 0
	}
	return metadata.Version
}

// write reads the current version and stores the next one, over and over.
func (l *load) write(ctx, beginning context.Context, chain, writer int) {
	var current *version
	writes, name := l.tally.writes(chainID(chain)), chainWriter(chain, writer)
	for n := 1; beginning.Err() == nil; n++ {
		end, cancel := context.WithTimeout(ctx, patience)
		if current == nil {
			current = l.read(end, writer, chain)
		}
		if current != nil {
			current = l.writeOne(end, chain, writer, writes.Begin(name, n), *current)
		}
		cancel()
		pause(beginning, writerPace)
	}
}

// watch reads the current version over and over, like a tool that displays it.
func (l *load) watch(beginning context.Context, chain, server int) {
	for beginning.Err() == nil {
		if v := l.read(beginning, server, chain); v != nil {
			l.tally.writes(chainID(chain)).Read(v.Mark, v.number())
		}
		pause(beginning, writerPace)
	}
}

// read gets the current version from any server.
func (l *load) read(ctx context.Context, server, chain int) *version {
	for {
		a := l.send(ctx, server, http.MethodGet, "/sbds/"+chainID(chain), "", nil)
		var v version
		if a.status == http.StatusOK && json.Unmarshal(a.body, &v) == nil {
			return &v
		}
		server = (server + 1) % serverCount
		if !pause(ctx, retryPause) {
			return nil
		}
	}
}

// writeOne stores one version and returns it, or nil if the current one must be
// read. An attempt without an answer is repeated unchanged: if the first was
// stored after all, the metadata no longer matches, and the repetition is
// refused.
func (l *load) writeOne(ctx context.Context, chain, server int, mark string, before version) *version {
	body, err := json.Marshal(version{mark, before.Metadata})
	if err != nil {
		l.tally.done(refused) // cannot happen: what was parsed can be encoded
		return nil
	}
	for uncertain := false; ; uncertain = true {
		a := l.attempt(ctx, server, storing(server), http.MethodPut, "/sbds/"+chainID(chain), "", body)
		var v version
		switch {
		case a.status == http.StatusOK:
			if json.Unmarshal(a.body, &v) != nil {
				l.tally.done(unknown)
				return nil
			}
			l.tally.stored(chainID(chain), mark, v.number())
			return &v
		case a.status >= 400 && a.status < 500 && !uncertain:
			l.tally.done(refused)
			return nil
		case a.status >= 400 && a.status < 500:
			return l.settle(ctx, chain, server, mark, before)
		}
		server = (server + 1) % serverCount
		if !pause(ctx, retryPause) {
			l.tally.done(unknown)
			return nil
		}
	}
}

// settle reads the entity to find out whether an attempt without an answer was
// stored. A document that was read counts as acknowledged. If another writer
// has stored a version since, nobody can tell.
func (l *load) settle(ctx context.Context, chain, server int, mark string, before version) *version {
	v := l.read(ctx, server, chain)
	switch {
	case v != nil && v.Mark == mark:
		l.tally.stored(chainID(chain), mark, v.number())
	case v != nil && v.number() == before.number()+1:
		l.tally.done(refused) // the next version is from another writer
	default:
		l.tally.done(unknown)
	}
	return v
}
