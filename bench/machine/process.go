package machine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Usage is what a process takes of the machine.
type Usage struct {
	// RSS is its memory now, PeakRSS the most since it started or since
	// ResetPeak. Memory shared between processes counts in each of them.
	RSS     int64 `json:"rss"`
	PeakRSS int64 `json:"peak_rss"`
	// CPU is user and system time together, since it started.
	CPU time.Duration `json:"cpu_ns"`
}

// clockTick is the unit of the times in /proc/PID/stat. Linux shows it to
// programs as a hundredth of a second on every processor that Go runs on.
const clockTick = 10 * time.Millisecond

// Process reads what a running process takes.
func Process(pid int) (Usage, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("reading the processor time of process %d: %w", pid, err)
	}
	var u Usage
	if u.RSS, err = kibibytes(status, "VmRSS:"); err != nil {
		return Usage{}, fmt.Errorf("process %d: %w", pid, err)
	}
	if u.PeakRSS, err = kibibytes(status, "VmHWM:"); err != nil {
		return Usage{}, fmt.Errorf("process %d: %w", pid, err)
	}
	if u.CPU, err = cpuTime(stat); err != nil {
		return Usage{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return u, nil
}

// ResetPeak lets the peak memory of a process count from now on.
func ResetPeak(pid int) error {
	// 5 is the kernel's number for the peak alone; the other numbers would
	// disturb the process.
	err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
	if err != nil {
		return fmt.Errorf("resetting the peak memory of process %d: %w", pid, err)
	}
	return nil
}

// kibibytes finds "Name:   123 kB" in a file of /proc and returns bytes.
func kibibytes(file []byte, name string) (int64, error) {
	for line := range bytes.Lines(file) {
		rest, found := bytes.CutPrefix(line, []byte(name))
		if !found {
			continue
		}
		fields := bytes.Fields(rest)
		if len(fields) != 2 || string(fields[1]) != "kB" {
			break
		}
		n, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading %s %w", name, err)
		}
		return n << 10, nil
	}
	return 0, fmt.Errorf("no memory shown as %s it has ended, or is the kernel's own", name)
}

// cpuTime adds utime and stime, the fields 14 and 15 of /proc/PID/stat.
func cpuTime(stat []byte) (time.Duration, error) {
	// The name of the program, the second field, may hold spaces and
	// parentheses; what follows the last parenthesis is plain.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, errors.New("the processor time has a form that is not known")
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the processor time: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}
