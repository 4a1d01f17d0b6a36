package fault

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
)

// oldestPostgres is the oldest major version that the archive runs on.
const oldestPostgres = 14

// debianPrograms is where Debian keeps the server's programs, which are not on
// the PATH.
const debianPrograms = "/usr/lib/postgresql/*/bin"

// ErrMissing means that this machine has no PostgreSQL server, and says how to
// get one.
var ErrMissing = errors.New("the server of PostgreSQL " + strconv.Itoa(oldestPostgres) +
	" or newer is needed: run \"make setup\", which installs Debian's package postgresql")

// FindPostgres returns the directory with the programs of the newest PostgreSQL
// on this machine.
func FindPostgres() (programs string, err error) { return find(debianPrograms) }

// find searches the directories of a pattern and the PATH.
func find(pattern string) (programs string, err error) {
	directories, err := filepath.Glob(pattern)
	if err != nil {
		return "", fmt.Errorf("look for PostgreSQL: %w", err)
	}
	if program, err := exec.LookPath("postgres"); err == nil {
		// A link on the PATH may have no initdb next to it, but its target has.
		if program, err = filepath.EvalSymlinks(program); err == nil {
			directories = append(directories, filepath.Dir(program))
		}
	}
	newest := slices.MaxFunc(append(directories, ""), func(a, b string) int {
		return cmp.Compare(postgresVersion(a), postgresVersion(b))
	})
	if postgresVersion(newest) < oldestPostgres {
		return "", ErrMissing
	}
	return newest, nil
}

var majorVersion = regexp.MustCompile(`\d+`)

// postgresVersion returns the major version of the server in a directory, or 0
// if a program is missing.
func postgresVersion(directory string) int {
	for _, name := range []string{"postgres", "initdb", "pg_basebackup"} {
		if _, err := exec.LookPath(filepath.Join(directory, name)); err != nil {
			return 0
		}
	}
	out, err := exec.Command(filepath.Join(directory, "postgres"), "--version").Output()
	if err != nil {
		return 0
	}
	version, _ := strconv.Atoi(string(majorVersion.Find(out))) // 0 if there is none
	return version
}

// unprivileged returns a user to run PostgreSQL as, since it refuses to run as
// root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("PostgreSQL does not run as root, and this machine has neither a user \"postgres\" nor \"nobody\": run this as another user")
}
