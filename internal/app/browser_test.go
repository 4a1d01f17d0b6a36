package app_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"oda/internal/test/env"
)

// A real browser visits the pages of a real archive and does what a person does
// who has just installed it.
func TestANewcomerFindsTheWayFromTheHomePage(t *testing.T) {
	for name, args := range map[string][]string{
		"without a base path": {"serve"},
		"under a base path":   {"serve", "--base-path=/ns/oda"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := env.Oda(t, args...)
			ctx := env.Browser(t)
			watch := env.NewWatch(ctx)
			stored := must(t, "PUT", p.URL+"/sbds/sbd-42", `{"name":"M51"}`, "X-Forwarded-User", "ada")

			examples, err := env.HomeExamples(ctx, p.URL+"/")
			if err != nil {
				t.Fatal(err)
			}
			block := followExamples(t, examples)
			awaitCards(t, ctx, map[string]string{"SBDefinition": "1", "SBInstances": "0", "ExecutionBlock": "1", "Projects": "0"})

			ui := p.URL + "/ui"
			tryItOut(t, ctx, ui, "getSBD", stored, env.Param{Name: "sbd_id", Value: "sbd-42"})
			tryItOut(t, ctx, ui, "listSBDs", `["sbd-42"]`) // as it is filled in
			tryItOut(t, ctx, ui, "getEB", must(t, "GET", p.URL+"/ebs/"+block, ""), env.Param{Name: "eb_id", Value: block})

			complaints, err := watch.Complaints(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if len(complaints) > 0 {
				t.Errorf("the browser complains:\n%s", strings.Join(complaints, "\n"))
			}
			if diff := cmp.Diff([]string{p.Host()}, watch.Hosts()); diff != "" {
				t.Errorf("the pages asked other hosts (-want +got):\n%s", diff)
			}
		})
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

// awaitCards waits until the home page shows these counts, which it refreshes
// every few seconds.
func awaitCards(t *testing.T, ctx context.Context, want map[string]string) {
	t.Helper()
	var got map[string]string
	var err error // of the last try: a busy browser may give up a reload
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		err = chromedp.Do(ctx, chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS(`.cards`)))
		if err == nil {
			got, err = chromedp.Run(ctx, chromedp.Evaluate[map[string]string](`Object.fromEntries([...document.querySelectorAll(".card")].map(
				c => [c.querySelector(".name").textContent, c.querySelector(".count").textContent]))`))
		}
		if err == nil && cmp.Equal(want, got) {
			return
		}
	}
	t.Errorf("the cards do not show what is stored (%v; -want +got):\n%s", err, cmp.Diff(want, got))
}

// tryItOut tries an operation in the Swagger UI, and compares what it shows
// with the JSON that the archive returns.
func tryItOut(t *testing.T, ctx context.Context, ui, operation, want string, params ...env.Param) {
	t.Helper()
	shown, err := env.TryItOut(ctx, ui, operation, params...)
	if err != nil {
		t.Fatal(err)
	}
	var got, wanted any
	if err := json.Unmarshal([]byte(shown.Body), &got); err != nil {
		t.Fatalf("%s shows %v: %s", operation, err, shown.Body)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" || shown.Status != 200 {
		t.Errorf("%s shows status %d and another answer (-want +got):\n%s", operation, shown.Status, diff)
	}
}
