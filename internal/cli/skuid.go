package cli

import (
	"context"

	"oda/internal/skuid"
)

// skuids is the identifier service as a separate process.
type skuids struct {
	Listen    string    `default:"127.0.0.1:9870" env:"ODA_SKUID_LISTEN" placeholder:"HOST:PORT" help:"Address to listen on (default ${default}). Port 0 picks a free port."`
	Generator generator `env:"ODA_GENERATOR" placeholder:"0-1023" help:"Generator number for new identifiers (default ${generator}). Give each instance its own."`
	State     string    `env:"ODA_SKUID_STATE" placeholder:"FILE" help:"File that keeps identifiers unique across restarts, even if the clock is set back."`
	Twice     bool      `env:"ODA_SKUID_TWICE" help:"Encode JSON answers twice, as the older service does."`
	logging   `embed:""`
}

// Run serves until the process is asked to stop.
func (s *skuids) Run(ctx context.Context, to streams) error {
	log, flush := s.gathered(to.err)
	defer flush()
	onHangup(ctx, func() { ignored(log) })
	return skuid.Run(ctx, skuid.Config{
		Listen: s.Listen, Generator: s.Generator.orDefault(), StateFile: s.State, Twice: s.Twice, Logger: log,
	})
}
