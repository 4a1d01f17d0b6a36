package client_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"oda"
	"oda/client"
	"oda/internal/test/env"
)

// everything is a query that all entities match.
var everything = client.Query{CreatedAfter: time.Unix(1, 0)}

func TestAListAnswersEveryQuery(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	created := make(map[string]time.Time)
	for _, user := range []string{"ada", "adam", "Ada", "bob%"} {
		d := must(connect(t, archive, client.WithUser(user)).Store(t.Context(), oda.SBDefinition, "by-"+fmt.Sprintf("%x", user), []byte(`{}`)))(t)
		created[user] = d.Metadata.CreatedOn.Time()
	}
	c := connect(t, archive)
	all := []string{"by-616461", "by-6164616d", "by-416461", "by-626f6225"}
	first := must(c.Get(t.Context(), oda.SBDefinition, all[0]))(t)
	changed := must(c.Store(t.Context(), oda.SBDefinition, all[0], first.Body))(t).Metadata.LastModifiedOn.Time()
	for name, test := range map[string]struct {
		query client.Query
		want  []string
	}{
		"user":                {client.Query{User: "ada"}, all[:1]},
		"user equals":         {client.Query{User: "ada", Match: oda.UserEquals}, all[:1]},
		"user starts with":    {client.Query{User: "ada", Match: oda.UserStartsWith}, all[:2]},
		"user contains":       {client.Query{User: "da", Match: oda.UserContains}, all[:3]},
		"no wildcard":         {client.Query{User: "%", Match: oda.UserContains}, all[3:]},
		"created after":       {client.Query{CreatedAfter: created["adam"]}, all[1:]},
		"created before":      {client.Query{CreatedBefore: created["adam"].In(time.FixedZone("", 3600))}, all[:2]},
		"created between":     {client.Query{CreatedAfter: created["adam"], CreatedBefore: created["Ada"]}, all[1:3]},
		"modified after":      {client.Query{LastModifiedAfter: changed}, all[:1]},
		"modified before":     {client.Query{LastModifiedBefore: created["Ada"]}, all[1:3]},
		"the user goes first": {client.Query{User: "ada", CreatedAfter: changed}, all[:1]},
		"none":                {client.Query{User: "nobody"}, nil},
		"none after":          {client.Query{CreatedAfter: changed.Add(time.Hour)}, nil},
	} {
		for _, page := range []int{0, 1, 2, oda.MaxLimit} {
			test.query.Page = page
			got := collect(t, c.List(t.Context(), oda.SBDefinition, test.query))
			equal(t, fmt.Sprintf("%s, by %d", name, page), got, test.want)
		}
	}
	equal(t, "another kind", collect(t, c.List(t.Context(), oda.Project, everything)), []string(nil))
}

func TestAnInvalidQueryIsRefused(t *testing.T) {
	t.Parallel()
	c := start(t)
	for query, code := range map[client.Query]oda.Code{
		{}:                                    oda.InvalidQuery,
		{Match: oda.UserContains}:             oda.InvalidQuery,
		{User: "ada", Match: 99}:              oda.InvalidRequest,
		{User: "ada", Page: oda.MaxLimit + 1}: oda.InvalidRequest,
	} {
		n := 0
		for id, err := range c.List(t.Context(), oda.SBDefinition, query) {
			n++
			refused(t, err, code, 400)
			if id != "" {
				t.Errorf("the error comes with %q", id)
			}
		}
		if n != 1 {
			t.Errorf("%+v: it yielded %d times after the error", query, n)
		}
	}
}

func TestALongListIsCompleteInOneAnswerAndInPages(t *testing.T) {
	t.Parallel()
	c := start(t)
	var want []string
	for i := range 30 {
		body := []byte(`{"sbis":[`)
		for j := range 100 {
			if j > 0 {
				body = append(body, ',')
			}
			id := fmt.Sprintf("sbi-%d-%d", i, j)
			want = append(want, id)
			body = fmt.Appendf(body, `{"sbi_id":%q}`, id)
		}
		must(c.StoreSeveral(t.Context(), append(body, "]}"...)))(t)
	}
	slices.Sort(want)
	for _, page := range []int{0, 7, 1000, 3000} {
		query := everything
		query.Page = page
		got := collect(t, c.List(t.Context(), oda.SBInstance, query))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("by %d: %d identifiers, want %d", page, len(got), len(want))
		}
		for range c.List(t.Context(), oda.SBInstance, query) { // a caller may stop early
			break
		}
	}
}
