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
	"strings"
	"syscall"
)

// oldestPostgres is the oldest major version that the archive runs on.
const oldestPostgres = 14

// debianPrograms is where Debian keeps the programs of a server, which are not
// on the PATH.
const debianPrograms = "/usr/lib/postgresql/*/bin"

// ErrMissing says that this machine has no server, and how to get one.
var ErrMissing = errors.New("the server of PostgreSQL " + strconv.Itoa(oldestPostgres) +
	" or newer is needed: run \"make setup\", which installs Debian's package postgresql")

// installation is a PostgreSQL on this machine and the user to run it as.
type installation struct {
	programs string              // directory
	user     *syscall.Credential // nil: that of this process
}

// find finds the newest PostgreSQL in the directories of a pattern and
// on the PATH.
func find(pattern string) (installation, error) {
	directories, err := filepath.Glob(pattern)
	if err != nil {
		return installation{}, fmt.Errorf("look for PostgreSQL: %w", err)
	}
	if program, err := exec.LookPath("postgres"); err == nil {
		// A link on the PATH may have no initdb beside it; what it points to has.
		if program, err = filepath.EvalSymlinks(program); err == nil {
			directories = append(directories, filepath.Dir(program))
		}
	}
	newest := slices.MaxFunc(append(directories, ""), func(a, b string) int {
		return cmp.Compare(postgresVersion(a), postgresVersion(b))
	})
	if postgresVersion(newest) < oldestPostgres {
		return installation{}, ErrMissing
	}
	credential, err := unprivileged()
	return installation{programs: newest, user: credential}, err
}

var majorVersion = regexp.MustCompile(`\d+`)

// postgresVersion gives the major version of the server in a directory; 0: it
// has none, or not all of the programs.
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

// unprivileged gives a user for PostgreSQL, which refuses to run as root.
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

// command prepares one of the programs. Of the environment it sees nothing that
// would lead it to another server.
func (i installation) command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(i.programs, name), args...)
	cmd.Dir = dir
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PG") && !strings.HasPrefix(variable, "LC_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	// An interrupt from the terminal is for whoever asked for the cluster. When
	// that has ended, the janitor ends this.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: i.user, Setpgid: true}
	return cmd
}

// makeDir makes a directory that only the user of PostgreSQL can enter.
func (i installation) makeDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	if i.user != nil {
		if err := os.Chown(path, int(i.user.Uid), int(i.user.Gid)); err != nil {
			return err
		}
	}
	return os.Chmod(path, 0o700)
}
