package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5"
)

// verdict is what became of what was acknowledged.
type verdict struct {
	lost, duplicated, vanished, uncounted int
	examples                              []string // the first few faults, in words
}

const mostExamples = 10

func (v *verdict) fault(count *int, format string, args ...any) {
	*count++
	if len(v.examples) < mostExamples {
		v.examples = append(v.examples, fmt.Sprintf(format, args...))
	}
}

// judge compares the writes of an entity that were acknowledged with the marks
// that are found in it, in their order. A mark that stands elsewhere than the
// answer said is lost where it was, and counts as such.
func (v *verdict) judge(entity string, acknowledged []entry, found []string) {
	times := map[string]int{}
	for _, mark := range found {
		times[mark]++
		if times[mark] == 2 {
			v.fault(&v.duplicated, "%s: %s is there more than once", entity, mark)
		}
	}
	known := map[string]bool{}
	for _, e := range acknowledged {
		known[e.mark] = true
		switch {
		case e.place >= 1 && e.place <= int64(len(found)) && found[e.place-1] == e.mark:
		case times[e.mark] == 0:
			v.fault(&v.lost, "%s: %s was acknowledged as number %d and is gone", entity, e.mark, e.place)
		default:
			v.fault(&v.lost, "%s: %s was acknowledged as number %d and stands as number %d", entity, e.mark, e.place,
				slices.Index(found, e.mark)+1)
		}
	}
	for mark := range times {
		if !known[mark] {
			v.uncounted++
		}
	}
}

// reread checks that what readers were shown is still there. A commit that waits
// for a standby must not be seen by anybody.
func (v *verdict) reread(entity string, seen map[entry]bool, found []string) {
	for e := range seen {
		if e.place < 1 || e.place > int64(len(found)) || found[e.place-1] != e.mark {
			v.fault(&v.vanished, "%s: %s was read as number %d and is gone", entity, e.mark, e.place)
		}
	}
}

// verify reads everything back: blocks through both servers, versions from the
// tables of the leader, since the interface gives the current one only.
func (l *load) verify(ctx context.Context, leader *node) (*verdict, error) {
	v := &verdict{}
	for _, id := range l.blocks {
		var found [serverCount][]string
		for server := range l.servers {
			a := l.send(ctx, server, http.MethodGet, "/ebs/"+id, "", nil)
			var block struct {
				Records []struct{ Request string } `json:"request_responses"`
			}
			if err := json.Unmarshal(a.body, &block); err != nil || a.status != http.StatusOK {
				return nil, fmt.Errorf("read %s back: status %d", id, a.status)
			}
			for _, r := range block.Records {
				found[server] = append(found[server], r.Request)
			}
		}
		if !slices.Equal(found[0], found[1]) {
			return nil, fmt.Errorf("the servers disagree on %s", id)
		}
		v.judge(id, l.tally.entries[id], found[0])
	}
	conn, err := pgx.Connect(ctx, leader.dsn("oda"))
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	for chain := range chains {
		id := chainID(chain)
		// version - row_number() is not 0 where one is missing before.
		rows, err := conn.Query(ctx, `SELECT substring(convert_from(text, 'UTF8') FROM '"mark": *"([^"]*)"'), version - row_number() OVER (ORDER BY version)
			FROM versions WHERE kind = 1 AND identifier = $1 ORDER BY version`, id)
		if err != nil {
			return nil, err
		}
		var found []string
		var mark string
		var off int64
		_, err = pgx.ForEachRow(rows, []any{&mark, &off}, func() error {
			if off != 0 {
				return fmt.Errorf("a version of %s before %s is missing", id, mark)
			}
			found = append(found, mark)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the versions of %s back: %w", id, err)
		}
		current := l.read(ctx, 0, chain)
		if current == nil || len(found) == 0 || current.Mark != found[len(found)-1] {
			return nil, fmt.Errorf("the current version of %s is not the newest one", id)
		}
		v.judge(id, append(l.tally.entries[id], entry{chainMark(chain, 0, 0), 1}), found)
		v.reread(id, l.tally.seen[id], found)
	}
	return v, nil
}
