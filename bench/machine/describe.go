// Package machine names the machine that was measured on and watches processes
// on it.
//
// A rate says little without the disk and the processor under it, so every
// report begins with a Description: what an outsider needs in order to judge
// the numbers, and nothing that tells whose machine it was (no host, user or
// path). Process reads what a server takes of the machine while it is measured.
// Linux only, since it reads /proc and /sys.
package machine

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Description is the machine in the words of a report.
type Description struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memory_bytes"`
	Kernel      string `json:"kernel"`
	OS          string `json:"os"`
	// Disk is the file system and, where known, the model of the device
	// below it or else its driver.
	Disk string `json:"disk"`
	Go   string `json:"go"`
	// Postgres is the version installed, empty where there is none.
	Postgres string `json:"postgres,omitempty"`
	// FsyncP50 and FsyncP99 are the time that an appended page of 4 KiB takes
	// to be durable.
	FsyncP50 time.Duration `json:"fsync_p50_ns"`
	FsyncP99 time.Duration `json:"fsync_p99_ns"`
	// Load1 is the load average of the minute before.
	Load1 float64 `json:"load1"`
}

// Describe looks at the machine, and measures for about a second how long the
// disk below dir takes to make an append durable.
func Describe(dir string) (Description, error) {
	// The load first: measuring the disk adds to it.
	load, err := load1()
	if err != nil {
		return Description{}, err
	}
	cpu, err := processor()
	if err != nil {
		return Description{}, err
	}
	meminfo, err := read("/proc/meminfo")
	if err != nil {
		return Description{}, err
	}
	memory, err := kibibytes(meminfo, "MemTotal:")
	if err != nil {
		return Description{}, err
	}
	kernel, err := read("/proc/sys/kernel/osrelease")
	if err != nil {
		return Description{}, err
	}
	disk, err := diskOf(dir)
	if err != nil {
		return Description{}, err
	}
	p50, p99, err := fsync(dir)
	if err != nil {
		return Description{}, err
	}
	return Description{
		CPU:         cpu,
		Cores:       runtime.NumCPU(),
		MemoryBytes: memory,
		Kernel:      "Linux " + strings.TrimSpace(string(kernel)),
		OS:          system(),
		Disk:        disk,
		Go:          runtime.Version(),
		Postgres:    postgres(),
		FsyncP50:    p50,
		FsyncP99:    p99,
		Load1:       load,
	}, nil
}

// processor is the model of the processor, with a word where it is a virtual
// one, which shares the real one with others.
func processor() (string, error) {
	info, err := read("/proc/cpuinfo")
	if err != nil {
		return "", err
	}
	// Not every architecture names a model.
	name := runtime.GOARCH
	if model, found := value(info, "model name"); found {
		name = strings.Join(strings.Fields(model), " ")
	}
	if flags, _ := value(info, "flags"); strings.Contains(flags+" ", " hypervisor ") {
		name += " (virtual)"
	}
	return name, nil
}

// value finds the first "name : value" of /proc/cpuinfo.
func value(file []byte, name string) (string, bool) {
	for line := range bytes.Lines(file) {
		before, after, found := strings.Cut(string(line), ":")
		if found && strings.TrimSpace(before) == name {
			return strings.TrimSuffix(after, "\n"), true
		}
	}
	return "", false
}

func load1() (float64, error) {
	text, err := read("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the load average: %w", err)
	}
	return load, nil
}

// system is the name of the operating system, as it gives it to people.
func system() string {
	text, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return runtime.GOOS
	}
	for line := range strings.Lines(string(text)) {
		if name, found := strings.CutPrefix(line, "PRETTY_NAME="); found {
			return strings.Trim(strings.TrimSpace(name), `"'`)
		}
	}
	return runtime.GOOS
}

func read(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("describing the machine: %w", err)
	}
	return text, nil
}
