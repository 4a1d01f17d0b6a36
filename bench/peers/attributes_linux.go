package peers

import "syscall"

// attributes are those of every process that is started: a group of its own,
// which an interrupt from the terminal does not reach and which can be ended
// as a whole, and an end with this process.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
