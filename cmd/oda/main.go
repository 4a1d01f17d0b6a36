// Command oda is the observation archive: the server, and the tools around it.
package main

import (
	"os"
	"runtime/debug"

	"oda/internal/cli"
)

// version is set when a release is built.
var version = "dev"

func main() {
	tuneMemory()
	os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr, version))
}

// tuneMemory lets more garbage accumulate than Go does by default, as long as
// there is little of it: a server with a few megabytes of live data would
// otherwise collect all the time. GOGC and GOMEMLIMIT take precedence.
func tuneMemory() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(512 << 20)
	}
}
