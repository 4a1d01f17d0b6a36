package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"oda/internal/test/fault"
)

// process is a program of the drill, with its log.
type process struct {
	*fault.Process
	name string
	log  fault.Log
}

// start starts a program in the yard, with a minimal environment.
func start(y *fault.Yard, name string, env []string, program string, args ...string) (*process, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = y.Dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + y.Dir, "LANG=C.UTF-8"}, env...)
	p, err := y.Start(name, cmd)
	if err != nil {
		return nil, err
	}
	return &process{p, name, y.Log(name)}, nil
}

// running returns nil while the process is running, and otherwise an error that
// says how it ended.
func (p *process) running() error {
	if p.Running() {
		return nil
	}
	return fmt.Errorf("%s ended (%s):\n%s", p.name, p.State(), p.log.Since(0))
}

// keepLogs copies the logs to another directory.
func keepLogs(y *fault.Yard, to string) error {
	logs, _ := filepath.Glob(string(y.Log("*"))) // the pattern is valid
	err := os.MkdirAll(to, 0o755)
	for _, log := range logs {
		text, readErr := os.ReadFile(log)
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(to, filepath.Base(log)), text, 0o644))
	}
	return err
}
