package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oda"
	"oda/internal/app"
	"oda/internal/skuid"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// creations lists the requests that need an identifier.
var creations = []struct{ kind, path, body, idField string }{
	{"sbd", "/sbds", `{}`, "sbd_id"},
	{"sbi", "/sbis", `{}`, "sbi_id"},
	{"eb", "/ebs", `{}`, "eb_id"},
	{"prj", "/prjs", `{}`, "prj_id"},
	{"eb", "/ebs/create", ``, "eb_id"},
}

// The test runs against the real service, in both forms of its answers.
func TestIdentifierService(t *testing.T) {
	t.Parallel()
	for _, twice := range []bool{false, true} {
		t.Run(fmt.Sprintf("twice=%v", twice), func(t *testing.T) {
			ctx, stop := context.WithCancel(context.Background())
			service := must.Get(skuid.Listen(ctx, skuid.Config{Listen: "127.0.0.1:0", Generator: 7, Twice: twice}))(t)
			address := service.Addr().String() // a scheme is not required
			a := env.Start(t, func(cfg *app.Config) { cfg.SkuidURL, cfg.SkuidTypes = address, "prj=opj" })
			for _, c := range creations {
				id := member(t, want(t, 200, a.Do("POST", c.path, c.body)).Body, c.idField)
				if kind := strings.Replace(c.kind, "prj", "opj", 1); !strings.HasPrefix(id, kind+"-") {
					t.Errorf("%s creates %s", c.path, id)
				}
			}
			first := want(t, 200, a.Do("POST", "/sbds", `{"n":1}`, key, "k"))
			stop()
			must.Do(t, service.Wait())
			unchanged(t, a, func() {
				for _, c := range creations {
					refused(t, a.Do("POST", c.path, c.body), 500, oda.IdentifierService, "identifier service", "othing was stored")
				}
				if again := want(t, 200, a.Do("POST", "/sbds", `{"n":1}`, key, "k")); again.Text() != first.Text() {
					t.Error("a retry needs the service again")
				}
			})
			store(t, a, "/sbds/named", `{}`)
		})
	}
}

// pretend is an identifier service that answers as the test wants.
func pretend(t *testing.T, answer http.HandlerFunc) (*env.Archive, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answer(w, r)
	}))
	t.Cleanup(service.Close)
	return env.Start(t, func(cfg *app.Config) { cfg.SkuidURL = service.URL + "/" }), &asked
}

func TestIdentifierServiceThatFails(t *testing.T) {
	t.Parallel()
	var now http.HandlerFunc
	a, asked := pretend(t, func(w http.ResponseWriter, r *http.Request) { now(w, r) })
	for name, answer := range map[string]http.HandlerFunc{
		"fails":              func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"knows no such path": http.NotFound,
		"redirects":          func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"gives rubbish":      func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html>") },
		"gives nothing":      func(w http.ResponseWriter, r *http.Request) {},
		"gives null":         func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "null") },
		"gives no ska_uid":   func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"uid":"sbd-1"}`) },
		"gives a number":     func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"ska_uid":1}`) },
		"gives another type": func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"ska_uid":"xyz-1"}`) },
		"gives a bare type": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"ska_uid":"%s-"}`, path.Base(r.URL.Path))
		},
		"gives what nothing is stored under": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"ska_uid":"%s-1/../x"}`, path.Base(r.URL.Path))
		},
		"encodes three times": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%q", fmt.Sprintf("%q", `{"ska_uid":"sbd-1"}`))
		},
		"never ends": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"ska_uid":"`+strings.Repeat("x", 100_000))
		},
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			now = answer
			unchanged(t, a, func() {
				for _, c := range creations {
					asked.Store(0)
					refused(t, a.Do("POST", c.path, c.body, key, "k"), 500, oda.IdentifierService, "identifier service", "othing was stored")
					if n := asked.Load(); n < 1 || n > 5 {
						t.Errorf("the service was asked %d times", n)
					}
				}
			})
		})
	}
}

func TestIdentifierServiceThatIsSlow(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	a, _ := pretend(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	unchanged(t, a, func() {
		started := time.Now()
		refused(t, a.Do("POST", "/sbds", `{}`), 500, oda.IdentifierService, "did not answer", "othing was stored")
		if took := time.Since(started); took > env.AtMost(8*time.Second) {
			t.Errorf("it took %v", took)
		}
	})
}

// A service that fails at first is asked again within the same request.
func TestIdentifierServiceThatRecovers(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	a, _ := pretend(t, func(w http.ResponseWriter, r *http.Request) {
		if i := n.Add(1); i%3 != 0 {
			http.Error(w, "wait", http.StatusServiceUnavailable)
		} else {
			fmt.Fprintf(w, `{"ska_uid":"%s-%d"}`, path.Base(r.URL.Path), i)
		}
	})
	for _, c := range creations {
		want(t, 200, a.Do("POST", c.path, c.body))
	}
}

// A creation never overwrites an entity. It asks for another identifier, a limited
// number of times.
func TestIdentifierThatIsTaken(t *testing.T) {
	var n atomic.Int32
	good := int32(4)
	a, asked := pretend(t, func(w http.ResponseWriter, r *http.Request) {
		id := "taken"
		if n.Add(1) == good {
			id = "free"
		}
		fmt.Fprintf(w, `{"ska_uid":"%s-%s"}`, path.Base(r.URL.Path), id)
	})
	for _, c := range creations[:4] {
		store(t, a, c.path+"/"+c.kind+"-taken", `{"precious":true}`)
	}
	for _, c := range creations[:4] {
		n.Store(0)
		if id := member(t, want(t, 200, a.Do("POST", c.path, c.body)).Body, c.idField); id != c.kind+"-free" {
			t.Errorf("%s creates %s", c.path, id)
		}
	}
	good = -1
	unchanged(t, a, func() {
		for _, c := range creations {
			asked.Store(0)
			refused(t, a.Do("POST", c.path, c.body, key, "k"), 500, oda.IdentifierService, "already in use", "othing was stored")
			if n := asked.Load(); n < 2 || n > 20 {
				t.Errorf("the service was asked %d times", n)
			}
		}
	})
}
