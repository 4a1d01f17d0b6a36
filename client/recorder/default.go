package recorder

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
// DefaultDir, and those among the temporary files that the Python helper uses if that
// cannot be used. Those that do not exist are left out.
func Spools() ([]string, error) {
	var found []string
	dir, err := DefaultDir()
	if err != nil && os.Getenv("ODA_SPOOL") != "" {
		return nil, err
	}
	if _, err := os.Lstat(dir); err == nil { // whether it can be used is for others to say
		found = append(found, dir)
	}
	spare := fmt.Sprintf("oda-spool-%d", os.Geteuid())
	more, err := fs.Glob(os.DirFS(os.TempDir()), spare+"-*")
	for _, name := range append([]string{spare}, more...) {
		path := filepath.Join(os.TempDir(), name)
		// Others can make such names, too.
		if info, err := os.Lstat(path); err == nil && info.IsDir() && owned(info) && path != dir {
			found = append(found, path)
		}
	}
	return found, err
}
