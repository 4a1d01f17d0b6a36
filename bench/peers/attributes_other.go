//go:build unix && !linux

package peers

import "syscall"

// attributes are those of every process that is started: a group of its own.
// Only Linux can end them with this process.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
