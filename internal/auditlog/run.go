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
	l.sumUp(l.denied.over(now))
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

func (l *Log) sumUp(lines []knocks) {
	for _, line := range lines {
		l.append(appendLine(nil, line), 1, false)
	}
}

// Denied counts a request without good credentials that was answered with this status.
func (l *Log) Denied(from string, status int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.denied.add(from, status)
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
	l.sumUp(l.denied.sums(time.Now()))
	if err := l.flush(); err != nil {
		l.log.Error("lines are missing from the audit log, which cannot be written", "error", err)
	}
	return release(l.file)
}
