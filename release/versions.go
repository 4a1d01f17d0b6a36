package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// versions is one version in the schemes of those who ship it.
type versions struct {
	described                     string // what git says
	semver, image, debian, python string
}

// readVersions asks scripts/version, the only place that knows the schemes.
func readVersions(root string) (v versions, err error) {
	for scheme, into := range map[string]*string{
		"described": &v.described, "semver": &v.semver, "image": &v.image, "debian": &v.debian, "python": &v.python,
	} {
		out, err := exec.Command(filepath.Join(root, "scripts", "version"), scheme).CombinedOutput()
		if err != nil {
			return v, fmt.Errorf("%s: %w", strings.TrimSpace(string(out)), err)
		}
		*into = strings.TrimSpace(string(out))
	}
	return v, nil
}
