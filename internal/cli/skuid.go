package cli

import (
	"context"

	"github.com/alecthomas/kong"

	"oda/internal/skuid"
)

// skuids is the identifier service as a separate process.
type skuids struct {
	Config    string    `env:"ODA_SKUID_CONFIG" placeholder:"FILE" help:"File of settings, YAML. Its keys are the names of these flags. SIGHUP reads it again."`
	Listen    string    `default:"127.0.0.1:9870" env:"ODA_SKUID_LISTEN" placeholder:"HOST:PORT" help:"Address to listen on (default ${default}). Port 0 picks a free port."`
	Generator generator `env:"ODA_GENERATOR" placeholder:"0-1023" help:"Generator number for new identifiers (default ${generator}). Give each instance its own."`
	State     string    `env:"ODA_SKUID_STATE" placeholder:"FILE" help:"File that keeps identifiers unique across restarts, even if the clock is set back."`
	Twice     bool      `env:"ODA_SKUID_TWICE" help:"Encode JSON answers twice, as the older service does."`
	logging   `embed:""`
}

// Run serves until the process is asked to stop.
func (s *skuids) Run(ctx context.Context, command *kong.Context, to streams) error {
	log, level, flush := s.gathered(to.err)
	defer flush()
	again := &reloading{flags: command.Selected().Flags, args: to.args, level: level, log: log}
	go onEach(ctx, hangups(), func() { again.apply(func(*commands) error { return nil }) })
	return skuid.Run(ctx, skuid.Config{
		Listen: s.Listen, Generator: s.Generator.orDefault(), StateFile: s.State, Twice: s.Twice, Logger: log,
	})
}
