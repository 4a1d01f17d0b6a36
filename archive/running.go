package archive

import (
	"context"

	"oda"
)

// Begin says that a call has begun and not ended, or renews its lease. Its form has been
// checked.
func (a *Archive) Begin(ctx context.Context, b oda.Begun, w Write) error {
	if !oda.ValidID(b.Block) {
		return oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: b.Block})
	}
	b.By, b.Telescopes = w.modifier(), w.Telescopes
	return a.engine.Begin(ctx, b)
}

// Withdraw takes back that a call is running.
func (a *Archive) Withdraw(ctx context.Context, block, key string, w Write) error {
	if !oda.ValidID(block) {
		return oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: block})
	}
	return a.engine.Withdraw(ctx, oda.Begun{Block: block, Key: key, Telescopes: w.Telescopes})
}

// Running returns the calls that are running in a block, or in all blocks if it is empty.
func (a *Archive) Running(ctx context.Context, block string) ([]oda.RunningCall, error) {
	if block != "" && !oda.ValidID(block) {
		return nil, oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: block})
	}
	return a.engine.Running(ctx, block)
}
