package main

import (
	"fmt"
	"path/filepath"
	"regexp"
)

var chartVersion = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// chart packs the Helm chart as "helm package" does, which would write the present
// time into it.
func (r *release) chart(b *bill) error {
	entries, err := tree("oda", filepath.Join(r.root, "deploy/helm/oda"))
	if err != nil {
		return err
	}
	for i := range entries {
		if entries[i].name == "oda/Chart.yaml" {
			entries[i].data = chartVersion.ReplaceAll(entries[i].data, []byte("${1}: "+r.versions.semver))
			// Helm wants to read this file first.
			entries[0], entries[i] = entries[i], entries[0]
		}
	}
	name := fmt.Sprintf("oda-%s.tgz", r.versions.semver)
	if err := writeTarGz(filepath.Join(r.out, name), r.time, entries); err != nil {
		return err
	}
	b.ship(name)
	return nil
}
