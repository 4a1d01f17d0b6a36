package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// describe describes the machine and what is measured on it, but nothing about
// its owner.
func (l *lab) describe(ctx context.Context) ([][2]string, error) {
	field := func(file, name, separator string) string {
		text, _ := os.ReadFile(file) // a missing file means unknown
		for line := range strings.Lines(string(text)) {
			if key, value, found := strings.Cut(line, separator); found && strings.TrimSpace(key) == name {
				return strings.Join(strings.Fields(strings.Trim(strings.TrimSpace(value), `"`)), " ")
			}
		}
		return "unknown"
	}
	load, _ := os.ReadFile("/proc/loadavg") // a missing file means unknown
	before, _, _ := strings.Cut(string(load), " ")
	append50, append99, err := syncTime(l.dir)
	if err != nil {
		return nil, err
	}
	total, err := strconv.ParseFloat(strings.TrimSuffix(field("/proc/meminfo", "MemTotal", ":"), " kB"), 64)
	if err != nil {
		return nil, fmt.Errorf("read the size of the memory: %w", err)
	}
	server, err := run(ctx, ".", l.cluster.Program("postgres"), "--version")
	if err != nil {
		return nil, err
	}
	sqlite, err := run(ctx, "..", "go", "list", "-m", "modernc.org/sqlite")
	if err != nil {
		return nil, err
	}
	peer, err := run(ctx, "pocketbase", "go", "list", "-m", "github.com/pocketbase/pocketbase")
	if err != nil {
		return nil, err
	}
	return [][2]string{
		{"Processor", fmt.Sprintf("%s, %d cores", field("/proc/cpuinfo", "model name", ":"), runtime.NumCPU())},
		{"Memory", format(total*1024, "B")},
		{"System", field("/etc/os-release", "PRETTY_NAME", "=")},
		{"A durable append of 4 KiB", fmt.Sprintf("%v, p99 %v", append50, append99)},
		{"Load before the run", before},
		{"Software", fmt.Sprintf("%s, %s, %s, %s", runtime.Version(), server, sqlite, strings.TrimPrefix(peer, "github.com/pocketbase/"))},
	}, nil
}

// syncTime measures how long it takes to make an appended page durable.
func syncTime(dir string) (p50, p99 time.Duration, err error) {
	file, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	took := make([]time.Duration, 1000)
	for i := range took {
		begin := time.Now()
		if _, err := file.Write(make([]byte, 4<<10)); err != nil {
			return 0, 0, err
		}
		if err := syscall.Fdatasync(int(file.Fd())); err != nil {
			return 0, 0, err
		}
		took[i] = time.Since(begin).Round(time.Microsecond)
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], nil
}
