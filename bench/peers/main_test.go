package peers_test

import (
	"fmt"
	"os"
	"testing"

	"oda/bench/peers"
)

func TestMain(m *testing.M) {
	if handled, err := peers.RunChild(os.Args[1:]); handled {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
