package fault

import (
	"io"
	"os/exec"
	"strconv"
	"syscall"
)

// sweep is what the janitor does. It reads the number of the process to end,
// again whenever that changes, an empty line when there is none. When no more
// can come, it ends the process, first kindly, and removes the directory. A
// process in the state Z has ended, though in a container nobody may note it.
const sweep = `
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
	kill -QUIT "$pid"
	for _ in $(seq 100); do
		kill -0 "$pid" || break
		grep -q '^State:.Z' "/proc/$pid/status" && break
		sleep 0.1
	done
	kill -KILL "$pid"
fi 2>/dev/null
rm -rf "$1"
`

// janitor is a process that outlives this one. However that ends, also
// by SIGKILL or a time-out, its PostgreSQL ends and the directory is removed.
type janitor struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// newJanitor starts a janitor for a directory.
func newJanitor(dir string) (*janitor, error) {
	cmd := exec.Command("/bin/sh", "-c", sweep, "janitor", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &janitor{cmd: cmd, in: in}, cmd.Start()
}

// watch names the process that must not outlive this one; 0: none.
func (j *janitor) watch(pid int) error {
	line := "\n"
	if pid != 0 {
		line = strconv.Itoa(pid) + line
	}
	_, err := io.WriteString(j.in, line)
	return err
}

// close removes the directory.
func (j *janitor) close() error {
	if err := j.in.Close(); err != nil {
		return err
	}
	return j.cmd.Wait()
}
