package sqlite

import (
	"os"
	"time"
)

// The write-ahead log is folded into the file at 32 MiB and begun anew when
// nobody reads in it. A listing without a limit reads in it for as long as its
// reader takes, and where listings overlap the log would grow without end. So
// from a first size on no further listing begins, and those that wait for their
// readers are ended; from a second on all are. The first is above what is kept
// of a log that was begun anew (journal_size_limit).
const (
	logHeld    = 96 << 20
	logEnded   = 256 << 20
	logStalled = time.Second // how long a reader may stop while the log is held
	logHold    = time.Second // a hold ends by itself where nobody writes
)

// watchLog ends listings that keep the write-ahead log from being folded. The
// writer calls it after each commit.
func (s *Store) watchLog() {
	if s.listings.Running() == 0 && !s.logIsHeld {
		return
	}
	info, err := os.Stat(s.file.path + "-wal")
	if err != nil {
		return // there is no log yet, or nothing can be done about it
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
