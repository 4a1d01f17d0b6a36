package sqlite

import (
	"os"
	"time"
)

// The write-ahead log is checkpointed at 32 MiB, and starts again from its
// beginning once nobody reads from it. A listing without a limit reads from it
// until its reader has read it all, so if listings overlap, the log would grow
// without bound. From the first size on, no listing begins, and those that wait for
// their readers are ended. From the second size on, all are ended. The first size
// is larger than the log that SQLite keeps (journal_size_limit).
const (
	logHeld    = 96 << 20
	logEnded   = 256 << 20
	logStalled = time.Second // how long a reader may pause while the log is held
	logHold    = time.Second // after which a hold ends by itself, if nobody writes
)

// watchLog ends listings that keep the write-ahead log from being checkpointed. The
// writer calls it after each commit.
func (s *Store) watchLog() {
	if s.listings.Running() == 0 && !s.logIsHeld {
		return
	}
	info, err := os.Stat(s.file.path + "-wal")
	if err != nil {
		return // there is no log yet, or it cannot be read
	}
	switch size := info.Size(); {
	case size < logHeld:
		if s.logIsHeld {
			s.logIsHeld = false
			s.listings.Hold(time.Time{})
		}
		return
	case size < logEnded:
		s.listings.EndStalled(logStalled)
	default:
		s.listings.EndAll()
	}
	if !s.logIsHeld {
		s.logIsHeld = true
		s.log.Warn("listings keep the write-ahead log from being checkpointed; ending slow ones", "bytes", info.Size())
	}
	s.listings.Hold(time.Now().Add(logHold))
}
