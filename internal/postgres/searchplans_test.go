package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"oda"
	"oda/internal/postgres"
	"oda/search"
)

// glanced is how many pages a search for words may touch. It first looks at twice as
// many entities as the page has, about eleven pages of the tables for each.
const glanced = 1200

// isSearch reports whether an operation may use the index of terms, which only a
// bitmap scan can, and may sort what the lag of the index by modification leaves
// unordered.
func (h hot) isSearch() bool { return strings.HasPrefix(h.name, "Search") }

// searchOperations returns searches with each filter alone and with common pairs.
func searchOperations() []hot {
	var all []hot
	for _, one := range []struct {
		raw     string
		buffers int
	}{
		{"", 800},
		{"sort=created", 800},
		{"sort=-modified", 1200},
		{"sort=modified", 1200},
		{"sort=id", 800},
		{"sort=-id", 800},
		{"user=user-7", 800},
		{"user=user-7&sort=id", 6000},
		{"user=user-7&sort=modified", 6000},
		{"telescope=ska_mid", 800},
		{"status=observed", 800},
		{"status=observed&sort=created", 800},
		{"status=Draft&telescope=ska_mid&created_after=1970-01-01T00:00:20Z", 800},
		{"status=observed&sort=id", 6000},
		{"class=done", 800},
		{"class=planned&sort=-modified", 6000},
		{"created_after=1970-01-01T00:00:20Z", 800},
		{"last_modified_after=1970-01-01T00:00:24Z", 6000},
		{"last_modified_after=1970-01-01T00:00:20Z&sort=-modified", 1200},
		{"q=id-10001", glanced},
		{"ref=ref-10", 2000},
		{"ref=ref-10&ref_version=3", 100},
		{"cone=201,-43,1", 400},
		{"telescope=ska_mid&created_after=1970-01-01T00:00:20Z", 800},
		{"user=user-7&created_after=1970-01-01T00:00:20Z", 800},
		{"q=id-10001&telescope=ska_mid", glanced},
		{"q=id-10001&created_after=1970-01-01T00:00:01Z", glanced},
		{"cone=201,-43,1&telescope=ska_mid", 400},
		{"where=/a = 1&q=id-10001", 100},
	} {
		all = append(all, hot{
			"Search " + one.raw, "The first page of a search.",
			func(_ *testing.T, s *postgres.Store, _ int) error {
				params, err := url.ParseQuery(strings.ReplaceAll(one.raw, " ", "%20"))
				if err != nil {
					return err
				}
				q, err := search.Parse(oda.SBDefinition, params)
				if err != nil {
					return err
				}
				_, err = search.New(s).Search(context.Background(), q)
				if err != nil {
					return fmt.Errorf("search %s: %w", one.raw, err)
				}
				return nil
			}, one.buffers,
		})
	}
	return all
}
