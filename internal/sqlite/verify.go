package sqlite

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"iter"
	"maps"
	"math"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine"
	"oda/internal/engine/audit"
	"oda/internal/engine/migrate"
)

// Verify reads everything in the archive of a file and reports all damage. It
// changes nothing. No other process may have the file open meanwhile. An error says
// why the archive could not be verified, for the operator.
func Verify(ctx context.Context, path string, report *audit.Report) (err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("cannot verify the archive %s: %w", path, openError(err))
		}
	}()
	f, err := claimToRead(path)
	if err != nil {
		return err
	}
	defer f.release()
	if err := checkLog(f.path); err != nil {
		broken, ok := errors.AsType[*brokenLog](err)
		if !ok {
			return err
		}
		report.Add(audit.File, "the file", "%v", broken)
	}
	c, err := openToRead(f.path)
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultCorrupt {
		report.Add(audit.File, "the file", "SQLite cannot open it: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	c.SetInterrupt(ctx.Done())
	for _, begin := range []func() error{
		func() error { return recognise(c) },
		func() error { return upToDate(ctx, c) },
		func() error { return c.script("BEGIN") },
	} {
		if err := begin(); sqlite.ErrCode(err).ToPrimary() == sqlite.ResultCorrupt {
			report.Add(audit.File, "the file", "SQLite cannot read its beginning: %v", err)
			return nil
		} else if err != nil {
			return err
		}
	}
	v := verifier{c, report}
	for _, phase := range []struct {
		doing string
		check func() error
	}{
		{"checking the file", v.file},
		{"reading versions, records and statuses", v.rows},
		{"checking positions", v.positions},
		{"checking counts and indexes", v.indexes},
		{"checking the index of words and references", v.terms},
	} {
		report.Do(phase.doing)
		err := phase.check()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// What cannot be read is damage too. The other checks may find more.
		if code := sqlite.ErrCode(err).ToPrimary(); code == sqlite.ResultCorrupt || code == sqlite.ResultNotADB {
			report.Add(audit.File, "the file", "SQLite failed while %s: %v", phase.doing, code)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// claimToRead locks the file, so that no server has it open. It creates nothing but
// the side file.
func claimToRead(path string) (*file, error) {
	path, err := present(path)
	if err != nil {
		return nil, err
	}
	f := &file{path: path}
	// If the disk is read-only, the lock on the file itself must be enough.
	if f.side, err = lockSide(path + ".lock"); err != nil && !errors.Is(err, syscall.EROFS) {
		return nil, err
	}
	if f.self, err = os.Open(path); err == nil {
		err = f.lockToRead()
	}
	if err != nil {
		f.release()
		return nil, reason(err)
	}
	return f, nil
}

// present returns the absolute path of a file that is there, without symbolic links.
func present(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", errors.New("there is no such file; name the archive with --db")
	case err != nil:
		return "", reason(err)
	case !info.Mode().IsRegular():
		return "", errors.New("it is not a regular file; name another file with --db")
	case info.Size() == 0:
		return "", errEmpty
	}
	return resolve(path)
}

// lockToRead takes the same lock as lockSelf, without the right to write.
func (f *file) lockToRead() error {
	if runtime.GOOS != "linux" {
		return nil
	}
	err := syscall.FcntlFlock(f.self.Fd(), setLock, &syscall.Flock_t{Type: syscall.F_RDLCK, Start: lockStart, Len: 1})
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("%w through another mount; stop that one first", errHeld)
	}
	return err
}

// openToRead opens a connection that changes only temporary tables. If there is no write-ahead
// log, it tells SQLite that nobody else writes either, so that SQLite creates no
// files.
func openToRead(path string) (*conn, error) {
	query := "mode=ro"
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() == 0 {
		query += "&immutable=1"
	}
	uri := url.URL{Scheme: "file", Path: path, RawQuery: query}
	raw, err := sqlite.OpenConn(uri.String(), sqlite.OpenReadOnly, sqlite.OpenURI)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, statements: make(map[string]*sqlite.Stmt)}
	// Sorting may take much space, so it uses files.
	if err := c.script("PRAGMA cache_size = -65536; PRAGMA temp_store = FILE"); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// upToDate returns an error if the schema is not the one that this program knows.
func upToDate(ctx context.Context, c *conn) error {
	steps, err := schemaSteps()
	if err != nil {
		return err
	}
	state, err := archiveFile{c}.State(ctx)
	if err != nil {
		return err
	}
	pending, err := migrate.Pending(steps, state)
	if err == nil && len(pending) > 0 {
		err = migrate.ErrOlder
	}
	return err
}

// existing returns an error unless the file is an archive with the schema of this
// program. It takes no lock: whether a server has the file open is for Open to say.
func existing(ctx context.Context, path string) (err error) {
	if path, err = present(path); err != nil {
		return err
	}
	c, err := openToRead(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := recognise(c); err != nil {
		return err
	}
	return upToDate(ctx, c)
}

// verifier checks an archive through a connection.
type verifier struct {
	*conn
	report *audit.Report
}

// file lets SQLite check its own structures.
func (v verifier) file() error {
	err := v.query("PRAGMA integrity_check(100)", func(stmt *sqlite.Stmt) error {
		if text := stmt.ColumnText(0); text != "ok" {
			v.report.Add(audit.File, "the file", "SQLite says: %s", strings.Join(strings.Fields(text), " "))
		}
		return nil
	})
	if err != nil {
		return err
	}
	now, err := schemaChecksum(v.conn)
	if err != nil {
		return err
	}
	return v.query("SELECT schema_checksum FROM migrations ORDER BY number DESC LIMIT 1", func(stmt *sqlite.Stmt) error {
		if stmt.ColumnText(0) != now {
			v.report.Add(audit.File, "the file", "its tables or indexes were changed by something other than oda")
		}
		return nil
	})
}

// all yields the rows of a query, each as one returns it.
func all[T any](c *conn, query string, one func(*sqlite.Stmt) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		stopped := errors.New("stopped")
		err := c.query(query, func(stmt *sqlite.Stmt) error {
			if !yield(one(stmt), nil) {
				return stopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, stopped) {
			var none T
			yield(none, err)
		}
	}
}

// rows audits all rows.
func (v verifier) rows() error {
	total, err := v.number("SELECT last_position FROM state")
	if err != nil {
		return err
	}
	v.report.Total.Store(total)
	numbered := func(stmt *sqlite.Stmt) audit.Key { return audit.Key{Number: stmt.ColumnInt64(0)} }
	return audit.Run(audit.Rows{
		Heads: all(v.conn, `SELECT entity, kind, identifier, version, created_by, created_on, last_modified_by, last_modified_on,
			last_sequence, position, telescope, summary_hash FROM heads ORDER BY entity`, func(stmt *sqlite.Stmt) audit.HeadRow {
			return audit.HeadRow{
				Entity: numbered(stmt), Ref: oda.Ref{Kind: audit.KindOf(stmt.ColumnInt64(1)), ID: stmt.ColumnText(2)}, Metadata: metadataOf(stmt, 3),
				LastSequence: stmt.ColumnInt64(8), Position: stmt.ColumnInt64(9), Telescope: stmt.ColumnText(10), SummaryHash: stmt.ColumnInt64(11),
			}
		}),
		Versions: all(v.conn, `SELECT entity, position, version, stored_by, stored_on, sequence_before, sequence_after, runs, slots, text, digest, seal
			FROM versions ORDER BY entity, version`, func(stmt *sqlite.Stmt) audit.VersionRow {
			row, text, err := versionRow(stmt)
			return audit.VersionRow{Entity: numbered(stmt), VersionRow: row, Position: stmt.ColumnInt64(1), Text: text, Seal: bytesOf(stmt, 11), Damage: err}
		}),
		Records: all(v.conn, `SELECT entity, position, sequence, version, recorded_by, recorded_on, key, digest, text, seal
			FROM records ORDER BY entity, sequence`, func(stmt *sqlite.Stmt) audit.RecordRow {
			return audit.RecordRow{Entity: numbered(stmt), RecordRow: recordRow(stmt), Position: stmt.ColumnInt64(1), Text: bytesOf(stmt, 8), Seal: bytesOf(stmt, 9)}
		}),
		Statuses: all(v.conn, `SELECT s.entity, h.kind, h.identifier, `+statusColumns+` FROM statuses s LEFT JOIN heads h ON h.entity = s.entity
			ORDER BY s.entity, s.sequence`, func(stmt *sqlite.Stmt) audit.StatusRow {
			row := statusColumnsOf(stmt, oda.Ref{Kind: audit.KindOf(stmt.ColumnInt64(1)), ID: stmt.ColumnText(2)}, 3)
			return audit.StatusRow{Entity: numbered(stmt), StatusRow: row, Position: stmt.ColumnInt64(3), Digest: bytesOf(stmt, 17)}
		}),
		Standings: all(v.conn, `SELECT entity, kind, identifier, created_on, folded, `+standingColumns+` FROM standings s ORDER BY entity`,
			func(stmt *sqlite.Stmt) audit.StandingRow {
				return audit.StandingRow{
					Entity: numbered(stmt), Ref: oda.Ref{Kind: audit.KindOf(stmt.ColumnInt64(1)), ID: stmt.ColumnText(2)},
					CreatedOn: oda.Instant(stmt.ColumnInt64(3)), Folded: stmt.ColumnText(4), Standing: standingOf(stmt, 5),
				}
			}),
		Entries: all(v.conn, "SELECT entity, summary FROM catalogue ORDER BY entity", func(stmt *sqlite.Stmt) audit.EntryRow {
			return audit.EntryRow{Entity: numbered(stmt), Summary: bytesOf(stmt, 1)}
		}),
		Days: all(v.conn, "SELECT entity, day, part, first FROM call_days ORDER BY entity, day, part", func(stmt *sqlite.Stmt) audit.DayRow {
			return audit.DayRow{Entity: numbered(stmt), Day: oda.Day(stmt.ColumnInt64(1)), Part: stmt.ColumnInt64(2), First: stmt.ColumnInt64(3)}
		}),
		Failed: all(v.conn, "SELECT h.entity, function, "+failedColumns+" FROM failed_calls c LEFT JOIN heads h ON h.kind = 3 AND h.identifier = c.identifier ORDER BY h.entity, sequence",
			func(stmt *sqlite.Stmt) audit.FailedRow {
				return audit.FailedRow{Entity: numbered(stmt), Function: stmt.ColumnText(1), CallEntry: failedCall(stmt, 2)}
			}),
		Long: all(v.conn, "SELECT h.entity, "+longColumns+" FROM long_calls c LEFT JOIN heads h ON h.kind = 3 AND h.identifier = c.identifier ORDER BY h.entity, sequence",
			func(stmt *sqlite.Stmt) audit.LongRow {
				return audit.LongRow{Entity: numbered(stmt), CallPlace: longCall(stmt, 1), Received: oda.Instant(stmt.ColumnInt64(4))}
			}),
	}, v.report)
}

// versionRow reads the columns of a version: entity, position, version, stored_by,
// stored_on, sequence_before, sequence_after, runs, slots, text, digest.
func versionRow(stmt *sqlite.Stmt) (row engine.VersionRow, text []byte, err error) {
	text = bytesOf(stmt, 9)
	runs, runsErr := decodeRuns(bytesOf(stmt, 7))
	slots, slotsErr := decodeSlots(bytesOf(stmt, 8), len(text))
	return engine.VersionRow{
		Place: place(new(placeRoom), stmt.ColumnInt64(1), stmt.ColumnInt64(0)), Version: stmt.ColumnInt64(2),
		By: stmt.ColumnText(3), On: oda.Instant(stmt.ColumnInt64(4)), Before: stmt.ColumnInt64(5), After: stmt.ColumnInt64(6),
		Runs: runs, Slots: slots, Digest: digestOf(stmt, 10),
	}, text, errors.Join(runsErr, slotsErr)
}

// recordRow reads the columns of a record: entity, position, sequence, version,
// recorded_by, recorded_on, key, digest.
func recordRow(stmt *sqlite.Stmt) engine.RecordRow {
	return engine.RecordRow{
		Place: place(new(placeRoom), stmt.ColumnInt64(1), stmt.ColumnInt64(0)), Sequence: stmt.ColumnInt64(2), Version: stmt.ColumnInt64(3),
		By: stmt.ColumnText(4), On: oda.Instant(stmt.ColumnInt64(5)), Key: stmt.ColumnText(6), Digest: digestOf(stmt, 7),
	}
}

// positions checks that the log has no gaps: the positions of versions, records
// and statuses together count from 1 to the last one.
func (v verifier) positions() error {
	last := int64(0)
	err := v.query("SELECT position FROM versions UNION ALL SELECT position FROM records UNION ALL SELECT position FROM statuses ORDER BY position", func(stmt *sqlite.Stmt) error {
		position := stmt.ColumnInt64(0)
		switch {
		case position == last:
			v.report.Add(audit.Log, "the log", "has position %d twice", position)
		case position > last+1:
			v.report.Add(audit.Gap, "the log", "the positions %d to %d are missing", last+1, position-1)
		}
		last = position
		return nil
	})
	if err != nil {
		return err
	}
	should, err := v.number("SELECT last_position FROM state")
	if err == nil && should != last {
		v.report.Add(audit.Gap, "the log", "ends at position %d, but should end at %d", last, should)
	}
	return err
}

// indexes compares the counts, the keys of creations and the index of terms with
// the heads.
func (v verifier) indexes() error {
	for _, kind := range oda.Kinds {
		err := v.query("SELECT coalesce((SELECT n FROM counts WHERE kind = ?1), 0), (SELECT count(*) FROM heads WHERE kind = ?1)", func(stmt *sqlite.Stmt) error {
			if counted, there := stmt.ColumnInt64(0), stmt.ColumnInt64(1); counted != there {
				v.report.Add(audit.Index, "the counts", "say that there are %d %ss, but there are %d", counted, kind, there)
			}
			return nil
		}, int64(kind))
		if err != nil {
			return err
		}
	}
	err := v.query(`SELECT indexed_entity, (SELECT coalesce(max(entity), 0) FROM heads) FROM state`, func(stmt *sqlite.Stmt) error {
		if indexed, last := stmt.ColumnInt64(0), stmt.ColumnInt64(1); indexed < 0 || indexed > last {
			v.report.Add(audit.Index, "the index of words and references", "says that it has all entities up to %d, but the last one is %d", indexed, last)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := v.hours(); err != nil {
		return err
	}
	err = v.query(`SELECT kind, identifier, create_key, create_digest, create_seal FROM heads WHERE coalesce(create_key, create_digest, create_seal) IS NOT NULL`,
		func(stmt *sqlite.Stmt) error {
			ref := oda.Ref{Kind: audit.KindOf(stmt.ColumnInt64(0)), ID: stmt.ColumnText(1)}
			v.report.Key(ref, stmt.ColumnText(2), bytesOf(stmt, 3), bytesOf(stmt, 4))
			return nil
		})
	if err != nil {
		return err
	}
	return v.query(`SELECT kind, identifier FROM heads WHERE entity <= (SELECT indexed_entity FROM state)
		AND NOT EXISTS (SELECT 1 FROM unindexed u WHERE u.entity = heads.entity) AND NOT EXISTS (SELECT 1 FROM terms_docsize d WHERE d.id = heads.entity)`,
		func(stmt *sqlite.Stmt) error {
			v.report.Add(audit.Index, fmt.Sprintf("%s %s", audit.KindOf(stmt.ColumnInt64(0)), stmt.ColumnText(1)), "the index of words and references does not have it")
			return nil
		})
}

// hours checks that failed_hours leads to all calls that failed.
func (v verifier) hours() error {
	for what, column := range failedBy[1:] {
		err := v.query(fmt.Sprintf(`SELECT identifier, sequence FROM failed_calls c WHERE %[1]s <> '' AND NOT EXISTS (SELECT 1 FROM failed_hours
			WHERE what = ?1 AND value = c.%[1]s AND hour = (c.at - ((c.at %% ?2) + ?2) %% ?2) / ?2)`, column), func(stmt *sqlite.Stmt) error {
			v.report.Add(audit.Index, fmt.Sprintf("%s %s, record %d", oda.ExecutionBlock, stmt.ColumnText(0), stmt.ColumnInt64(1)),
				"the hours of calls that failed do not lead to it by its %s", column)
			return nil
		}, int64(what+1), int64(microsecondsOfHour))
		if err != nil {
			return err
		}
	}
	return nil
}

// terms compares the index of terms with the catalogue, except for entities that a
// server has yet to move there. FTS5 reads its index term by term, and the catalogue
// is read entity by entity. So sums over the terms of entities are compared: first
// of groups of entities, so that memory does not grow with the archive, then of
// each entity in groups that differ.
func (v verifier) terms() error {
	err := v.script("CREATE VIRTUAL TABLE temp.index_terms USING fts5vocab(main, terms, instance)")
	if err != nil {
		return err
	}
	last, err := v.number("SELECT coalesce(max(entity), 0) FROM heads")
	if err != nil {
		return err
	}
	if err := v.reachable(); err != nil {
		return err
	}
	size := last/summedGroups + 1
	groups, err := v.termsDiffer(func(entity int64) (int64, bool) { return entity / size, true })
	if err != nil || len(groups) == 0 {
		return err
	}
	if len(groups) > namedGroups {
		v.report.Add(audit.Index, "the index of words and references", "has other terms than the documents, in %d of %d groups of %d entities", len(groups), last/size+1, size)
		for _, group := range slices.Sorted(maps.Keys(groups))[namedGroups:] {
			delete(groups, group)
		}
	}
	entities, err := v.termsDiffer(func(entity int64) (int64, bool) { return entity, groups[entity/size] })
	if err != nil {
		return err
	}
	for _, entity := range slices.Sorted(maps.Keys(entities)) {
		name, err := v.nameOf(entity)
		if err != nil {
			return err
		}
		v.report.Add(audit.Index, name, "the index of words and references has other terms than its document")
	}
	return nil
}

// termsDiffer returns the groups of entities whose sums of terms differ between the
// index and the catalogue. Entities that group does not want are left out.
func (v verifier) termsDiffer(group func(entity int64) (int64, bool)) (map[int64]bool, error) {
	sums := make(map[int64]uint64)
	add := func(entity int64, term string, sign uint64) {
		if g, wanted := group(entity); wanted {
			sums[g] += sign * termSum(entity, term)
		}
	}
	err := v.query("SELECT doc, term FROM temp.index_terms WHERE doc NOT IN (SELECT entity FROM unindexed)", func(stmt *sqlite.Stmt) error {
		add(stmt.ColumnInt64(0), stmt.ColumnText(1), 1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = v.query(`SELECT h.entity, h.kind, h.identifier, c.summary FROM heads h JOIN catalogue c ON c.entity = h.entity
		WHERE h.entity <= (SELECT indexed_entity FROM state) AND h.entity NOT IN (SELECT entity FROM unindexed) ORDER BY h.entity`,
		func(stmt *sqlite.Stmt) error {
			ref := oda.Ref{Kind: audit.KindOf(stmt.ColumnInt64(1)), ID: stmt.ColumnText(2)}
			summary, err := oda.UnpackSummary(bytesOf(stmt, 3))
			if err != nil {
				return nil // it was already reported as damaged
			}
			terms := strings.Fields(strings.Map(asciiLower, summary.TermList(ref)))
			slices.Sort(terms)
			for _, term := range slices.Compact(terms) {
				add(stmt.ColumnInt64(0), term, math.MaxUint64) // takes it away
			}
			return nil
		})
	maps.DeleteFunc(sums, func(_ int64, sum uint64) bool { return sum == 0 })
	groups := make(map[int64]bool, len(sums))
	for g := range sums {
		groups[g] = true
	}
	return groups, err
}

// nameOf returns how an entity is named in the report.
func (v verifier) nameOf(entity int64) (string, error) {
	name := fmt.Sprintf("entity %d", entity)
	err := v.query("SELECT kind, identifier FROM heads WHERE entity = ?", func(stmt *sqlite.Stmt) error {
		name = fmt.Sprintf("%s %s", audit.KindOf(stmt.ColumnInt64(0)), stmt.ColumnText(1))
		return nil
	}, entity)
	return name, err
}

// reachable searches for some of the terms, several on each page of the index. FTS5 finds
// the page of a term in a table of its own, which it does not need to read all terms.
func (v verifier) reachable() error {
	nth := 0
	return v.query("SELECT doc, term FROM temp.index_terms WHERE doc NOT IN (SELECT entity FROM unindexed)", func(stmt *sqlite.Stmt) error {
		if nth++; nth%searchedEvery != 1 {
			return nil
		}
		entity, found := stmt.ColumnInt64(0), false
		term := `"` + strings.ReplaceAll(stmt.ColumnText(1), `"`, `""`) + `"`
		err := v.query("SELECT 1 FROM terms WHERE terms MATCH ? AND rowid = ?", func(*sqlite.Stmt) error {
			found = true
			return nil
		}, term, entity)
		if err != nil || found {
			return err
		}
		name, err := v.nameOf(entity)
		if err == nil {
			v.report.Add(audit.Index, name, "a search for one of its words or references does not find it")
		}
		return err
	})
}

// asciiLower folds a character as FTS5 does with the tokenizer ascii.
func asciiLower(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

// Bounds of the comparison.
const (
	summedGroups = 1 << 16 // of entities
	namedGroups  = 1 << 10 // whose entities are named

	searchedEvery = 32 // a page of the index has some hundred terms
)

// termSum returns a number for a term of an entity. The sum of these numbers is the
// same for the same terms, in whatever order they come.
func termSum(entity int64, term string) uint64 {
	return maphash.Comparable(termSeed, entityTerm{entity, term})
}

type entityTerm struct {
	entity int64
	term   string
}

var termSeed = maphash.MakeSeed()
