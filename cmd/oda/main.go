// Command oda is the observation archive: the server, and the tools around it.
package main

import (
	"os"

	"oda/internal/cli"
)

// version is set when a release is built.
var version = "dev"

func main() {
	os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr, version))
}
