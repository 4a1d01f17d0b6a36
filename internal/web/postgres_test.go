package web_test

import (
	"regexp"
	"testing"
	"time"

	"oda/client"
	"oda/internal/app"
	"oda/internal/demo"
	"oda/internal/test/env"
)

// On PostgreSQL every page answers as it does on the embedded engine.
func TestEveryPageOnPostgreSQL(t *testing.T) {
	a := env.Start(t, func(cfg *app.Config) { cfg.Database = env.Postgres(t) })
	acting := func(user string) (*client.Client, error) { return client.New(a.URL(), client.WithUser(user)) }
	if _, err := demo.Fill(t.Context(), acting, demo.Options{Seed: 3, Now: time.Now(), Longest: 350}); err != nil {
		t.Fatal(err)
	}
	embedded, postgres := newSite(t, ""), site{a, a.Origin()}
	heading := regexp.MustCompile(`(?s)<h1[^>]*>(.*?)</h1>`)
	rows := regexp.MustCompile(`<tr`)
	there := postgres.tour(t)
	for i, at := range embedded.tour(t) {
		want, got := embedded.get(t, at), postgres.get(t, there[i])
		if got.Status != want.Status || !heading.MatchString(got.Text()) {
			t.Errorf("%s answers %d, and %s on PostgreSQL %d\n%s", at, want.Status, there[i], got.Status, got.Text())
		}
		if regexp.MustCompile(`^(sbds|sbis|ebs|prjs)\?limit=`).MatchString(at) {
			if n, m := len(rows.FindAllString(want.Text(), -1)), len(rows.FindAllString(got.Text(), -1)); n != m {
				t.Errorf("%s has %d rows, and on PostgreSQL %d", at, n, m)
			}
		}
	}
}
