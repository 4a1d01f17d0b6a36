package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// ignoreHangups lets a server survive SIGHUP, which it gets when its terminal
// goes away, or from someone who expects it to reload its configuration. It
// logs each one, until the context ends.
func ignoreHangups(ctx context.Context, log *slog.Logger) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangups)
		for {
			select {
			case <-hangups:
				log.Info("SIGHUP is ignored: settings are read only at the start; stop with SIGTERM")
			case <-ctx.Done():
				return
			}
		}
	}()
}
