package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"oda"
	"oda/internal/test/env"
)

// A busy server may take longer for a write than answerTime. A large write gets time
// for its size; a small one is given up.
func TestALargeWriteHasTimeForItsSize(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s := open(t, dsn)
	stored := mustPut(t, s, write(t, sbd("updated"), `{}`)).Metadata
	do(t, connect(t, dsn), `CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(10.5); RETURN NEW; END $$`,
		`CREATE TRIGGER sleep BEFORE INSERT ON versions FOR EACH ROW WHEN (NEW.identifier NOT LIKE 'quick%') EXECUTE FUNCTION sleep()`)
	long := `"long":"` + strings.Repeat("x", 8<<20) + `"`
	many := []oda.Put{write(t, block("one of many"), `{}`)}
	for i := range 1500 {
		many = append(many, write(t, block(fmt.Sprint("quick", i)), `{"request_responses":[{"request":"one"},{"request":"two"}]}`))
	}
	records := `"request_responses":[` + strings.Repeat(`{"request":"x"},`, 80_000) + `{"request":"y"}]`
	var group sync.WaitGroup
	for name, puts := range map[string][]oda.Put{
		"small":        {write(t, sbd("small"), `{}`)},
		"many":         many,
		"long":         {write(t, sbd("long"), "{"+long+"}")},
		"long update":  {next(t, sbd("updated"), stored, long)},
		"many records": {write(t, block("records"), "{"+records+"}")},
	} {
		group.Go(func() {
			_, err := s.Put(context.Background(), puts)
			if name == "small" {
				wantCode(t, err, oda.Unavailable)
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	group.Go(func() {
		if _, err := s.Create(context.Background(), write(t, sbd("created"), "{"+long+"}"), nil); err != nil {
			t.Errorf("creation: %v", err)
		}
	})
	group.Wait()
}
