package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/env"
)

const key = "Idempotency-Key"

// The operations that take a key, each with two different bodies.
var keyed = []struct{ name, method, path, body, other string }{
	{"POST sbds", "POST", "/sbds", `{"a":1}`, `{"a": 1}`},
	{"POST sbis", "POST", "/sbis", `{"a":1}`, `{"a": 1}`},
	{"POST ebs", "POST", "/ebs", `{"a":1,"request_responses":[]}`, `{"a":1}`},
	{"POST prjs", "POST", "/prjs", `{"a":1}`, `{"a":2}`},
	{"POST ebs/create", "POST", "/ebs/create", `{"a":1}`, `{"a":2}`},
	{"PATCH request_response", "PATCH", "/ebs/eb/request_response", `{"request":"a"}`, `{"request":"b"}`},
	{"POST status", "POST", "/ebs/eb/status", `{"status":"a"}`, `{"status":"b"}`},
	{"POST request_response", "POST", "/ebs/eb/request_response", `{"request":"a"}`, `{"request":"a" }`},
}

func TestRetryWithTheSameKey(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/eb", `{}`)
	for i, test := range keyed {
		value := fmt.Sprint("k-", i)
		t.Run(test.name, func(t *testing.T) {
			first := want(t, 200, a.Do(test.method, test.path, test.body, key, value))
			unchanged(t, a, func() {
				again := want(t, 200, a.Do(test.method, test.path, test.body, key, value))
				if again.Text() != first.Text() || again.Header.Get("ETag") != first.Header.Get("ETag") {
					t.Errorf("the retry answers %s %s, the first time it was %s %s",
						again.Header.Get("ETag"), again.Body, first.Header.Get("ETag"), first.Body)
				}
				refused(t, a.Do(test.method, test.path, test.other, key, value), 422, oda.KeyReused, "Idempotency-Key")
			})
			another := want(t, 200, a.Do(test.method, test.path, test.body, key, strings.ToUpper(value)))
			if another.Text() == first.Text() {
				t.Error("another key stores nothing")
			}
			want(t, 200, a.Do(test.method, test.path, test.body))
		})
	}
}

func TestKeysOfABlock(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/one", `{}`)
	first := record(t, a, "PATCH", "one", `{"request":"a"}`, key, "k")
	if again := record(t, a, "POST", "one", `{"request":"a"}`, key, "k"); again != first {
		t.Errorf("POST does not know the key of PATCH: %+v, then %+v", first, again)
	}
	want(t, 200, a.Do("POST", "/ebs", `{"b":1}`, key, "k"))
	refused(t, a.Do("POST", "/ebs/create", `{"b":1}`, key, "k"), 422, oda.KeyReused) // another operation
	store(t, a, "/ebs/two", `{}`)
	for _, block := range []string{"one", "two"} { // each has keys of its own, also for its statuses
		want(t, 200, a.Do("POST", "/ebs/"+block+"/status", `{"status":"Observed"}`, key, "k"))
	}
}

func TestFormOfKeys(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/eb", `{}`)
	for i, place := range keyed { // creations of one collection share their keys
		one := string(rune('!' + i))
		want(t, 200, a.Do(place.method, place.path, place.body, key, one))
		want(t, 200, a.Do(place.method, place.path, place.body, key, one+strings.Repeat("~", 254)))
	}
	for name, wrong := range map[string]string{
		"256 characters": strings.Repeat("k", 256), "a space": "a b", "beyond ASCII": "clé", "nothing": "", "a tab": "a\tb",
	} {
		t.Run(name, func(t *testing.T) {
			for _, place := range keyed {
				unchanged(t, a, func() {
					p := refused(t, a.Do(place.method, place.path, place.body, key, wrong), 400, oda.InvalidRequest, "1 to 255 visible ASCII")
					if len(p.Errors) != 1 || p.Errors[0].Pointer != "header:Idempotency-Key" {
						t.Errorf("the faults are %v", p.Errors)
					}
				})
			}
		})
	}
}
