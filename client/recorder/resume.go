package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
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
		names, others, err := sessions(dir)
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("resume the spool: %w", err))
		}
		for _, other := range others {
			tidy(filepath.Join(dir, other), options.Logger)
		}
		for _, name := range names {
			results = append(results, Resumed{Dir: filepath.Join(dir, name)})
		}
	}
	waiting := make([]*Resumed, len(results))
	for i := range results {
		waiting[i] = &results[i]
	}
	archives := archives{options: options, clients: make(map[archiveOf]*client.Client)}
	defer archives.close()
	log := outage{log: options.Logger}
	// Sessions are tried in turn, so that one unavailable archive does not
	// delay the records of another. The sessions of one block in one archive go
	// in order of age.
	for wait := (backoff{}); len(waiting) > 0; {
		var away []*Resumed
		behind := make(map[[2]string]error)
		for _, result := range waiting {
			block, _, _ := splitName(filepath.Base(result.Dir))
			file, _ := readBlock(result.Dir, block) // resume has the error
			to := [2]string{cmp.Or(options.URL, file.URL), block}
			if before := behind[to]; before != nil {
				result.Err = result.postpone(before)
			} else {
				result.Err = result.resume(ctx, &archives)
			}
			if client.Denied(result.Err) {
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

// count counts what still waits.
func (r *Resumed) count() {
	if r.rest == nil {
		return
	}
	var uncounted error
	r.Left, _, uncounted = waitingLines(r.Dir, *r.rest)
	r.Err = errors.Join(r.Err, uncounted)
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

// archives are the clients of the archives that sessions name, each made once.
type archives struct {
	options ResumeOptions
	clients map[archiveOf]*client.Client
}

type archiveOf struct{ url, user string }

func (a *archives) of(file blockFile) (*client.Client, error) {
	to := archiveOf{cmp.Or(a.options.URL, file.URL), file.User}
	if known := a.clients[to]; known != nil {
		return known, nil
	}
	made, err := client.New(to.url, append([]client.Option{client.WithUser(to.user), client.WithLogger(a.options.Logger)}, a.options.Client...)...)
	if err != nil {
		return nil, err
	}
	a.clients[to] = made
	return made, nil
}

func (a *archives) close() {
	for _, made := range a.clients {
		made.CloseIdleConnections()
	}
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
	p := newShipper(s, archive, archives.options.Logger, func(position, tally) {})
	limit, err := wholeSession(s.dir, p.at)
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		more, err = p.ship(ctx, limit)
	}
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
	at, _ := loadPosition(r.Dir)
	r.rest = &at
	return because
}

// wholeSession returns the end of a session that nobody writes to.
func wholeSession(dir string, from position) (position, error) {
	found, err := segments(dir)
	if err != nil || len(found) == 0 || found[len(found)-1] < from.segment {
		return from, err
	}
	last := found[len(found)-1]
	info, err := os.Stat(segmentPath(dir, last))
	if err != nil {
		return from, err
	}
	return position{last, info.Size()}, nil
}

// sessions lists the sessions of a spool, oldest first, and the names of all
// other entries.
func sessions(dir string) (names, others []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	began := make(map[string]time.Time)
	for _, entry := range entries {
		name := entry.Name()
		if _, _, ok := splitName(name); !ok || !entry.IsDir() {
			others = append(others, name)
			continue
		}
		began[name] = time.Time{}
		if info, err := os.Stat(filepath.Join(dir, name, blockName)); err == nil {
			began[name] = info.ModTime()
		}
	}
	return slices.SortedFunc(maps.Keys(began), func(a, b string) int {
		return cmp.Or(began[a].Compare(began[b]), strings.Compare(a, b))
	}), others, nil
}

// longMade is longer than anybody takes to make a session.
const longMade = time.Hour

// tidy removes what a process that was killed had begun to make or to remove. It leaves
// anything else alone.
func tidy(path string, log *slog.Logger) {
	name := filepath.Base(path)
	switch coming := strings.HasPrefix(name, comingPrefix); {
	case coming && !olderThan(path, longMade), name == discardedName:
	case coming, strings.HasPrefix(name, goingPrefix):
		if err := os.RemoveAll(path); err != nil {
			log.Warn("cannot remove what is left of a session", "error", err)
		}
	default:
		log.Warn("not a session of a spool; left alone", "path", path)
	}
}

// olderThan reports whether a file has not changed for some time.
func olderThan(path string, age time.Duration) bool {
	info, err := os.Stat(path)
	return err == nil && time.Since(info.ModTime()) > age
}
