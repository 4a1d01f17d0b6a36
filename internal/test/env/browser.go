// Package env is for tests only: it starts the real things that tests run
// against. Browser opens a Chromium, Watch notes what it does, and TryItOut
// and HomeExamples use the pages of the archive as a person would.
package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"oda/internal/test/must"
)

// browserTimeout bounds what a test does in a browser, so that a page that never
// becomes ready fails one test and not the whole run.
const browserTimeout = 3 * time.Minute

// chromium is the browser that all tests of a test binary share. The first of them
// starts it.
var chromium struct {
	sync.Mutex
	ctx  context.Context // nil if none was started
	stop func() error
}

// Browser opens a tab in a headless Chromium and returns the context for chromedp
// actions. The tab has a profile of its own, and closes with the test or after
// three minutes. The tests of a test binary share the browser, so its TestMain must
// be Main. It can reach only this machine. Without a Chromium the test fails.
func Browser(tb testing.TB) context.Context {
	tb.Helper()
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx == nil {
		var err error
		if chromium.ctx, chromium.stop, err = startBrowser(); err != nil {
			tb.Fatal(err)
		}
	}
	return tab(tb, chromium.ctx, chromedp.WithNewBrowserContext())
}

// Tab opens another tab with the profile of one that Browser has returned.
func Tab(tb testing.TB, ctx context.Context) context.Context {
	tb.Helper()
	return tab(tb, ctx)
}

func tab(tb testing.TB, ctx context.Context, options ...chromedp.ContextOption) context.Context {
	tb.Helper()
	ctx, cancelTime := context.WithTimeout(ctx, browserTimeout)
	ctx, closeTab := chromedp.NewContext(ctx, options...)
	tb.Cleanup(func() {
		closeTab()
		cancelTime()
	})
	if err := chromedp.Do(ctx); err != nil {
		tb.Fatalf("open a tab of the browser: %v", err)
	}
	return ctx
}

// BrowserWithLog starts a browser for this test alone. The function that it returns
// stops the browser, and returns its log of everything that it did on the network,
// as JSON.
func BrowserWithLog(tb testing.TB) (context.Context, func() []byte) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "net.json")
	ctx, stop, err := startBrowser(chromedp.Flag("log-net-log", path))
	must.Do(tb, err)
	stop = sync.OnceValue(stop)
	tb.Cleanup(func() { _ = stop() }) // does nothing unless the test has failed before
	return ctx, func() []byte {
		must.Do(tb, stop())
		log := must.Get(os.ReadFile(path))(tb)
		return log
	}
}

// endBrowser stops the browser that the tests shared.
func endBrowser() error {
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx == nil {
		return nil
	}
	return chromium.stop()
}

func startBrowser(more ...chromedp.ExecAllocatorOption) (context.Context, func() error, error) {
	program, err := findBrowser()
	if err != nil {
		return nil, nil, err
	}
	// The browser has its own directory. In a directory of a test with a long name,
	// the path of its socket would be longer than the system allows.
	dir, err := os.MkdirTemp("", "oda-browser-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a directory for the browser: %w", err)
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
	ctx, stopProcess := chromedp.NewExecAllocator(context.Background(), append(options, more...)...)
	ctx, _ = chromedp.NewContext(ctx)
	stop := func() error {
		// Ask the browser to end its processes first; if it does not answer, it
		// is killed.
		asked, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_ = chromedp.Cancel(asked)
		stopProcess()
		return os.RemoveAll(dir)
	}
	if err := chromedp.Do(ctx); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start the browser %s: %w", program, err), stop())
	}
	return ctx, stop, nil
}

// findBrowser returns the path of a Chromium. The one without a window comes first: it
// takes half of the processor time.
func findBrowser() (string, error) {
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "/usr/bin/chromium"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", fmt.Errorf("this test needs a Chromium and none is on the PATH: run \"make setup\", which installs Debian's package chromium-headless-shell")
}
