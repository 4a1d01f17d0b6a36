package cli

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"syscall"

	"github.com/alecthomas/kong"
)

// The tag reload of a flag says what a running server does about a change. Without
// it a change needs a restart.
const (
	onSIGHUP    = "hangup"   // SIGHUP applies another value
	fileRead    = "read"     // SIGHUP applies another value, and reads the file again
	fileReopen  = "reopened" // SIGHUP opens the file again; another value needs a restart
	fileFollows = "followed" // the file is read when it changes; another value needs a restart
)

// reloading applies settings that have changed to a running server.
type reloading struct {
	flags []*kong.Flag // their targets are the settings in use
	args  []string
	level *slog.LevelVar
	log   *slog.Logger
}

// apply reads the settings again and applies what has changed, all or nothing. It
// logs what it did about each of them.
func (r *reloading) apply(change func(next *commands) error) {
	parser, next, err := newParser(io.Discard, io.Discard, func(int) {})
	if err != nil {
		r.failed(err)
		return
	}
	command, err := parser.Parse(r.args)
	if err == nil {
		err = change(next)
	}
	if err != nil {
		r.failed(err)
		return
	}
	quiet := true
	for i, flag := range command.Selected().Flags {
		before, reload := r.flags[i].Target, flag.Tag.Get("reload")
		changed := !reflect.DeepEqual(before.Interface(), flag.Target.Interface())
		switch {
		case changed && (reload == onSIGHUP || reload == fileRead):
			r.log.Info("SIGHUP: the setting was changed", "setting", flag.Name, "from", shown(flag, before), "to", shown(flag, flag.Target))
			before.Set(flag.Target)
			if level, ok := flag.Target.Interface().(string); ok && flag.Name == "log-level" {
				r.level.Set(logging{LogLevel: level}.level())
			}
		case changed:
			r.log.Warn("SIGHUP: the setting has changed; restart to apply it", "setting", flag.Name, "from", shown(flag, before), "to", shown(flag, flag.Target))
		case before.IsZero() || reload != fileRead && reload != fileFollows:
			continue
		case reload == fileRead:
			r.log.Info("SIGHUP: the file was read again", "setting", flag.Name)
		default:
			r.log.Info("SIGHUP: nothing to do, as the file is read whenever it changes", "setting", flag.Name)
		}
		quiet = false
	}
	if quiet {
		r.log.Info("SIGHUP: no setting has changed")
	}
}

func (r *reloading) failed(err error) {
	r.log.Error("SIGHUP: all settings stay as they were", "error", err)
}

// hangups lets a server survive SIGHUP, which it gets when its terminal goes away,
// or from somebody who has changed its settings or rotated its files. The channel keeps
// one signal until it is received.
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
