package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// endTime bounds how long processes are given to end.
const endTime = 20 * time.Second

// yard is where the drill takes place: a directory of its own under which
// everything is kept, and whose path is in the command line of every process
// that is started.
type yard struct {
	dir        string
	credential *syscall.Credential // nil: as who runs the drill
	janitor    io.Closer
}

// newYard makes the directory. PostgreSQL refuses to run as root, so a drill
// run by root starts everything as the user postgres.
func newYard() (*yard, error) {
	y := &yard{}
	if os.Geteuid() == 0 {
		account, err := user.Lookup("postgres")
		if err != nil {
			return nil, fmt.Errorf("run by root, the drill needs the user postgres: %w", err)
		}
		uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, err
		}
		y.credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	var err error
	if y.dir, err = os.MkdirTemp("", "oda-drill-"); err != nil {
		return nil, err
	}
	err = os.Chmod(y.dir, 0o755)
	if err == nil {
		y.janitor, err = startJanitor(y.dir)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(y.dir))
	}
	return y, nil
}

// makeDir makes a directory for the processes.
func (y *yard) makeDir(names ...string) (string, error) {
	path := filepath.Join(append([]string{y.dir}, names...)...)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", err
	}
	return path, y.give(path)
}

// give makes the processes the owner.
func (y *yard) give(path string) error {
	if y.credential == nil {
		return nil
	}
	return os.Chown(path, int(y.credential.Uid), int(y.credential.Gid))
}

// process is a program that the drill has started.
type process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// start starts a program with its output in a log. It gets a process group of
// its own, so that Ctrl-C reaches the drill alone, which ends it in order.
func (y *yard) start(name string, env []string, program string, args ...string) (*process, error) {
	log := filepath.Join(y.dir, name+".log")
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = y.dir, file, file
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + y.dir, "LANG=C.UTF-8"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: y.credential}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{cmd: cmd, log: log, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // how it ended stands in its log
	}()
	return p, nil
}

// running is nil while the process runs, and otherwise tells how it ended.
func (p *process) running() error {
	select {
	case <-p.ended:
		text, _ := os.ReadFile(p.log)
		return fmt.Errorf("%s ended (%s):\n%s", filepath.Base(p.cmd.Path), p.cmd.ProcessState, text[max(0, len(text)-2000):])
	default:
		return nil
	}
}

// kill ends the process with SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only if it is gone
	<-p.ended
}

// keepLogs copies the logs to another directory.
func (y *yard) keepLogs(to string) error {
	logs, _ := filepath.Glob(filepath.Join(y.dir, "*.log")) // the pattern is valid
	err := os.MkdirAll(to, 0o755)
	for _, log := range logs {
		text, readErr := os.ReadFile(log)
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(to, filepath.Base(log)), text, 0o644))
	}
	return err
}

// close ends all processes and removes the directory.
func (y *yard) close() error {
	err := sweep(y.dir)
	return errors.Join(err, y.janitor.Close())
}

// janitorCommand is the argument that makes the drill a janitor.
const janitorCommand = "janitor"

// startJanitor starts a process that cleans up when the drill is gone, however
// it went: it waits for the end of its input.
func startJanitor(dir string) (io.Closer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, janitorCommand, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return input, cmd.Start()
}

// beJanitor is the work of the janitor.
func beJanitor(dir string) error {
	if !strings.HasPrefix(filepath.Base(dir), "oda-drill-") {
		return fmt.Errorf("%s is no directory of a drill", dir)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return sweep(dir)
}

// sweep ends every process that has the directory in its command line, and
// removes the directory.
func sweep(dir string) error {
	deadline := time.Now().Add(endTime)
	for {
		found := processesOf(dir)
		if len(found) == 0 {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v of the drill do not end", found)
		}
		for _, pid := range found {
			killTree(pid)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return os.RemoveAll(dir)
}

// processesOf lists the processes that have the directory in their command
// line, except the drill and its janitor.
func processesOf(dir string) []int {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	var found []int
	for _, path := range paths {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		line, err := os.ReadFile(path)
		if err != nil || pid == os.Getpid() || !bytes.Contains(line, []byte(dir)) ||
			bytes.Contains(line, []byte("\x00"+janitorCommand+"\x00")) {
			continue
		}
		if state, _ := stateOf(pid); state != "" && state != "Z" {
			found = append(found, pid)
		}
	}
	return found
}

// killTree ends a process and those that it has started, all at once: stopped
// first, it can neither start others nor say goodbye.
func killTree(pid int) {
	_ = syscall.Kill(pid, syscall.SIGSTOP) // these fail only if it is gone
	for _, child := range childrenOf(pid) {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

func childrenOf(pid int) []int {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	var found []int
	for _, path := range paths {
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if _, parent := stateOf(child); parent == pid {
			found = append(found, child)
		}
	}
	return found
}

// awaitEnd waits until the processes are gone.
func awaitEnd(pids []int) error {
	alive := func(pid int) bool {
		state, _ := stateOf(pid)
		return state != "" && state != "Z"
	}
	for deadline := time.Now().Add(endTime); slices.ContainsFunc(pids, alive); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not end", pids)
		}
	}
	return nil
}

// stateOf gives the state and the parent of a process; "" if it is gone.
func stateOf(pid int) (state string, parent int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	// The name before the state is in parentheses and may contain anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}
