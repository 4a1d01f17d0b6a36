package recorder

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// DefaultDir returns the spool of programs that name none: the folder in the
// environment variable ODA_SPOOL, else ~/.local/state/oda/spool. The Python helper
// uses the same.
func DefaultDir() (string, error) {
	dir := os.Getenv("ODA_SPOOL")
	if dir == "" {
		dir = "~/.local/state/oda/spool"
	}
	if below, ok := strings.CutPrefix(dir, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("there is no home folder for the spool; set ODA_SPOOL: %w", err)
		}
		dir = filepath.Join(home, below)
	}
	return filepath.Abs(dir)
}

// Spools returns the folders in which programs that name none have left something:
// DefaultDir, and the folder for temporary files that the Python helper uses if that
// cannot be written. Those that do not exist are left out.
func Spools() ([]string, error) {
	var found []string
	dir, err := DefaultDir()
	if err != nil && os.Getenv("ODA_SPOOL") != "" {
		return nil, err
	}
	spare := filepath.Join(os.TempDir(), fmt.Sprintf("oda-spool-%d", os.Getuid()))
	for _, one := range []string{dir, spare} {
		info, err := os.Stat(one)
		if one == "" || err != nil || !info.IsDir() || one == spare && !owned(info) {
			continue
		}
		found = append(found, one)
	}
	return found, nil
}

// owned reports whether a file is this user's: others can make files among the
// temporary ones.
func owned(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
