package vfs

import (
	"encoding/binary"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

var (
	ownLayer *lib.Tsqlite3_vfs        // SQLite's own
	ownLog   *lib.Tsqlite3_io_methods // of a log in SQLite's own layer
	thisLog  uintptr                  // of a log in this layer

	// opened keeps the logs that are open: the garbage collector does not see their
	// addresses in SQLite's handles.
	opened struct {
		sync.Mutex
		logs      map[*logFile]struct{}
		databases map[uintptr]uintptr // functions of databases, by those of SQLite's own layer
	}
)

// A frame of the log begins with a header of FrameHeader bytes. At FrameSize it says how
// large the database is after the transaction, or 0 if more frames of it follow.
const (
	FrameHeader = 24
	FrameSize   = 4
)

// gatherBytes is how much of a transaction is gathered. SQLite's own layer writes
// less than 128 KiB at once.
const gatherBytes = 120 << 10

// logFile is a write-ahead log that a connection has open. A transaction is in the
// file before SQLite tells other connections about it. Until then nobody else
// reads its pages, so they can wait here. They must not wait any longer than the
// transaction: after a rollback, their place belongs to whoever writes next.
type logFile struct {
	start   int64  // where the text belongs
	text    []byte // not yet written
	commits bool   // the last frame ends a transaction
	synced  bool
}

// Install puts this layer under all connections that are opened later.
var Install = sync.OnceFunc(func() {
	tls := libc.NewTLS()
	defer tls.Close()
	ownLayer = At[lib.Tsqlite3_vfs](lib.Xsqlite3_vfs_find(tls, 0))
	layer := *ownLayer // except for opening
	layer.FszOsFile += int32(unsafe.Sizeof(uintptr(0)))
	layer.FxOpen = Function(openFile)
	opened.logs, opened.databases = make(map[*logFile]struct{}), make(map[uintptr]uintptr)
	if rc := lib.Xsqlite3_vfs_register(tls, placed(tls, layer), 1); rc != lib.SQLITE_OK {
		panic(rc)
	}
	if rc := lib.Xsqlite3_auto_extension(tls, Function(keepPlans)); rc != lib.SQLITE_OK {
		panic(rc)
	}
})

// logAt returns the place in the handle of a database, or of its log, that has the
// address of the log.
func logAt(file uintptr) *uintptr { return At[uintptr](file + uintptr(ownLayer.FszOsFile)) }

func logOf(file uintptr) *logFile { return At[logFile](*logAt(file)) }

func openFile(tls *libc.TLS, _, name, file uintptr, flags int32, outFlags uintptr) int32 {
	open := Called[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](ownLayer.FxOpen)
	rc := open(tls, uintptr(unsafe.Pointer(ownLayer)), name, file, flags, outFlags)
	if rc != lib.SQLITE_OK || flags&(lib.SQLITE_OPEN_WAL|lib.SQLITE_OPEN_MAIN_DB) == 0 {
		return rc
	}
	opened.Lock()
	defer opened.Unlock()
	methods := &At[lib.Tsqlite3_file](file).FpMethods
	if flags&lib.SQLITE_OPEN_MAIN_DB != 0 {
		if opened.databases[*methods] == 0 {
			database := *At[lib.Tsqlite3_io_methods](*methods)
			database.FxShmLock = Function(lockLog)
			opened.databases[*methods] = placed(tls, database)
		}
		*methods = opened.databases[*methods]
		return rc
	}
	if ownLog == nil {
		ownLog = At[lib.Tsqlite3_io_methods](*methods)
		log := *ownLog
		log.FxRead, log.FxWrite, log.FxSync, log.FxClose = Function(readLog), Function(writeLog), Function(syncLog), Function(closeLog)
		thisLog = placed(tls, log)
	}
	*methods = thisLog
	log := &logFile{}
	opened.logs[log] = struct{}{}
	*logAt(file) = uintptr(unsafe.Pointer(log))
	*logAt(lib.Xsqlite3_database_file_object(tls, name)) = uintptr(unsafe.Pointer(log))
	return rc
}

// writeLog gathers the pages of a transaction, which follow each other, and writes
// them with the last one. It does not gather what changes earlier pages.
func writeLog(tls *libc.TLS, file, text uintptr, length int32, offset lib.Tsqlite3_int64) int32 {
	log, added := logOf(file), unsafe.Slice(At[byte](text), length)
	if length == FrameHeader {
		log.commits = binary.BigEndian.Uint32(added[FrameSize:]) != 0
	}
	follows := offset == log.start+int64(len(log.text))
	if !follows || len(log.text)+len(added) > gatherBytes {
		if rc := log.flush(tls, file); rc != lib.SQLITE_OK {
			return rc
		}
	}
	if !follows {
		log.start = offset + int64(length)
		return ownWrite(tls, file, text, length, offset)
	}
	log.text = append(log.text, added...)
	if length == FrameHeader || !log.commits {
		return lib.SQLITE_OK
	}
	return log.flush(tls, file)
}

// flush writes what was gathered. If that fails, it stays: the transaction need not
// be over, since SQLite may undo only the statement that it was in.
func (log *logFile) flush(tls *libc.TLS, file uintptr) int32 {
	length := len(log.text)
	if length == 0 {
		return lib.SQLITE_OK
	}
	rc := ownWrite(tls, file, uintptr(unsafe.Pointer(&log.text[0])), int32(length), log.start)
	if rc == lib.SQLITE_OK {
		log.start += int64(length)
		log.text = log.text[:0]
	}
	return rc
}

func ownWrite(tls *libc.TLS, file, text uintptr, length int32, offset lib.Tsqlite3_int64) int32 {
	return Called[func(*libc.TLS, uintptr, uintptr, int32, lib.Tsqlite3_int64) int32](ownLog.FxWrite)(tls, file, text, length, offset)
}

// syncLog makes the log durable. The first time SQLite does it, since the log may
// be new, and then the directory must be durable, too.
func syncLog(tls *libc.TLS, file uintptr, flags int32) int32 {
	log := logOf(file)
	if rc := log.flush(tls, file); rc != lib.SQLITE_OK {
		return rc
	}
	if log.synced {
		return syncData(tls, file, flags)
	}
	rc := ownSync(tls, file, flags)
	log.synced = rc == lib.SQLITE_OK
	return rc
}

func ownSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	return Called[func(*libc.TLS, uintptr, int32) int32](ownLog.FxSync)(tls, file, flags)
}

// readLog writes what was gathered if that is to be read. Otherwise it must not: the
// rollback after a failed commit reads older pages, and would put the commit into
// the log after all.
func readLog(tls *libc.TLS, file, text uintptr, length int32, offset lib.Tsqlite3_int64) int32 {
	if log := logOf(file); offset+int64(length) > log.start {
		if rc := log.flush(tls, file); rc != lib.SQLITE_OK {
			return rc
		}
	}
	return Called[func(*libc.TLS, uintptr, uintptr, int32, lib.Tsqlite3_int64) int32](ownLog.FxRead)(tls, file, text, length, offset)
}

// lockLog locks or unlocks a part of the log's index, for which SQLite's own layer has
// one function for all kinds of file. A transaction ends when the right to write is
// given up. What is left of it then was rolled back. So nothing is gathered when
// SQLite looks at the size of the log or truncates it, which it does in between.
func lockLog(tls *libc.TLS, database uintptr, part, parts, flags int32) int32 {
	if part == lib.WAL_WRITE_LOCK && flags&lib.SQLITE_SHM_UNLOCK != 0 {
		log := logOf(database)
		log.text = log.text[:0]
	}
	return Called[func(*libc.TLS, uintptr, int32, int32, int32) int32](ownLog.FxShmLock)(tls, database, part, parts, flags)
}

func closeLog(tls *libc.TLS, file uintptr) int32 {
	opened.Lock()
	delete(opened.logs, logOf(file))
	opened.Unlock()
	return Called[func(*libc.TLS, uintptr) int32](ownLog.FxClose)(tls, file)
}
