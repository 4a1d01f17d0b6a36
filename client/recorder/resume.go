package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oda/client"
	"oda/internal/files"
)

// ResumeOptions configure Resume. All are optional.
type ResumeOptions struct {
	// URL is the archive to send to. By default it is the one that each session
	// names.
	URL string
	// TokenFor is the address of the archive that the token is for, in the
	// environment or in Client. It is sent to no other server, whatever a session
	// names. The default is URL, else the environment variable ODA_URL.
	TokenFor string
	// Client has further options for the clients.
	Client []client.Option
	// Logger receives messages for people. The default is slog.Default().
	Logger *slog.Logger
}

// Resumed is the outcome for one session.
type Resumed struct {
	Dir   string // the folder of the session
	Block string // empty if it could not be read

	Stored  int64 // records that the archive has now acknowledged
	Refused int64 // records that the archive refused; they were put aside
	Damaged int64 // damaged lines; they were put aside
	Left    int64 // records that still wait

	// Err says why something is left. If it is nil, everything was sent.
	Err error

	rest *position // of what still waits, if it is known
}

// Resume sends what processes that have ended left in a spool. It skips
// sessions that a running process holds. While an archive is unavailable or does
// not accept the token, Resume retries until the context ends. Damaged and refused
// records are put aside and stay in the spool; a session with nothing left is removed.
//
// The error concerns the spool itself; each Resumed has the error of its
// session.
func Resume(ctx context.Context, dir string, options ResumeOptions) ([]Resumed, error) {
	return ResumeAll(ctx, []string{dir}, options)
}

// ResumeAll is Resume for several spools together. Those that cannot be read do not keep it
// from sending what is in the others.
func ResumeAll(ctx context.Context, dirs []string, options ResumeOptions) ([]Resumed, error) {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	var results []Resumed
	var unread error
	for _, dir := range dirs {
		names, err := sessions(dir, func(spool *folder, other string) { spool.tidy(other, options.Logger) })
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("resume the spool: %w", err))
		}
		for _, name := range names {
			results = append(results, Resumed{Dir: filepath.Join(dir, name)})
		}
	}
	waiting := make([]*Resumed, len(results))
	for i := range results {
		waiting[i] = &results[i]
	}
	archives := newArchives(options)
	defer archives.close()
	log := outage{log: options.Logger}
	// Sessions are tried in turn, so that one unavailable archive does not
	// delay the records of another. The sessions of one block in one archive go
	// in order of age.
	for wait := (backoff{}); len(waiting) > 0; {
		var away []*Resumed
		behind := make(map[[2]string]error)
		for _, result := range waiting {
			to := result.target(options.URL)
			if before := behind[to]; before != nil {
				result.Err = result.postpone(before)
			} else {
				result.Err = result.resume(ctx, archives)
			}
			if client.Denied(result.Err) && isAway(result.Err) {
				if result.Left == 0 {
					result.count()
				}
				log.failed(result.Err, Lag{Records: result.Left}, result.Stored)
			}
			if isAway(result.Err) {
				behind[to] = result.Err
				away = append(away, result)
			}
		}
		if waiting = away; len(away) > 0 && !sleep(ctx, wait.after(away[0].Err)) {
			break
		}
	}
	// What waits is read to be counted, so that is done once.
	for i := range results {
		results[i].count()
	}
	return slices.DeleteFunc(results, func(r Resumed) bool {
		return errors.Is(r.Err, files.ErrLocked) || errors.Is(r.Err, errGone)
	}), unread
}

// target returns the archive and the block of a session. If they cannot be read,
// resume has the error.
func (r *Resumed) target(url string) [2]string {
	block, _, _ := splitName(filepath.Base(r.Dir))
	if s, err := lookInto(r.Dir); err == nil && url == "" {
		defer s.release()
		file, _ := s.readBlock()
		url = file.URL
	}
	return [2]string{url, block}
}

// count counts what still waits.
func (r *Resumed) count() {
	if r.rest == nil {
		return
	}
	s, err := lookInto(r.Dir)
	if err == nil {
		defer s.release()
		r.Left, _, err = waitingLines(s.in, *r.rest)
	}
	r.Err = errors.Join(r.Err, err)
}

// sleep waits, and returns false if the context ends first.
func sleep(ctx context.Context, wait time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}

// isAway reports whether the archive may soon take the records: it is
// unavailable, or does not accept the token.
func isAway(err error) bool {
	_, stuck := errors.AsType[*stuckError](err)
	return !stuck && (errors.Is(err, client.ErrNoAnswer) || client.Status(err) != 0 || client.Denied(err))
}

// resume sends the records of the session until the first failure.
func (r *Resumed) resume(ctx context.Context, archives *archives) error {
	s, err := openSession(r.Dir)
	if err != nil {
		return err
	}
	defer s.release()
	r.Block = s.block.Block
	archive, err := archives.of(s.block)
	if err != nil {
		return err
	}
	p := newShipper(s, archive.Client, archives.options.Logger, func(position, tally) {})
	limit, err := wholeSession(s.in, p.at)
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		more, err = p.ship(ctx, limit)
	}
	err = archive.explain(err)
	r.Stored, r.Refused, r.Damaged = r.Stored+p.count.stored, r.Refused+p.count.refused, r.Damaged+p.count.damaged
	if err != nil {
		r.rest = &p.at
		return err
	}
	r.Left, r.rest = 0, nil
	if s.keeps() {
		return nil
	}
	return s.remove()
}

// postpone leaves the session as it is, because an older one of the same block
// failed.
func (r *Resumed) postpone(because error) error {
	r.Block, _, _ = splitName(filepath.Base(r.Dir))
	if s, err := lookInto(r.Dir); err == nil {
		defer s.release()
		at, _ := loadPosition(s.in)
		r.rest = &at
	}
	return because
}

// wholeSession returns the end of a session that nobody writes to.
func wholeSession(in *folder, from position) (position, error) {
	found, err := segments(in)
	if err != nil || len(found) == 0 || found[len(found)-1] < from.segment {
		return from, err
	}
	last := found[len(found)-1]
	size, err := in.size(segmentName(last))
	if err != nil {
		return from, err
	}
	return position{last, size}, nil
}

// sessions lists the sessions of a spool, oldest first. What else is in it is handed
// to other.
func sessions(dir string, other func(spool *folder, name string)) ([]string, error) {
	spool, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer spool.close()
	entries, err := spool.entries()
	if err != nil {
		return nil, err
	}
	began := make(map[string]time.Time)
	for _, entry := range entries {
		name := entry.Name()
		if _, _, ok := splitName(name); !ok || !entry.IsDir() {
			other(spool, name)
			continue
		}
		began[name] = time.Time{}
		if info, err := spool.root.Lstat(filepath.Join(name, blockName)); err == nil {
			began[name] = info.ModTime()
		}
	}
	return slices.SortedFunc(maps.Keys(began), func(a, b string) int {
		return cmp.Or(began[a].Compare(began[b]), strings.Compare(a, b))
	}), nil
}

// longMade is longer than anybody takes to make a session.
const longMade = time.Hour

// tidy removes what a process that was killed had begun to make or to remove. It leaves
// anything else alone.
func (f *folder) tidy(name string, log *slog.Logger) {
	switch coming := strings.HasPrefix(name, comingPrefix); {
	case coming && !f.olderThan(name, longMade), name == discardedName:
	case coming, strings.HasPrefix(name, goingPrefix):
		if err := f.root.RemoveAll(name); err != nil {
			log.Warn("cannot remove what is left of a session", "error", err)
		}
	default:
		log.Warn("not a session of a spool; left alone", "path", f.at(name))
	}
}

// olderThan reports whether a file has not changed for some time.
func (f *folder) olderThan(name string, age time.Duration) bool {
	info, err := f.root.Lstat(name)
	return err == nil && time.Since(info.ModTime()) > age
}
