package work

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// data is what the servers of a run store in the folder of the lab, logs what
// they say. Programs stay there for the next run.
func data() []string {
	return []string{"archive-*", "pocketbase-data-*", "kinto-config-*", "pgbench-*", "postgres"}
}

func logs() []string { return []string{"*.log"} }

// sweep removes what matches from a folder.
func sweep(dir string, patterns ...string) error {
	var errs []error
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		errs = append(errs, err)
		for _, path := range paths {
			errs = append(errs, os.RemoveAll(path))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing what a run has stored: %w", err)
	}
	return nil
}
