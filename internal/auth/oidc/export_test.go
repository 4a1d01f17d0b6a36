package oidc

import "time"

// SetPause changes how soon tokens with unknown keys make the archive ask again.
func (p *Provider) SetPause(pause time.Duration) { p.pause = pause }
