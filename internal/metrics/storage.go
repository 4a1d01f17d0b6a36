package metrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"oda"
	"oda/internal/engine"
)

// How often and how long the database is asked how it does. However many look at the
// metrics, that costs the same.
const (
	lookEvery = 5 * time.Second
	lookTime  = 3 * time.Second
)

// look is what was found out about the storage. What the database does not tell is
// missing.
type look struct {
	ready    bool
	entities map[oda.Kind]int64
	storage  *engine.Storage
}

// storage remembers the last look.
type storage struct {
	mu   sync.Mutex
	at   time.Time
	last look
}

// look looks again if the last time is a while ago.
func (s *storage) look(from *Sources, log *slog.Logger) look {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.at.IsZero() && time.Since(s.at) < lookEvery {
		return s.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	s.last = look{ready: from.Ready(ctx) == nil}
	found, err := from.Storage(ctx)
	if err == nil {
		s.last.storage = &found
	} else if s.last.ready {
		log.Warn("the database does not say how large it is", "error", err)
	}
	s.last.entities, err = from.Entities(ctx)
	if err != nil && s.last.ready {
		log.Warn("the database does not say how many entities it has", "error", err)
	}
	s.at = time.Now()
	return s.last
}
