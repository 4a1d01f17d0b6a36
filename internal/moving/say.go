package moving

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"oda"
	"oda/client"
)

// say says the statuses of an entity as the source has them, except for their users and the
// numbers of the versions. Those that the archive has already are left out.
func (s *storer) say(ctx context.Context, h *history, numbers numbers) error {
	if len(h.said) == 0 {
		return nil
	}
	there := make(map[saying]int)
	if len(numbers) > 0 {
		for entry, err := range s.into.Statuses(ctx, h.Ref) {
			if err != nil {
				return err
			}
			there[sayingOf(&entry)]++
		}
	}
	count := make(map[saying]int)
	for i := range h.said {
		status := &h.said[i]
		entry := status.Status
		if entry.Version = numbers[status.Version]; entry.Version == 0 {
			if err := s.report.setAside(status.aside(notThere(status.Version))); err != nil {
				return err
			}
			continue
		}
		what := sayingOf(&entry)
		count[what]++
		if count[what] <= there[what] {
			s.report.Present.Add(1)
			continue
		}
		_, err := s.into.Say(ctx, h.Ref, client.NewStatus{
			Status: entry.Text, Class: entry.Class, Reason: entry.Reason, At: entry.At.Time(), Version: entry.Version, Key: what.key(count[what]),
		})
		if err = s.settle(ctx, err, status.aside); err != nil {
			return err
		}
	}
	return nil
}

// saying is what a status says, whoever says it.
type saying struct {
	text, reason string
	class        oda.Class
	at           oda.Instant
	version      int64
}

func sayingOf(s *oda.Status) saying { return saying{s.Text, s.Reason, s.Class, s.At, s.Version} }

// key returns the idempotency key for saying the same the nth time, so that two imports at
// once add nothing twice.
func (s saying) key(nth int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d %d %d", s.text, s.reason, s.class, s.at, s.version, nth))
	return "import-" + hex.EncodeToString(sum[:16])
}
