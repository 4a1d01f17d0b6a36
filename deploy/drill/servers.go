package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"oda/internal/test/fault"
)

// serverCount is the number of oda processes.
const serverCount = 2

// startServers starts the oda processes and returns their addresses, as host:port. It copies
// the program, since the user of the processes may not be able to read its
// folder.
func startServers(ctx context.Context, y *fault.Yard, program, dsn string) (hosts [serverCount]string, err error) {
	copied := filepath.Join(y.Dir, "oda")
	if err := copyProgram(copied, program); err != nil {
		return hosts, fmt.Errorf("copy oda (build it first: make build): %w", err)
	}
	for i := range hosts {
		addr, err := fault.FreeAddr()
		if err != nil {
			return hosts, err
		}
		p, err := start(y, fmt.Sprintf("oda%d", i+1), nil, copied, "serve", "--listen", addr, "--db", dsn, "--generator", strconv.Itoa(i+1))
		if err != nil {
			return hosts, err
		}
		hosts[i] = addr
		err = fault.Poll(ctx, time.Minute, "oda to be ready", func() (bool, error) {
			return ready(ctx, addr), p.running()
		})
		if err != nil {
			return hosts, err
		}
	}
	return hosts, nil
}

// ready reports whether a server is ready.
func ready(ctx context.Context, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

func copyProgram(to, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close(), os.Chmod(to, 0o755))
}
