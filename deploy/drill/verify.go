package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5"

	"oda/internal/test/history"
)

// verify reads everything back: blocks through both servers, and versions from
// the tables of the leader.
func (l *load) verify(ctx context.Context, leader *node) (history.Verdict, error) {
	var v history.Verdict
	for _, id := range l.blocks {
		var found [serverCount][]string
		for server := range l.servers {
			a := l.send(ctx, server, http.MethodGet, "/ebs/"+id, "", nil)
			var block struct {
				Records []struct{ Request string } `json:"request_responses"`
			}
			if err := json.Unmarshal(a.body, &block); err != nil || a.status != http.StatusOK {
				return v, fmt.Errorf("read %s back: status %d", id, a.status)
			}
			for _, r := range block.Records {
				found[server] = append(found[server], r.Request)
			}
		}
		if !slices.Equal(found[0], found[1]) {
			return v, fmt.Errorf("the servers disagree on %s", id)
		}
		v.Add(l.tally.writes(id).Judge(id, found[0]))
	}
	conn, err := pgx.Connect(ctx, leader.dsn("oda"))
	if err != nil {
		return v, err
	}
	defer conn.Close(ctx)
	for chain := range chains {
		id := chainID(chain)
		// version - row_number() is not 0 if an earlier version is missing.
		rows, err := conn.Query(ctx, `SELECT substring(convert_from(text, 'UTF8') FROM '"mark": *"([^"]*)"'), version - row_number() OVER (ORDER BY version)
			FROM versions WHERE kind = 1 AND identifier = $1 ORDER BY version`, id)
		if err != nil {
			return v, err
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
			return v, fmt.Errorf("read the versions of %s back: %w", id, err)
		}
		current := l.read(ctx, 0, chain)
		if current == nil || len(found) == 0 || current.Mark != found[len(found)-1] {
			return v, fmt.Errorf("the current version of %s is not the newest one", id)
		}
		v.Add(l.tally.writes(id).Judge(id, found))
	}
	return v, nil
}
