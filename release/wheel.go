package main

import (
	"fmt"
	"path/filepath"
)

// wheel builds the wheel of the Python helper.
func (r *release) wheel(b *bill) error {
	pinned := filepath.Join(r.root, "python/build-requirements.txt")
	// Older and newer pips know the pinned versions by different variables.
	err := r.do([]string{"PIP_CONSTRAINT=" + pinned, "PIP_BUILD_CONSTRAINT=" + pinned, "PIP_DISABLE_PIP_VERSION_CHECK=1"},
		"python3", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", r.out, "./python")
	if err != nil {
		return err
	}
	b.ship(fmt.Sprintf("oda_helper-%s-py3-none-any.whl", r.versions.python))
	return nil
}
