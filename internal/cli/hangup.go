package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// ignoreHangups keeps a server running when its terminal goes away, or when it is
// sent the signal that makes others read their configuration again, and says
// so. It ends with the context.
func ignoreHangups(ctx context.Context, log *slog.Logger) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangups)
		for {
			select {
			case <-hangups:
				log.Info("SIGHUP is ignored: settings are read at the start; stop with SIGTERM")
			case <-ctx.Done():
				return
			}
		}
	}()
}
