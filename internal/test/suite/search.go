package suite

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"oda"
	"oda/internal/test/must"
	"oda/search"
)

// find gives what a search finds, page by page, and calls between after each. Its
// parameters are written as in an address but without its escapes: NAME=VALUE, with
// an & between.
func (d *desk) find(kind oda.Kind, raw string, between func()) []oda.Found {
	d.tb.Helper()
	params := url.Values{}
	for part := range strings.SplitSeq(raw, "&") {
		if name, value, ok := strings.Cut(part, "="); ok {
			params.Add(name, value)
		}
	}
	q, err := search.Parse(kind, params)
	if err != nil {
		d.tb.Fatalf("search %s: %v", raw, err)
	}
	all, err := d.store.Search(d.ctx, q, between)
	if err != nil {
		d.tb.Fatalf("search %s: %v", raw, err)
	}
	return all
}

// found gives the identifiers that a search finds, in order.
func (d *desk) found(kind oda.Kind, raw string) []string {
	d.tb.Helper()
	ids := []string{}
	for _, f := range d.find(kind, raw, func() {}) {
		ids = append(ids, f.ID)
	}
	return ids
}

var searches = []scenario{
	{"every filter finds what it says, and all together too", func(t *testing.T, d *desk) {
		d.clock.Set(1_000_000, 0)
		d.as("anna").mustPut(sbd("sbd-a"), `{"telescope":"ska_mid","name":"Centaurus A, first light","prj_ref":"prj-1","n":1e3,
			"targets":[{"name":"Cen A","ra":201.365,"dec":-43.019},{"name":"pole","ra_str":"12:00:00","dec_str":"89:30:00"}],"status":"Draft"}`)
		d.clock.Set(2_000_000, 0)
		d.as("annabel").mustPut(sbd("sbd-b"), `{"telescope":"ska_low","title":"Centaurus","ob_ref":"ob-7","n":"1000","targets":[{"target_id":"Zero","ra":0.2,"dec":0}]}`)
		d.clock.Set(3_000_000, 0)
		d.as("Bob").mustPut(sbd("sbd-c"), `{"telescope":"ska_mid","prj_ref":"prj-1","csp":[{"config_name":"ÉTOILE Σ","n":2},{"deep":{"description":"of stars"}}],"n":-2}`)
		d.clock.Set(4_000_000, 0)
		d.mustUpdate(sbd("sbd-b"), `"telescope":"ska_low","title":"Centaurus","ob_ref":"ob-7","n":"1000","targets":[{"target_id":"Zero","ra":0.2,"dec":0}]`)
		d.clock.Set(5_000_000, 0)
		d.mustSay(d.saying(sbd("sbd-b"), "Fully_observed"))
		d.mustSay(d.saying(sbd("sbd-c"), "Ready"))
		d.clock.Set(6_000_000, 0)
		again, late := d.saying(sbd("sbd-c"), "draft"), d.saying(sbd("sbd-b"), "Failed")
		again.Class, late.At = new(oda.ClassDone), new(oda.Instant(4_999_999))
		d.mustSay(again)
		d.mustSay(late)
		for raw, want := range map[string]string{
			"":                                   "c b a",
			"status=Draft":                       "c a",
			"status=DRAFT":                       "c a",
			"status=draft&sort=modified":         "a c",
			"status=draft&sort=-id":              "c a",
			"status=fully-Observed":              "b",
			"status=ready":                       "",
			"status=failed":                      "",
			"status=fully observed&class=failed": "",
			"class=done":                         "c b",
			"class=done&sort=modified":           "c b",
			"class=planned":                      "a",
			"class=done&status=draft":            "c",
			"class=failed":                       "",
			"user=Bob&status=draft":              "c",
			"user=Bob&class=done&sort=id":        "c",
			"user=anna&status=draft&class=done":  "",
			"user=ann&user_match_type=starts_with&class=done":                      "b",
			"telescope=ska_mid&status=draft":                                       "c a",
			"ref=prj-1&class=done":                                                 "c",
			"q=centaurus&class=planned":                                            "a",
			"q=centaurus&status=fully observed&sort=modified":                      "b",
			"cone=100,0,180&status=draft":                                          "a",
			"where=/n < 5&status=draft":                                            "c",
			`where=/status = "Draft"&class=planned`:                                "a",
			`where=/status = "draft"`:                                              "",
			"status=draft&created_after=1970-01-01T00:00:02Z":                      "c",
			"class=done&last_modified_after=1970-01-01T00:00:04Z":                  "b",
			"class=done&created_before=1970-01-01T00:00:02Z&sort=modified":         "b",
			"status=draft&last_modified_before=1970-01-01T00:00:02Z&sort=-created": "a",

			"sort=created":                          "a b c",
			"sort=-created":                         "c b a",
			"sort=modified":                         "a c b",
			"sort=-modified":                        "b c a",
			"sort=id":                               "a b c",
			"sort=-id":                              "c b a",
			"user=anna":                             "a",
			"user=anna&user_match_type=starts_with": "b a",
			"user=nn&user_match_type=contains":      "b a",
			"user=bob":                              "",
			"user=anna&sort=modified":               "a",
			"created_after=1970-01-01T00:00:02Z":    "c b",
			"created_before=1970-01-01T00:00:02Z":   "b a",

			"created_before=1970-01-01T00:00:02Z&sort=id":       "a b",
			"last_modified_after=1970-01-01T00:00:03Z":          "c b",
			"last_modified_before=1970-01-01T00:00:03Z":         "c a",
			"last_modified_after=1970-01-01T00:00:03Z&sort=-id": "c b",
			"telescope=ska_mid":                                 "c a",
			"telescope=ska_mid&sort=modified":                   "a c",
			"telescope=SKA_MID":                                 "",
			"ref=prj-1":                                         "c a",
			"ref=ob-7":                                          "b",
			"ref=prj-1&ref_version=1":                           "",
			"q=centaurus":                                       "b a",
			"q=CENT":                                            "b a",
			"q=cent first":                                      "",
			"q=first cent":                                      "a",
			"q=light first CENTAURUS a":                         "a",
			"q=étoile σ":                                        "c",
			"q=stars":                                           "c",
			"q=sbd-b":                                           "b",
			"q=sbd":                                             "c b a",
			"q=zero":                                            "b",
			"q=draft":                                           "",
			"q=centaurus&telescope=ska_low":                     "b",
			"cone=201.4,-43,0.5":                                "a",
			"cone=359.9,0,0.4":                                  "b",
			"cone=0,90,0.5":                                     "a",
			"cone=0,90,0.4":                                     "",
			"cone=100,0,180":                                    "b a",
			"cone=201.4,-43,0.5&telescope=ska_mid":              "a",
			"cone=201.4,-43,0.5&telescope=ska_low":              "",
			"where=/n = 1000":                                   "a",
			"where=/n = \"1000\"":                               "b",
			"where=/n < 0":                                      "c",
			"where=/csp/*/n >= 2":                               "c",
			"where=/metadata/version = 2":                       "b",
			"where=/metadata/created_by ~ \"ANNA\"":             "b a",
			"where=/telescope = \"ska_mid\"&where=/n > 0":       "a",
			"where=/n != 5&q=cent":                              "a",
			"where=/sbd_id > \"sbd-a\"&sort=id":                 "b c",
			"user=anna&user_match_type=starts_with&q=centaurus&telescope=ska_mid&ref=prj-1&cone=201,-43,1&where=/n = 1000&created_before=1970-01-01T00:00:01Z&last_modified_after=1970-01-01T00:00:01Z&sort=modified": "a",
		} {
			want := strings.Fields(want)
			for i := range want {
				want[i] = "sbd-" + want[i]
			}
			for _, limit := range []string{"", "&limit=1", "&limit=2"} {
				same(t, raw+limit, d.found(oda.SBDefinition, strings.TrimPrefix(raw+limit, "&")), want)
			}
			same(t, "another kind", d.found(oda.Project, raw), []string{})
		}
	}},
	{"blocks are found by the version of the SBDefinition that they ran", func(t *testing.T, d *desk) {
		d.mustPut(eb("e1"), `{"sbd_ref":"sbd-1","sbd_version":3,`+listing(`{"request":"secret","request_args":{"kwargs":{"name":"hidden"}}}`)+`}`)
		d.mustPut(eb("e2"), `{"sbd_id":"sbd-1","sbd_version":4}`)
		d.mustPut(eb("e3"), `{"sbd_ref":"sbd-10","sbd_version":3}`)
		same(t, "of version 3", d.found(oda.ExecutionBlock, "ref=sbd-1&ref_version=3"), []string{"e1"})
		same(t, "of any version", d.found(oda.ExecutionBlock, "ref=sbd-1&sort=id"), []string{"e1", "e2"})
		for _, raw := range []string{"q=hidden", "q=secret", `where=/request_responses/0/request = "secret"`, `where=/*/0/request ~ "s"`, `where=/request_responses != []`} {
			same(t, raw, d.found(oda.ExecutionBlock, raw), []string{})
		}
	}},
	{"documents of one request are each found by what they say themselves", func(t *testing.T, d *desk) {
		large := `{"name":[` + strings.Repeat(`"a",`, 150_000) + `"b"],"telescope":"ska_low"}`
		small := `{"telescope":"ska_mid","name":"findme please","prj_ref":"prj-1","t":{"ra":77.5,"dec":10.25}}`
		must.Get(d.store.Put(d.ctx, []writing{d.write(sbd("large-1"), large), d.write(sbd("small"), small), d.write(sbd("large-2"), large)}))(t)
		for _, raw := range []string{"telescope=ska_mid", "q=findme please", "ref=prj-1", "cone=77.5,10.25,0.1"} {
			same(t, raw, d.found(oda.SBDefinition, raw), []string{"small"})
		}
		same(t, "the others", d.found(oda.SBDefinition, "telescope=ska_low&sort=id"), []string{"large-1", "large-2"})
	}},
	{"an acknowledged write is found by the next search", func(t *testing.T, d *desk) {
		for i := range 20 {
			ref := eb(fmt.Sprintf("eb-%02d", i))
			word := func(n int) string { return fmt.Sprintf("word%02dx%d", i, n) }
			members := func(n int) string {
				return fmt.Sprintf(`"name":"%s","telescope":"%s","sbd_ref":"%s","sbd_version":%d,"at":{"ra":%d,"dec":%d}`, word(n), word(n), word(n), n+1, 10*i, 5*n)
			}
			check := func(n int, want ...string) {
				t.Helper()
				for _, raw := range []string{
					"q=" + word(n), "telescope=" + word(n), "telescope=" + word(n) + "&sort=id", "ref=" + word(n), fmt.Sprintf("ref=%s&ref_version=%d", word(n), n+1),
					fmt.Sprintf("cone=%d,%d,0.1", 10*i, 5*n), fmt.Sprintf(`where=/name = "%s"`, word(n)),
				} {
					same(t, raw, d.found(oda.ExecutionBlock, raw), append([]string{}, want...))
				}
			}
			d.mustPut(ref, "{"+members(0)+"}")
			check(0, ref.ID)
			d.mustUpdate(ref, members(1))
			check(0)
			check(1, ref.ID)
			d.mustRecord(ref.ID, call("now"))
			check(1, ref.ID)
			at := d.mustRecord(ref.ID, call("again")).Metadata.LastModifiedOn
			same(t, "last modified", d.found(oda.ExecutionBlock, "limit=1&sort=-modified")[0], ref.ID)
			same(t, "modified since", d.found(oda.ExecutionBlock, "last_modified_after="+at.String()), []string{ref.ID})
		}
	}},
	{"a status that was said is found by the next search, and the one before no more", func(t *testing.T, d *desk) {
		for i := range 10 {
			ref := oda.Ref{Kind: oda.Kinds[i%4], ID: fmt.Sprint("e", i)}
			d.mustPut(ref, `{"status":"Ready","name":"found"}`)
			before := unsaid(ref, 1, "Ready", oda.ClassPlanned)
			for _, word := range []string{"Running", "RUNNING", "Failed", "Paused"} {
				now := d.mustSay(d.saying(ref, word))
				for _, raw := range []string{"status=%[1]s", "status=%[1]s&sort=id", "status=%[1]s&q=found", "class=%[2]s", "class=%[2]s&sort=modified", "class=%[2]s&status=%[1]s&user=anna"} {
					find := func(s oda.Status) (standings []oda.Standing) {
						for _, f := range d.find(ref.Kind, fmt.Sprintf(raw, s.Text, s.Class), func() {}) {
							if f.Ref == ref {
								standings = append(standings, visible(f.Standing))
							}
						}
						return standings
					}
					if now.Class != oda.NoClass || !strings.Contains(raw, "class") {
						same(t, raw, find(now), []oda.Standing{{Text: word, Class: now.Class, At: now.At}})
					}
					if alike(before.Text) != alike(word) {
						same(t, "the one before by "+raw, find(before), []oda.Standing(nil))
					}
				}
				before = now
			}
		}
	}},
	{"pages together are what is found, in every order", func(t *testing.T, d *desk) {
		const n = 45
		for i := range n {
			d.clock.Set(oda.Instant(1_000_000+1000*(i/13)), 0)
			d.as([]string{"anna", "bob"}[i%2]).mustPut(sbd(fmt.Sprintf("s%02d", (i*7)%n)), fmt.Sprintf(`{"name":"all","n":%d,"telescope":"t%d"}`, i, i%3))
		}
		d.clock.Set(1_001_000, 0)
		for i := range 9 {
			d.mustUpdate(sbd(fmt.Sprintf("s%02d", i*3)), fmt.Sprintf(`"name":"all","n":%d,"telescope":"t%d"`, i, i%3))
		}
		for i := range n {
			if i%4 > 0 {
				d.mustSay(d.saying(sbd(fmt.Sprintf("s%02d", i)), []string{"Running", "Executing"}[i%2]))
			}
		}
		for _, filter := range []string{"", "q=all", "telescope=t1", "user=anna", "status=running", "class=running", "user=anna&class=running", "where=/n >= 10", "q=all&where=/n < 30", "created_after=1970-01-01T00:00:01.001Z", "last_modified_before=1970-01-01T00:00:01.001Z"} {
			for order := range oda.ByIdentifierReversed + 1 {
				raw := strings.TrimPrefix(filter+"&sort="+order.String(), "&")
				whole := d.find(oda.SBDefinition, raw+"&limit=1000", func() {})
				if !slices.IsSortedFunc(whole, func(a, b oda.Found) int { return order.Compare(order.Place(&a), order.Place(&b)) }) {
					t.Fatalf("%s is not in order", raw)
				}
				for _, limit := range []int{1, 2, 7, 44} {
					got := d.find(oda.SBDefinition, fmt.Sprintf("%s&limit=%d", raw, limit), func() {})
					same(t, fmt.Sprintf("%s by %d", raw, limit), got, whole)
				}
			}
		}
	}},
	{"a walk through the pages has what matches throughout, whatever is written meanwhile", func(t *testing.T, d *desk) {
		const steady, restless = 40, 12
		members := func(i int) string { return fmt.Sprintf(`"name":"all steady","telescope":"mid","n":%d`, i) }
		for i := range steady + restless {
			d.mustPut(eb(fmt.Sprintf("b%02d", i)), "{"+members(i)+"}")
			if i < steady {
				d.mustSay(d.saying(eb(fmt.Sprintf("b%02d", i)), "Done"))
			}
		}
		d.clock.Set(d.clock.Now(), 20_000_000) // 20 ms: within the lag of an index
		// After each page the writers go on, while the next one is read.
		turns := make(chan struct{}, 6)
		var writers sync.WaitGroup
		for w := range 3 {
			writers.Go(func() {
				i := 0
				for range turns {
					i++
					id := fmt.Sprintf("b%02d", steady+w*restless/3+i%(restless/3))
					var err error
					switch i % 4 {
					case 3: // the steady ones are said to be done again, the others sometimes
						_, err = d.store.Say(d.ctx, d.saying(eb(fmt.Sprintf("b%02d", w*steady/3+i%(steady/3))), "DONE"))
						if err == nil {
							_, err = d.store.Say(d.ctx, d.saying(eb(id), []string{"Done", "Failed"}[i/4%2]))
						}
					case 0:
						_, err = d.put(eb(id), document(d.mustGet(eb(id)).Metadata, members(i)))
					case 1:
						_, err = d.put(eb(fmt.Sprintf("new-%d-%d", w, i)), `{"name":"all new","telescope":"mid","n":0}`)
					default:
						_, err = d.record(id, call("now"))
					}
					if err != nil {
						t.Errorf("write: %v", err)
					}
				}
			})
		}
		for _, filter := range []string{"", "q=steady", "telescope=mid", "where=/n >= 0", "user=anna", "status=done", "class=done"} {
			for order := range oda.ByIdentifierReversed + 1 {
				times := map[string]int{}
				for _, f := range d.find(oda.ExecutionBlock, strings.TrimPrefix(filter+"&limit=9&sort="+order.String(), "&"), func() { turns <- struct{}{} }) {
					times[f.ID]++
				}
				for i := range steady + restless {
					id := fmt.Sprintf("b%02d", i)
					isModified := order == oda.LastModifiedFirst || order == oda.LastModifiedLast
					switch {
					case i >= steady && strings.HasSuffix(filter, "done"): // it may have another status
						if times[id] > 1 && !isModified {
							t.Errorf("%s, %s: %s was found %d times", filter, order, id, times[id])
						}
					case i >= steady && order == oda.LastModifiedFirst: // it may have gone to where the walk has been
					case i >= steady && isModified:
						if times[id] == 0 {
							t.Errorf("%s, %s: %s was moved on and is missing", filter, order, id)
						}
					case times[id] != 1:
						t.Errorf("%s, %s: %s was found %d times", filter, order, id, times[id])
					}
				}
			}
		}
		close(turns)
		writers.Wait()
	}},
	{"random searches find what a plain judge of all documents finds", func(t *testing.T, d *desk) { newGuesser(t, d).run(80) }},
}
