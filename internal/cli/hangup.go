package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// onHangup lets a server survive SIGHUP, which it gets when its terminal goes
// away, or from someone who has rotated its files. It calls a function for each,
// until the context ends.
func onHangup(ctx context.Context, do func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangups)
		for {
			select {
			case <-hangups:
				do()
			case <-ctx.Done():
				return
			}
		}
	}()
}

// ignored logs that there is nothing to do about a SIGHUP.
func ignored(log *slog.Logger) {
	log.Info("SIGHUP is ignored: settings are read only at the start; stop with SIGTERM")
}
