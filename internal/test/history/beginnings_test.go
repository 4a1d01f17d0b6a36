package history

import (
	"context"
	"math/rand/v2"
	"testing"

	"oda/internal/test/env"
)

// Most games are short, because faults in the creation of an entity show only
// at the beginning.
func TestTwoServersOnPostgreSQLAreLinearizableFromTheFirstStore(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	urls := []string{env.Oda(t, "serve", "--db="+dsn).URL, env.Oda(t, "serve", "--db="+dsn).URL}
	target := Target{
		URL:  func(context.Context) (string, error) { return urls[rand.N(len(urls))], nil },
		HTTP: newClient(t),
	}
	_, outcome := playing(t, target, Options{Teams: 6, Players: 6, Turns: 5},
		"read done", "read missing", "store done", "several done", "record done", "record missing")
	outcome()
}
