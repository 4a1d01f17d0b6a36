package machine

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// debianPrograms is where Debian keeps the programs of a server, which are not
// on the PATH.
const debianPrograms = "/usr/lib/postgresql/*/bin/postgres"

// postgres is the version of the server installed, of the newest where there
// are several; empty where there is none.
func postgres() string {
	// The pattern is a constant, and a good one.
	programs, _ := filepath.Glob(debianPrograms)
	if onPath, err := exec.LookPath("postgres"); err == nil {
		programs = append(programs, onPath)
	}
	newest := ""
	for _, program := range programs {
		if version := versionOf(program); newer(version, newest) {
			newest = version
		}
	}
	return newest
}

// versionOf asks a server program: "postgres (PostgreSQL) 15.8 (Debian ...)".
func versionOf(program string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	output, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(output), "(PostgreSQL) ")
	version, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	return version
}

// newer compares versions such as 9.6 and 15.8: with the same number of digits
// in front of the point, text order is right.
func newer(a, b string) bool {
	majorA, _, _ := strings.Cut(a, ".")
	majorB, _, _ := strings.Cut(b, ".")
	if len(majorA) != len(majorB) {
		return len(majorA) > len(majorB)
	}
	return a > b
}
