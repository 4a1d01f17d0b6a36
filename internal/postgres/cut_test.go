package postgres_test

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/fault"
	"oda/internal/test/suite"
)

// moment is a message of a client at which a connection is cut.
type moment struct {
	name   string
	cut    fault.Cut
	at     func(message []byte) bool // nil: the end of the request with the statement
	stored bool                      // the server has stored the write
}

// statement matches the message that has the marked values.
func statement(message []byte) bool {
	return message[0] == 'B' && bytes.Contains(message, []byte("marked"))
}

// commit matches the message that ends a transaction.
func commit(message []byte) bool {
	return message[0] == 'Q' && bytes.Contains(message, []byte("commit"))
}

func TestConnectionsCutInTheMiddleOfAWrite(t *testing.T) {
	t.Parallel()
	inStatement := []moment{
		{"before the statement", fault.CutBefore, statement, false},
		{"inside the statement", fault.CutInside, statement, false},
		{"before the end of the request", fault.CutBefore, nil, false},
		{"before the answer", fault.CutAnswer, statement, true},
		{"by the server after the answer", fault.CutByServer, statement, true},
	}
	withItsCommit := slices.Clone(inStatement) // the commit is part of the request
	withItsCommit[2].stored = true
	inCommit := []moment{
		{"inside the statement", fault.CutInside, statement, false},
		{"before the commit", fault.CutBefore, commit, false},
		{"inside the commit", fault.CutInside, commit, false},
		{"before the answer to the commit", fault.CutAnswer, commit, true},
		{"by the server after the commit", fault.CutByServer, commit, true},
	}
	key := &oda.Key{Value: "key", Digest: sha256.Sum256([]byte("x"))}
	for _, write := range []struct {
		name    string
		moments []moment
		send    func(t *testing.T, s oda.Engine) (string, error) // returns what identifies the answer
		again   oda.Code                                         // of the same write, if it is stored
	}{
		{"a record with a key", inStatement, func(t *testing.T, s oda.Engine) (string, error) {
			r, err := one(t.Context(), s, adding("b", "marked", "key"))
			return string(r.Metadata.AppendJSON(nil)), err
		}, ""},
		{"a status with a key", withItsCommit, func(t *testing.T, s oda.Engine) (string, error) {
			said, err := s.Say(t.Context(), oda.NewStatus{Ref: block("b"), Text: "marked", By: "anna", Now: now(), Key: key})
			if err != nil {
				return "", err
			}
			return string(said.AppendJSON(nil)), nil
		}, ""},
		{"a first store", inStatement, func(t *testing.T, s oda.Engine) (string, error) {
			_, err := s.Put(t.Context(), []oda.Put{write(t, sbd("new"), `{"a":"marked"}`)})
			return "", err
		}, oda.MetadataMismatch},
		{"an update", inStatement, func(t *testing.T, s oda.Engine) (string, error) {
			_, err := s.Put(t.Context(), []oda.Put{next(t, sbd("old"), oda.Metadata{
				Version: 1, CreatedBy: "anna", CreatedOn: 1, LastModifiedBy: "anna", LastModifiedOn: 1,
			}, `"a":"marked"`)})
			return "", err
		}, oda.MetadataMismatch},
		{"several", inCommit, func(t *testing.T, s oda.Engine) (string, error) {
			_, err := s.Put(t.Context(), []oda.Put{write(t, sbd("x"), `{"a":"marked"}`), write(t, sbd("y"), `{"a":"marked"}`)})
			return "", err
		}, oda.MetadataMismatch},
		{"a creation with a key", inCommit, func(t *testing.T, s oda.Engine) (string, error) {
			e, err := s.Create(t.Context(), write(t, sbd("created"), `{"a":"marked"}`), key)
			if err != nil {
				return "", err
			}
			return suite.Render(t, e), nil
		}, ""},
	} {
		for _, moment := range write.moments {
			t.Run(write.name+" "+moment.name, func(t *testing.T) {
				t.Parallel()
				dsn := env.Postgres(t)
				proxy := env.NewProxy(t, address(t, dsn))
				s, conn := open(t, proxy.DSN(dsn)), connect(t, dsn)
				mustPut(t, s, blank(t, block("b")))
				mustPut(t, s, blank(t, sbd("old")))
				var cut atomic.Bool
				at := moment.at
				if at == nil {
					at = syncBehind(statement)
				}
				proxy.OnClientMessage(func(message []byte) fault.Cut {
					if at(message) && cut.CompareAndSwap(false, true) {
						return moment.cut
					}
					return fault.NoCut
				})
				_, err := write.send(t, s)
				wantCode(t, err, oda.Unavailable)
				if moment.stored {
					uncertain(t, err)
				}
				const count = `SELECT (SELECT count(*) FROM records) + (SELECT count(*) FROM statuses) + (SELECT count(*) FROM versions WHERE text LIKE '%marked%')`
				stored := func() int {
					return query[int](t, conn, strings.ReplaceAll(count, "text LIKE", "convert_from(text, 'UTF8') LIKE"))
				}
				await(t, "the server has noticed the cut", patience, func() bool {
					return query[int](t, conn, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()") == 0
				})
				if got := stored() > 0; got != moment.stored {
					t.Errorf("after the cut it is stored: %v, want %v", got, moment.stored)
				}
				answer, err := write.send(t, s)
				want := oda.Code("")
				if moment.stored {
					want = write.again
				}
				if oda.CodeOf(err) != want {
					t.Errorf("the second attempt is answered %v, want the code %q", err, want)
				}
				if got, want := stored(), map[bool]int{false: 1, true: 2}[write.name == "several"]; got != want {
					t.Errorf("%d are stored in the end, want %d", got, want)
				}
				third, err := write.send(t, s)
				if write.again == "" && (err != nil || third != answer) {
					t.Errorf("a further attempt with the key is answered %s, %v, want %s", third, err, answer)
				}
			})
		}
	}
}

// blank returns a first store with fixed metadata.
func blank(t *testing.T, ref oda.Ref) oda.Put {
	t.Helper()
	put := write(t, ref, `{}`)
	put.At = 1
	return put
}

// syncBehind matches the message that ends a request with such a message.
func syncBehind(such func([]byte) bool) func([]byte) bool {
	var seen atomic.Bool
	return func(message []byte) bool {
		if such(message) {
			seen.Store(true)
		}
		return message[0] == 'S' && seen.Load()
	}
}

// A record without a key that may be stored is never sent twice, in whatever way
// statements are sent.
func TestAWriteThatMayBeStoredIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "exec"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dsn := env.Postgres(t)
			proxy := env.NewProxy(t, address(t, dsn))
			s := open(t, with(t, proxy.DSN(dsn), "default_query_exec_mode", mode))
			mustPut(t, s, write(t, block("marked"), `{}`))
			proxy.OnClientMessage(func(message []byte) fault.Cut {
				if statement(message) {
					return fault.CutAnswer
				}
				return fault.NoCut
			})
			_, err := one(t.Context(), s, adding("marked", "x", ""))
			wantCode(t, err, oda.Unavailable)
			if got := query[int](t, connect(t, dsn), "SELECT count(*) FROM records"); got != 1 {
				t.Errorf("%d records are stored, want 1", got)
			}
			if got := proxy.Cuts(); got != 1 {
				t.Errorf("the record was sent %d times", got)
			}
		})
	}
}

func TestConnectionsCutUnderLoad(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	proxy := env.NewProxy(t, address(t, dsn))
	first, second := open(t, proxy.DSN(dsn)), open(t, proxy.DSN(dsn))
	l := startLoad(t, first, second)
	var messages atomic.Int64
	cuts := []fault.Cut{fault.CutBefore, fault.CutInside, fault.CutAnswer}
	proxy.OnClientMessage(func([]byte) fault.Cut {
		if n := messages.Add(1); n%97 == 0 {
			return cuts[n/97%3]
		}
		return fault.NoCut
	})
	await(t, "many connections are cut", patience, func() bool { return proxy.Cuts() > 60 })
	proxy.OnClientMessage(nil)
	proxy.CutAll()
	l.More()
	if l.Count("unclear") == 0 {
		t.Error("no writer was refused")
	}
	wantStored(t, l, first, dsn)
}
