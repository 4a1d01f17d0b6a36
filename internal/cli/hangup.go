package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// hangups lets a server survive SIGHUP, which it gets when its terminal goes away,
// or from someone who has changed its settings or rotated its files. One that nobody
// has received yet waits.
func hangups() <-chan os.Signal {
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGHUP)
	return received
}

// onEach calls a function for each signal, until the context ends.
func onEach(ctx context.Context, received <-chan os.Signal, do func()) {
	for {
		select {
		case <-received:
			do()
		case <-ctx.Done():
			return
		}
	}
}
