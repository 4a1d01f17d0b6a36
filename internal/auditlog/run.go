package auditlog

import "time"

// run looks after the log until it is closed.
func (l *Log) run() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case now := <-ticker.C:
			l.tick(now)
		}
	}
}

// tick writes what waits and what has been summed up, and forces it to disk.
func (l *Log) tick(now time.Time) {
	l.mu.Lock()
	if _, err := l.renew(); err != nil || l.broken != nil {
		_ = l.check(1)
	}
	if now.Sub(l.refused.since) >= time.Minute {
		l.sumUp(now)
	}
	file, dirty := l.file, l.dirty
	l.dirty = false
	l.mu.Unlock()
	if !dirty {
		return
	}
	if err := toDisk(file); err != nil {
		l.log.Error("cannot sync the audit log to disk; a power cut may take its last lines", "path", l.path, "error", err)
	}
}

// sumUp writes the sums of refused requests, if there is space for them besides that
// which writes need. Else they are counted on.
func (l *Log) sumUp(now time.Time) {
	l.refused.take(now, func(s *sum) bool {
		text := line(s)
		if l.flush() != nil || l.reserve(int64(len(text))+room+ahead) != nil { // it gets a number, too
			return false
		}
		l.append(false, text)
		return true
	})
}

// Denied counts a request without good credentials that was answered with this status.
func (l *Log) Denied(from string, status int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused.stranger(from, status)
}

// Refused counts a request that its caller was not allowed to make. There must not be
// many operations of different names.
func (l *Log) Refused(e Entry) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused.caller(e)
}

// Close writes what is left and closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	close(l.stop)
	l.ended.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sumUp(time.Now())
	if left := l.refused.left(); left > 0 {
		l.log.Error("requests that were refused are missing from the audit log, which has no room for them", "requests", left)
	}
	if err := l.flush(); err != nil {
		l.log.Error("lines are missing from the audit log, which cannot be written", "error", err)
	}
	return release(l.file)
}
