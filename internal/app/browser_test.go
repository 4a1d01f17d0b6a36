package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// A real browser visits the pages of a real archive, under a base path and behind a proxy
// that strips a prefix, and does what a person does who has just installed it.
func TestANewcomerFindsTheWayFromTheHomePage(t *testing.T) {
	p := env.Oda(t, "serve", "--base-path=/ns/oda")
	to := must.Get(url.Parse("http://" + p.Host()))(t)
	proxy := httptest.NewServer(http.StripPrefix("/outer", httputil.NewSingleHostReverseProxy(to)))
	defer proxy.Close()
	api := proxy.URL + "/outer/ns/oda/api/v1"
	ctx := env.Browser(t)
	watch := env.NewWatch(ctx)
	stored := answered(t, "PUT", p.URL+"/sbds/sbd-42", `{"name":"M51"}`, "X-Forwarded-User", "ada")

	examples := must.Get(env.HomeExamples(ctx, api+"/"))(t)
	block := followExamples(t, examples)
	awaitCards(t, ctx, map[string]string{"SBDefinition": "1", "SBInstances": "0", "ExecutionBlock": "1", "Projects": "0", "Notes": "0"})

	must.Get(chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(`main a[href$="api/v1/ui"]`))))(t)
	tryItOut(t, ctx, "getSBD", stored, env.Param{Name: "sbd_id", Value: "sbd-42"})
	tryItOut(t, ctx, "listSBDs", `["sbd-42"]`) // as it is filled in
	tryItOut(t, ctx, "getEB", answered(t, "GET", p.URL+"/ebs/"+block, ""), env.Param{Name: "eb_id", Value: block})

	complaints := must.Get(watch.Complaints(ctx))(t)
	if len(complaints) > 0 {
		t.Errorf("the browser complains:\n%s", strings.Join(complaints, "\n"))
	}
	if diff := cmp.Diff([]string{proxy.Listener.Addr().String()}, watch.Hosts()); diff != "" {
		t.Errorf("the pages asked other hosts (-want +got):\n%s", diff)
	}
}

// followExamples pastes the examples into one shell, and returns the identifier
// of the block that they create.
func followExamples(t *testing.T, examples []string) string {
	t.Helper()
	if len(examples) != 3 {
		t.Fatalf("the home page has %d examples, want 3", len(examples))
	}
	const rule = "-- next --"
	script := "set -eu\n" + strings.Join(examples, "\necho; echo '"+rule+"'\n") + "\n"
	out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("the examples fail: %v\n%s\n%s", err, script, out)
	}
	answers := strings.Split(string(out), rule)
	if len(answers) != 3 {
		t.Fatalf("the examples print:\n%s", out)
	}
	block := strings.TrimSpace(answers[0])
	if !strings.HasPrefix(block, "eb-") {
		t.Errorf("the first example prints %q, want an identifier", block)
	}
	var recorded struct {
		Block    string `json:"eb_id"`
		Sequence int
	}
	if err := json.Unmarshal([]byte(answers[1]), &recorded); err != nil || recorded.Block != block || recorded.Sequence != 1 {
		t.Errorf("the second example prints %s (%v)", answers[1], err)
	}
	read, list, _ := strings.Cut(strings.TrimSpace(answers[2]), "\n")
	if !strings.Contains(read, `"eb_id":"`+block+`"`) || !strings.Contains(read, `"request": "assign_resources"`) {
		t.Errorf("the third example reads %s", read)
	}
	if list != `["`+block+`"]` {
		t.Errorf("the third example lists %s", list)
	}
	return block
}

// awaitCards waits until the home page that is open shows these counts, which it renews by
// itself.
func awaitCards(t *testing.T, ctx context.Context, want map[string]string) {
	t.Helper()
	const counts = `new Promise((done) => setTimeout(done, 100)).then(() => Object.fromEntries([...document.querySelectorAll(".card")].map(
		c => [c.querySelector(".name").textContent, c.querySelector(".count").textContent])))`
	env.Await(t, fmt.Sprintf("the cards show %v", want), func() bool {
		got, err := chromedp.Run(ctx, chromedp.Evaluate[map[string]string](counts, chromedp.EvalAwaitPromise)) // fails while the page is loaded again
		return err == nil && cmp.Equal(want, got)
	})
}

// tryItOut tries an operation in the Swagger UI that is open, and compares what it shows
// with the JSON that the archive returns.
func tryItOut(t *testing.T, ctx context.Context, operation, want string, params ...env.Param) {
	t.Helper()
	shown := must.Get(env.TryItOut(ctx, operation, params...))(t)
	var got, wanted any
	if err := json.Unmarshal([]byte(shown.Body), &got); err != nil {
		t.Fatalf("%s shows %v: %s", operation, err, shown.Body)
	}
	must.Do(t, json.Unmarshal([]byte(want), &wanted))
	if diff := cmp.Diff(wanted, got); diff != "" || shown.Status != 200 {
		t.Errorf("%s shows status %d and another answer (-want +got):\n%s", operation, shown.Status, diff)
	}
}
