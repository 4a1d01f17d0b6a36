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
	software := []string{runtime.Version()}
	for _, command := range [][]string{
		{".", l.cluster.Program("postgres"), "--version"},
		{"..", "go", "list", "-m", "modernc.org/sqlite"},
		{"pocketbase", "go", "list", "-m", "github.com/pocketbase/pocketbase"},
	} {
		version, err := run(ctx, command[0], command[1], command[2:]...)
		if err != nil {
			return nil, err
		}
		software = append(software, strings.TrimPrefix(version, "github.com/pocketbase/"))
	}
	return [][2]string{
		{"Processor", fmt.Sprintf("%s, %d cores", field("/proc/cpuinfo", "model name", ":"), runtime.NumCPU())},
		{"Memory", format(total*1024, "B")},
		{"System", field("/etc/os-release", "PRETTY_NAME", "=")},
		{"A durable append of 4 KiB", fmt.Sprintf("%v, p99 %v", append50, append99)},
		{"Load before the run", before},
		{"Software", strings.Join(software, ", ")},
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

// mostStolen is the share of the processor time that a virtual machine may go
// without during a measurement. If it is more, servers that pass work from one
// process to another look slower than they are.
const mostStolen = 0.02

// undisturbed measures until little processor time is stolen, for about as long as
// it may take. The measurement from which the least was stolen counts, whatever
// its result.
func undisturbed(most time.Duration, measure func() (sample, error)) (best sample, err error) {
	for begin := time.Now(); best == nil || best[stolen] > mostStolen && time.Since(begin) < most; {
		before := processorTime()
		got, err := measure()
		if err != nil {
			return nil, err
		}
		after := processorTime()
		if used := after.used - before.used; used > 0 {
			got[stolen] = (after.stolen - before.stolen) / used
		}
		if best == nil || got[stolen] < best[stolen] {
			best = got
		}
	}
	return best, nil
}

// processorTimes is what the processors were asked for since the machine started,
// and how much of it the host did not give.
type processorTimes struct{ used, stolen float64 }

func processorTime() processorTimes {
	text, _ := os.ReadFile("/proc/stat") // a missing file means that nothing is stolen
	return parseProcessorTime(string(text))
}

func parseProcessorTime(stat string) (t processorTimes) {
	line, _, _ := strings.Cut(stat, "\n")
	for i, field := range strings.Fields(line) {
		value, err := strconv.ParseFloat(field, 64)
		switch {
		case err != nil, i == 4, i == 5, i > 8: // its name, idle, idle while a disk works, guests that are also in user
		case i == 8:
			t.stolen, t.used = value, t.used+value
		default:
			t.used += value
		}
	}
	return t
}
