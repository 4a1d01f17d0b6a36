package machine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Measuring the disk ends after whichever of the two comes first.
const (
	fsyncTime  = time.Second
	fsyncCount = 5000
	page       = 4 << 10
)

// fsync measures how long appended pages take to be durable.
func fsync(dir string) (p50, p99 time.Duration, err error) {
	file, err := os.CreateTemp(dir, "fsync-*")
	if err != nil {
		return 0, 0, fmt.Errorf("measuring the disk: %w", err)
	}
	defer func() {
		err = errors.Join(err, file.Close(), os.Remove(file.Name()))
	}()
	took := make([]time.Duration, 0, fsyncCount)
	content := make([]byte, page)
	for start := time.Now(); len(took) < fsyncCount && time.Since(start) < fsyncTime; {
		begin := time.Now()
		if _, err := file.Write(content); err != nil {
			return 0, 0, fmt.Errorf("measuring the disk: %w", err)
		}
		if err := syscall.Fdatasync(int(file.Fd())); err != nil {
			return 0, 0, fmt.Errorf("measuring the disk: %w", err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], nil
}

// diskOf names the file system of a directory and what is known of the device
// below.
func diskOf(dir string) (string, error) {
	table, err := read("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", fmt.Errorf("describing the disk: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", fmt.Errorf("describing the disk: %w", err)
	}
	m, found := mountOf(string(table), dir)
	if !found {
		return "", errors.New("describing the disk: no file system is known for the folder")
	}
	if device := device(m.device); device != "" {
		return m.kind + " on " + device, nil
	}
	return m.kind, nil
}

// mount is a mounted file system: its type and "major:minor" of its device.
type mount struct {
	kind, device string
}

// mountOf finds the file system that a folder lies in: that of the longest
// mount point above it, and the last one mounted there.
func mountOf(table, dir string) (m mount, found bool) {
	longest := -1
	for line := range strings.Lines(table) {
		// 27 1 254:0 / /mount/point rw,relatime - ext4 /dev/vda rw
		before, after, _ := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if len(left) < 5 || len(right) < 1 {
			continue
		}
		point := strings.ReplaceAll(left[4], `\040`, " ")
		inside := dir == point || strings.HasPrefix(dir, strings.TrimSuffix(point, "/")+"/")
		if inside && len(point) >= longest {
			longest = len(point)
			m, found = mount{kind: right[0], device: left[2]}, true
		}
	}
	return m, found
}

// device is the model of a block device, or else its driver; empty for a file
// system without one.
func device(number string) string {
	folder, err := filepath.EvalSymlinks("/sys/dev/block/" + number)
	if err != nil {
		return ""
	}
	// A partition lies in the folder of its disk, which has the device.
	for _, disk := range []string{folder, filepath.Dir(folder)} {
		if file, err := os.Open(filepath.Join(disk, "device", "model")); err == nil {
			model, err := io.ReadAll(io.LimitReader(file, 256))
			file.Close()
			if name := strings.TrimSpace(string(model)); err == nil && name != "" {
				return name
			}
		}
		if driver, err := filepath.EvalSymlinks(filepath.Join(disk, "device", "driver")); err == nil {
			return filepath.Base(driver)
		}
	}
	return ""
}
