package fault

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Yard is a directory in which programs run. Each of them has this path, or one
// below it, in its command line.
type Yard struct {
	Dir     string
	user    *syscall.Credential // nil for the user of this process
	janitor *exec.Cmd
	owned   io.Closer // closing it makes the janitor clean up
}

// NewYard makes a yard in a directory, by default in the system's for temporary
// files. In a test's own directory, with its long name, the path of a socket would
// be longer than the system allows. Close removes the yard.
func NewYard(parent, prefix string) (*Yard, error) {
	user, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	y := &Yard{Dir: dir, user: user}
	if err := errors.Join(os.Chmod(dir, 0o755), y.startJanitor()); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return y, nil
}

// sweep is the script of the janitor. It reads the directory and waits for the
// end of its input, which comes with the end of the yard or of its owner. Then
// it ends the programs that have the directory in their command line, first
// gently, then together with their children, and removes the directory. Without
// /proc, programs notice that themselves.
const sweep = `
read -r dir && [ -n "$dir" ] || exit 1
while read -r _; do :; done
for round in $(seq 200); do
	# The directory comes to grep as input, or grep would find itself.
	left=$(echo "$dir" | grep -lsF -f - /proc/[0-9]*/cmdline)
	[ -n "$left" ] || break
	for process in $left; do
		process=${process%/cmdline}
		pid=${process#/proc/}
		if [ "$round" = 1 ]; then
			kill -QUIT "$pid"
		elif [ "$round" -gt 100 ]; then
			kill -STOP "$pid"
			kill -KILL $(cat "$process/task/$pid/children") "$pid"
		fi
	done 2>/dev/null
	sleep 0.1
done
rm -rf "$dir"
[ -z "$left" ]
`

// startJanitor starts a process that outlives this one and cleans up. The
// directory is not in its command line.
func (y *Yard) startJanitor() error {
	y.janitor = exec.Command("/bin/sh", "-c", sweep)
	y.janitor.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := y.janitor.StdinPipe()
	if err != nil {
		return err
	}
	if err := y.janitor.Start(); err != nil {
		return err
	}
	y.owned = input
	_, err = io.WriteString(input, y.Dir+"\n")
	return err
}

// Close ends all programs and removes the directory.
func (y *Yard) Close() error {
	if err := y.owned.Close(); err != nil {
		return err
	}
	if err := y.janitor.Wait(); err != nil {
		return fmt.Errorf("end what runs in %s: %w", y.Dir, err)
	}
	return nil
}

// MakeDir makes a directory that only the programs can enter.
func (y *Yard) MakeDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return errors.Join(y.Give(path), os.Chmod(path, 0o700))
}

// Give makes the user of the programs the owner of a file.
func (y *Yard) Give(path string) error {
	if y.user == nil {
		return nil
	}
	return os.Chown(path, int(y.user.Uid), int(y.user.Gid))
}

// Log returns the log of this name.
func (y *Yard) Log(name string) Log { return Log(filepath.Join(y.Dir, name+".log")) }

// Start starts a program with its output in the log of this name.
func (y *Yard) Start(name string, cmd *exec.Cmd) (*Process, error) {
	log, err := os.OpenFile(string(y.Log(name)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	// An interrupt from the terminal must reach only the owner of the yard, who
	// ends the programs in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: y.user}
	p, err := Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// Log is the path of a file with the output of a program.
type Log string

// Size returns the current length of the log.
func (l Log) Size() int64 {
	info, err := os.Stat(string(l))
	if err != nil {
		return 0
	}
	return info.Size()
}

// Since returns what was logged after a size, at most the last 16 KiB.
func (l Log) Since(begin int64) string {
	const most = 16 << 10
	file, err := os.Open(string(l))
	if err != nil {
		return ""
	}
	defer file.Close()
	begin = max(begin, l.Size()-most)
	text, err := io.ReadAll(io.NewSectionReader(file, begin, most))
	if err != nil {
		return ""
	}
	return string(text)
}
