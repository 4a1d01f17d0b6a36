package sqlite

import (
	"os"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// disks holds the disks under the archives that tests watch, by the paths of the
// archive and of its write-ahead log. Such a disk counts reads of the archive, can
// fail to sync the log, and knows what a power cut would leave of it.
var disks struct {
	sync.Mutex
	byPath map[string]*disk
	byFile map[uintptr]*disk // SQLite's handle
}

// disk is the disk under one archive. As on Linux, what is written to the log
// between two syncs reaches the disk with the second sync. If that fails, it never
// does, although it can still be read.
type disk struct {
	read    int // pages of the archive that were read
	refuses int // the next syncs that fail
	failed  int // syncs that have failed
	kept    []byte
	pending []piece
}

type piece struct {
	at   int64
	text []byte
}

// watch puts a disk under an archive that is not yet open.
func watch(t *testing.T, archive string) *disk {
	t.Helper()
	registerVFS()
	d := &disk{}
	disks.Lock()
	defer disks.Unlock()
	disks.byPath[archive], disks.byPath[archive+"-wal"] = d, d
	t.Cleanup(func() {
		disks.Lock()
		defer disks.Unlock()
		delete(disks.byPath, archive)
		delete(disks.byPath, archive+"-wal")
	})
	return d
}

// refuse makes the next syncs fail.
func (d *disk) refuse(syncs int) {
	disks.Lock()
	defer disks.Unlock()
	d.refuses = syncs
}

// failures returns the number of syncs that have failed.
func (d *disk) failures() int {
	disks.Lock()
	defer disks.Unlock()
	return d.failed
}

// pagesRead returns the number of pages of the archive that were read.
func (d *disk) pagesRead() int {
	disks.Lock()
	defer disks.Unlock()
	return d.read
}

// afterKill copies an archive as the next process would find it after this one was
// killed.
func afterKill(t *testing.T, archive string) string {
	t.Helper()
	wal, err := os.ReadFile(archive + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return copied(t, archive, wal)
}

// afterPowerCut copies an archive as it would be found after a power cut. The file
// itself must not have changed since watch was called.
func (d *disk) afterPowerCut(t *testing.T, archive string) string {
	t.Helper()
	disks.Lock()
	defer disks.Unlock()
	return copied(t, archive, d.kept)
}

func copied(t *testing.T, archive string, wal []byte) string {
	t.Helper()
	text, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	path := archivePath(t)
	for name, content := range map[string][]byte{path: text, path + "-wal": wal} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// sync makes what is pending durable, or loses it.
func (d *disk) sync() (refused bool) {
	pending := d.pending
	d.pending = nil
	if d.refuses > 0 {
		d.refuses--
		d.failed++
		return true
	}
	for _, p := range pending {
		if end := p.at + int64(len(p.text)); end > int64(len(d.kept)) {
			d.kept = append(d.kept, make([]byte, end-int64(len(d.kept)))...)
		}
		copy(d.kept[p.at:], p.text)
	}
	return false
}

// The functions below sit between SQLite and its own layer over the operating
// system. That is all that is possible without another build of SQLite.
var (
	below     *lib.Tsqlite3_vfs        // SQLite's own layer
	over      lib.Tsqlite3_vfs         // the same, except for opening
	plain     *lib.Tsqlite3_io_methods // of a log in SQLite's own layer
	watching  lib.Tsqlite3_io_methods  // of a log that is watched
	uncounted *lib.Tsqlite3_io_methods // of an archive in SQLite's own layer
	counting  lib.Tsqlite3_io_methods  // of an archive that is watched
)

// registerVFS installs the layer for all connections that are opened later.
var registerVFS = sync.OnceFunc(func() {
	gatherLog()
	disks.byPath, disks.byFile = make(map[string]*disk), make(map[uintptr]*disk)
	tls := libc.NewTLS()
	defer tls.Close()
	below = at[lib.Tsqlite3_vfs](lib.Xsqlite3_vfs_find(tls, 0))
	over = *below
	over.FxOpen = function(watchOpen)
	if rc := lib.Xsqlite3_vfs_register(tls, uintptr(unsafe.Pointer(&over)), 1); rc != lib.SQLITE_OK {
		panic(rc)
	}
})

func watchOpen(tls *libc.TLS, _, name, file uintptr, flags int32, outFlags uintptr) int32 {
	open := called[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](below.FxOpen)
	rc := open(tls, uintptr(unsafe.Pointer(below)), name, file, flags, outFlags)
	if rc != lib.SQLITE_OK || flags&(lib.SQLITE_OPEN_WAL|lib.SQLITE_OPEN_MAIN_DB) == 0 {
		return rc
	}
	path := libc.GoString(name)
	disks.Lock()
	defer disks.Unlock()
	d := disks.byPath[path]
	if d == nil {
		return rc
	}
	methods := &at[lib.Tsqlite3_file](file).FpMethods
	if flags&lib.SQLITE_OPEN_WAL != 0 {
		if plain == nil {
			plain = at[lib.Tsqlite3_io_methods](*methods)
			watching = *plain
			watching.FxWrite, watching.FxSync, watching.FxTruncate, watching.FxClose =
				function(watchWrite), function(watchSync), function(watchTruncate), function(watchClose)
		}
		*methods = uintptr(unsafe.Pointer(&watching))
	} else {
		if uncounted == nil {
			uncounted = at[lib.Tsqlite3_io_methods](*methods)
			counting = *uncounted
			counting.FxRead, counting.FxClose = function(countRead), function(countClose)
		}
		*methods = uintptr(unsafe.Pointer(&counting))
	}
	disks.byFile[file] = d
	return rc
}

func watched(file uintptr) *disk {
	disks.Lock()
	defer disks.Unlock()
	return disks.byFile[file]
}

func countRead(tls *libc.TLS, file, text uintptr, length int32, offset lib.Tsqlite3_int64) int32 {
	d := watched(file)
	disks.Lock()
	d.read++
	disks.Unlock()
	return called[func(*libc.TLS, uintptr, uintptr, int32, lib.Tsqlite3_int64) int32](uncounted.FxRead)(tls, file, text, length, offset)
}

func watchWrite(tls *libc.TLS, file, text uintptr, length int32, offset lib.Tsqlite3_int64) int32 {
	d := watched(file)
	disks.Lock()
	d.pending = append(d.pending, piece{offset, slices.Clone(unsafe.Slice(at[byte](text), length))})
	disks.Unlock()
	return called[func(*libc.TLS, uintptr, uintptr, int32, lib.Tsqlite3_int64) int32](plain.FxWrite)(tls, file, text, length, offset)
}

func watchSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	d := watched(file)
	disks.Lock()
	refused := d.sync()
	disks.Unlock()
	if refused {
		return lib.SQLITE_IOERR_FSYNC
	}
	return called[func(*libc.TLS, uintptr, int32) int32](plain.FxSync)(tls, file, flags)
}

func watchTruncate(tls *libc.TLS, file uintptr, size lib.Tsqlite3_int64) int32 {
	d := watched(file)
	disks.Lock()
	d.kept, d.pending = d.kept[:min(size, int64(len(d.kept)))], nil
	disks.Unlock()
	return called[func(*libc.TLS, uintptr, lib.Tsqlite3_int64) int32](plain.FxTruncate)(tls, file, size)
}

func watchClose(tls *libc.TLS, file uintptr) int32 { return closeFile(tls, file, plain) }

func countClose(tls *libc.TLS, file uintptr) int32 { return closeFile(tls, file, uncounted) }

func closeFile(tls *libc.TLS, file uintptr, own *lib.Tsqlite3_io_methods) int32 {
	disks.Lock()
	delete(disks.byFile, file)
	disks.Unlock()
	return called[func(*libc.TLS, uintptr) int32](own.FxClose)(tls, file)
}
