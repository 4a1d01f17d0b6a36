package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	searchGroup  = 500 // entities that a filter leaves
	searchWrites = 500 // records per second beside searches
)

// Details of arms.
const (
	whileWriting = ", while records come in"
	anyValue     = ", by any value"
)

// searched is the document of an entity that is searched for: each filter finds
// its group.
func searched(id string, n, groups int) []byte {
	random := rand.New(rand.NewPCG(9, uint64(n)))
	group := n % groups
	status := fmt.Sprintf("State %06d", group)
	if group == 0 {
		status = "Failed" // the only ones of that class
	}
	return fmt.Appendf(nil, `{"eb_id":%q,"telescope":"telescope-%06d","status":%q,"name":"Observation of w%06d, run %d","sbd_ref":"sbd-%06d","sbd_version":%d,`+
		`"targets":[{"name":"field","reference_coordinate":{"ra":%.6f,"dec":%.6f}}],"n":%d,"metadata":{"created_by":"user-%06d"}}`,
		id, group, status, group, n, group, 1+group%3, 360*random.Float64(), math.Asin(2*random.Float64()-1)*180/math.Pi, n, group)
}

// storeSearched fills an archive.
func (srv *server) storeSearched(ctx context.Context, count int) error {
	return srv.storeSeveral(ctx, "ebs", count, func(n int) []byte {
		return searched(identifier("eb-found", n), n, max(count/searchGroup, 1))
	})
}

// searches are searches by one filter each, with different values.
func searches(ctx context.Context, srv *server, count int) (names []string, all map[string][]request, err error) {
	all = make(map[string][]request)
	add := func(name string, params ...string) {
		query := url.Values{}
		for i := 0; i < len(params); i += 2 {
			query.Set(params[i], params[i+1])
		}
		if all[name] == nil {
			names = append(names, name)
		}
		all[name] = append(all[name], get(api+"/ebs/search?"+query.Encode()))
	}
	random := rand.New(rand.NewPCG(10, 1))
	for range 200 {
		n := random.IntN(count)
		group := n % max(count/searchGroup, 1)
		user := fmt.Sprintf("user-%06d", group)
		add(", by a word", "q", fmt.Sprintf("w%06d", group))
		add(", by telescope", "telescope", fmt.Sprintf("telescope-%06d", group))
		add(", by user", "user", user)
		add(", by user, last modified first", "user", user, "sort", "-modified")
		add(", by reference", "ref", fmt.Sprintf("sbd-%06d", group), "ref_version", fmt.Sprint(1+group%3))
		add(", by position", "cone", fmt.Sprintf("%.3f,%.3f,1", 360*random.Float64(), 180*random.Float64()-90))
		text, err := srv.do(ctx, "GET", api+"/ebs/"+identifier("eb-found", n), nil)
		if err != nil {
			return nil, nil, err
		}
		var stored struct {
			Metadata struct {
				CreatedOn string `json:"created_on"`
			}
		}
		if err := json.Unmarshal(text, &stored); err != nil {
			return nil, nil, err
		}
		at := stored.Metadata.CreatedOn
		add(", by status", "status", fmt.Sprintf("state-%06d", max(group, 1)))
		add(", by class", "class", "failed")
		add(", by class, last modified first", "class", "failed", "sort", "-modified")
		add(", by creation", "created_after", at, "created_before", at)
		add(", by modification", "last_modified_after", at, "last_modified_before", at)
	}
	return names, all, nil
}

// runSearch searches a large archive, by one filter each time.
func runSearch(ctx context.Context, s *stage) error {
	var busy, values []arm
	quiet, err := s.arms(ctx, func(ctx context.Context, srv *server) (quiet []arm, err error) {
		begin := time.Now()
		if err := srv.storeSearched(ctx, s.plan.entities); err != nil {
			return nil, err
		}
		s.say("  %s: filled in %v", srv.arm(""), time.Since(begin).Round(time.Second))
		names, all, err := searches(ctx, srv, s.plan.entities)
		if err != nil {
			return nil, err
		}
		writers, err := recordEach(ctx, srv, fillers)
		for _, name := range names {
			one := []worker{anyOf(1, all[name])}
			quiet = append(quiet, loadArm(srv, name, one, 1))
			busy = append(busy, arm{name: srv.arm(name + whileWriting), run: func(ctx context.Context, length time.Duration) (found sample, err error) {
				both, ctx := errgroup.WithContext(ctx)
				both.Go(func() error {
					_, err := send(ctx, srv.addr, writers, length, searchWrites)
					return err
				})
				both.Go(func() (err error) {
					found, err = send(ctx, srv.addr, one, length, 0)
					return err
				})
				err = both.Wait()
				return found, err
			}})
		}
		none := get(api + "/ebs/search?where=" + url.QueryEscape(`/n = -1`))
		values = append(values, loadArm(srv, anyValue, shuffled(1, none), 1))
		return quiet, err
	})
	if err != nil {
		return err
	}
	columns := plain(p50, p99, rate)
	if err := s.measure(ctx, table{Title: "The first page, over one connection", Columns: columns}, quiet); err != nil {
		return err
	}
	title := fmt.Sprintf("The same, while %d records per second come in", searchWrites)
	if err := s.measure(ctx, table{Title: title, Columns: columns}, busy); err != nil {
		return err
	}
	return s.measure(ctx, table{Title: "A condition that nothing fits: a page ends after a second", Columns: plain(p50)}, values)
}

// searchBudgets are those of every filter.
func searchBudgets() []budget {
	var all []budget
	for _, engine := range []string{onSQLite, onPostgres} {
		for _, name := range []string{
			", by a word", ", by telescope", ", by user", ", by user, last modified first", ", by reference", ", by position",
			", by status", ", by class", ", by class, last modified first", ", by creation", ", by modification",
		} {
			all = append(all, atMost("search"+name+", p99", engine+name, over(p99), 0.010))
			all = append(all, atMost("search"+name+whileWriting+", p99", engine+name+whileWriting, over(p99), 0.010))
		}
	}
	return all
}
