package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// profiled is added to the archive, which does not serve profiles itself, when
// it is built to be profiled.
const profiled = `package main

import (
	"net/http"
	_ "net/http/pprof"
	"os"
)

func init() { go http.ListenAndServe(os.Getenv("BENCH_PPROF"), nil) }
`

// overlay returns the argument that builds the archive with profiles.
func (l *lab) overlay() (string, error) {
	added, err := filepath.Abs("../cmd/oda/bench_profile.go")
	if err != nil {
		return "", err
	}
	source, list := filepath.Join(l.dir, "profile.go"), filepath.Join(l.dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{added: source}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(source, []byte(profiled), 0o644); err != nil {
		return "", err
	}
	return "-overlay=" + list, os.WriteFile(list, text, 0o644)
}

// profile writes where an oda spends its CPU time while an arm is measured.
func (srv *server) profile(ctx context.Context, arm string, length time.Duration) error {
	samples, err := exchange(ctx, "GET", fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", srv.pprof, max(1, length.Seconds())), nil)
	if err != nil {
		return err
	}
	file := srv.stage.file(".pprof")
	if err := os.WriteFile(file, samples, 0o644); err != nil {
		return err
	}
	text, err := run(ctx, ".", "go", "tool", "pprof", "-top", "-cum", "-nodecount=60", file)
	if err != nil {
		return err
	}
	name := srv.stage.section.Name + "-" + strings.NewReplacer(",", "", " ", "-").Replace(strings.ToLower(arm)) + ".txt"
	return os.WriteFile(filepath.Join(srv.stage.profiles, name), []byte(text+"\n"), 0o644)
}
