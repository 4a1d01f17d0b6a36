package suite

import (
	"testing"
	"time"

	"oda"
	"oda/internal/test/must"
)

// atOnce bounds an answer that needs no waiting. It is far less than an
// overloaded engine waits.
const atOnce = 2 * time.Second

var closing = []scenario{
	{"a closed store says at once that it is unavailable", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		must.Do(t, d.engine.Close())
		for name, call := range map[string]func() error{
			"Get": func() error { _, err := d.engine.Get(d.ctx, eb("b")); return err },
			"Put": func() error { _, err := d.put(eb("c"), `{}`); return err },
			"Put of a list of records": func() error {
				_, err := d.put(eb("b"), `{"request_responses":[{"request":"one"}]}`)
				return err
			},
			"Create": func() error {
				_, err := d.store.Create(d.ctx, d.write(eb("d"), `{}`), "")
				return err
			},
			"Created": func() error { _, err := d.engine.Created(d.ctx, oda.ExecutionBlock, oda.Key{Value: "k"}); return err },
			"Record":  func() error { _, err := d.record("b", `{"request":"one"}`); return err },
			"Records": func() error { _, err := d.engine.Records(d.ctx, "b", 0, 10); return err },
			"List": func() error {
				return d.engine.List(d.ctx, oda.Query{Kind: oda.ExecutionBlock}, func(string, oda.Instant) error { return nil })
			},
			"Ping": func() error { return d.engine.Ping(d.ctx) },
		} {
			started := time.Now()
			if err := call(); oda.CodeOf(err) != oda.Unavailable {
				t.Errorf("%s: got %v, want the code %q", name, err, oda.Unavailable)
			}
			if took := time.Since(started); took > atOnce {
				t.Errorf("%s: the answer took %v", name, took)
			}
		}
	}},
}
