// Package env is for tests only: it starts the real things that tests run
// against. Browser starts a Chromium, Watch notes what it does, and TryItOut
// and HomeExamples use the pages of the archive as a person would.
package env

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// browserTimeout bounds the life of a browser, so that a page that never
// becomes ready fails one test and not the whole run.
const browserTimeout = 3 * time.Minute

// Browser starts a headless Chromium with its own profile and returns the
// context for chromedp actions. The browser ends with the test, or after three
// minutes. It can reach only this machine. Without a Chromium the test fails.
func Browser(tb testing.TB) context.Context {
	tb.Helper()
	program, err := findBrowser()
	if err != nil {
		tb.Fatal(err)
	}
	// The browser has its own directory. In tb.TempDir, with a long test name,
	// the path of its socket would be longer than the system allows.
	dir, err := os.MkdirTemp("", "oda-browser-")
	if err != nil {
		tb.Fatalf("make a directory for the browser: %v", err)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program),
		chromedp.Env("TMPDIR="+dir),
		chromedp.UserDataDir(filepath.Join(dir, "profile")),
		chromedp.NoSandbox, // Chromium refuses to run as root without it.
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	ctx, cancelTime := context.WithTimeout(context.Background(), browserTimeout)
	ctx, stopProcess := chromedp.NewExecAllocator(ctx, options...)
	ctx, _ = chromedp.NewContext(ctx)
	tb.Cleanup(func() {
		// Ask the browser to end its processes first; if it does not answer, it
		// is killed.
		asked, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_ = chromedp.Cancel(asked)
		stopProcess()
		cancelTime()
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("remove what the browser left behind: %v", err)
		}
	})
	if err := chromedp.Do(ctx); err != nil {
		tb.Fatalf("start the browser %s: %v", program, err)
	}
	return ctx
}

// findBrowser returns the path of a Chromium.
func findBrowser() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "/usr/bin/chromium"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", fmt.Errorf("this test needs a Chromium and none is on the PATH: run \"make setup\", which installs Debian's package chromium")
}
