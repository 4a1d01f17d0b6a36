package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/env"
)

const user = "X-Forwarded-User"

// The acting user is that of the header, else on a first store that of the body,
// else DefaultUser.
func TestActingUser(t *testing.T) {
	a := env.Start(t)
	for i, test := range []struct {
		name    string
		body    string
		headers []string
		want    string
	}{
		{"nobody said", `{}`, nil, "DefaultUser"},
		{"the header", `{}`, []string{user, "anna"}, "anna"},
		{"the header before the body", `{"metadata":{"created_by":"bob"}}`, []string{user, "anna"}, "anna"},
		{"the body", `{"metadata":{"created_by":"bob"}}`, nil, "bob"},
		{"null in the body", `{"metadata":{"created_by":null}}`, nil, "DefaultUser"},
		{"the modifier in the body counts for nothing", `{"metadata":{"last_modified_by":"bob"}}`, nil, "DefaultUser"},
		{"beyond ASCII", `{}`, []string{user, "Zoë Ωμέγα 天文"}, "Zoë Ωμέγα 天文"},
		{"characters that JSON escapes", `{}`, []string{user, `a"b\c<&>'`}, `a"b\c<&>'`},
		{"256 characters", `{}`, []string{user, strings.Repeat("é", 256)}, strings.Repeat("é", 256)},
		{"spaces inside", `{}`, []string{user, "Anna  B"}, "Anna  B"},
	} {
		t.Run(test.name, func(t *testing.T) {
			one, other := fmt.Sprint("/sbds/one-", i), fmt.Sprint("other-", i)
			first := store(t, a, one, test.body, test.headers...)
			if first.CreatedBy != test.want || first.LastModifiedBy != test.want {
				t.Errorf("a first store is by %+v", first)
			}
			created := metadataOf(t, want(t, 200, a.Do("POST", "/prjs", test.body, test.headers...)).Body)
			if created.CreatedBy != test.want || created.LastModifiedBy != test.want {
				t.Errorf("a creation is by %+v", created)
			}
			empty := metadataOf(t, want(t, 200, a.Do("POST", "/ebs/create", test.body, test.headers...)).Body)
			if empty.CreatedBy != test.want {
				t.Errorf("an empty block is by %+v", empty)
			}
			want(t, 200, a.Do("PUT", "/", `{"sbds":[`+strings.NewReplacer(`{}`, `{"sbd_id":"`+other+`"}`, `{"m`, `{"sbd_id":"`+other+`","m`).Replace(test.body)+`]}`, test.headers...))
			if several := metadataOf(t, a.Do("GET", "/sbds/"+other, "").Body); several.CreatedBy != test.want {
				t.Errorf("one of several is by %+v", several)
			}

			// An update takes the user from the header only: the body always has the
			// creator.
			text := a.Do("GET", one, "").Text()
			second := store(t, a, one, text)
			if second.CreatedBy != test.want || second.LastModifiedBy != "DefaultUser" {
				t.Errorf("an update without a user is by %+v", second)
			}
			third := store(t, a, one, a.Do("GET", one, "").Text(), user, "carl")
			if third.CreatedBy != test.want || third.LastModifiedBy != "carl" {
				t.Errorf("an update by carl is by %+v", third)
			}
		})
	}
	store(t, a, "/ebs/eb", `{}`, user, "dora")
	if got := record(t, a, "POST", "eb", `{"request":"a"}`); got.Metadata.LastModifiedBy != "DefaultUser" {
		t.Errorf("a record without a user is by %+v", got.Metadata)
	}
	if got := record(t, a, "PATCH", "eb", `{"request":"a"}`, user, "Zoë"); got.Metadata.LastModifiedBy != "Zoë" {
		t.Errorf("a record by Zoë is by %+v", got.Metadata)
	}
	if len(list(t, a, "ebs", "user=dora")) != 1 || len(list(t, a, "ebs", "user=Zo%C3%AB")) != 0 {
		t.Error("the user of a listing is not the creator")
	}
}

// A document names its creator only on its first store, but in valid characters always.
func TestInvalidCreatorsAreRefused(t *testing.T) {
	a := env.Start(t)
	for _, name := range []string{"a\u0085b", "a\u2028b", "a\u2029", "\u202enimda", "a\u2066b", "a\u200f"} {
		body := fmt.Sprintf(`"metadata":{"created_by":"%s"}}`, name)
		unchanged(t, a, func() {
			for _, place := range [][2]string{
				{"/sbds/n", `{`}, {"/ebs/n", `{`}, {"/", `{"sbds":[{"sbd_id":"n",`},
			} {
				text := place[1] + body
				if place[0] == "/" {
					text += "]}"
				}
				refused(t, a.Do("PUT", place[0], text), 400, oda.InvalidRequest)
			}
			refused(t, a.Do("POST", "/prjs", `{`+body), 400, oda.InvalidRequest)
		})
	}
}

func TestInvalidUsersAreRefused(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/eb", `{}`)
	for name, value := range map[string]string{
		"empty":               "",
		"257 characters":      strings.Repeat("é", 257),
		"a tab":               "a\tb",
		"a control character": "a\u0085b",
		"a line separator":    "a\u2028b",
		"another direction":   "\u202enimda",
		"a directional mark":  "a\u061c",
		"Latin-1":             "Zo\xeb",
		"UTF-8 cut off":       "a\xe2\x82",
	} {
		t.Run(name, func(t *testing.T) {
			unchanged(t, a, func() {
				for _, place := range keyed {
					p := refused(t, a.Do(place.method, place.path, place.body, user, value), 400, oda.InvalidUser)
					if len(p.Errors) != 1 || p.Errors[0].Pointer != "header:X-Forwarded-User" {
						t.Errorf("the faults are %v", p.Errors)
					}
				}
				refused(t, a.Do("PUT", "/sbds/n", `{}`, user, value), 400, oda.InvalidUser)
				refused(t, a.Do("PUT", "/", `{"sbds":[{"sbd_id":"n"}]}`, user, value), 400, oda.InvalidUser)
			})
			want(t, 200, a.Do("GET", "/ebs/eb", "", user, value)) // reads ignore the user
		})
	}
}
