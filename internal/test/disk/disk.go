// Package disk puts a disk that tests control under an archive of the embedded engine.
package disk

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"oda/internal/sqlite/vfs"
)

// disks holds the disks under the archives that tests watch, by the paths of the
// archive and of its write-ahead log. Such a disk counts reads of the archive, can
// fail to sync the log, and knows what a power cut would leave of it.
var disks struct {
	sync.Mutex
	byPath map[string]*Disk
	byFile map[uintptr]*Disk // SQLite's handle
}

// Disk is the disk under one archive. As on Linux, what is written to the log
// between two syncs reaches the disk with the second sync. If that fails, it never
// does, although it can still be read.
type Disk struct {
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

// Watch puts a disk under an archive that is not yet open.
func Watch(t *testing.T, archive string) *Disk {
	t.Helper()
	registerVFS()
	d := &Disk{}
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

// Refuse makes the next syncs fail.
func (d *Disk) Refuse(syncs int) {
	disks.Lock()
	defer disks.Unlock()
	d.refuses = syncs
}

// Failures returns the number of syncs that have failed.
func (d *Disk) Failures() int {
	disks.Lock()
	defer disks.Unlock()
	return d.failed
}

// PagesRead returns the number of pages of the archive that were read.
func (d *Disk) PagesRead() int {
	disks.Lock()
	defer disks.Unlock()
	return d.read
}

// AfterKill copies an archive as the next process would find it after this one was
// killed.
func AfterKill(t *testing.T, archive string) string {
	t.Helper()
	wal, err := os.ReadFile(archive + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return copied(t, archive, wal)
}

// AfterPowerCut copies an archive as it would be found after a power cut. The file
// itself must not have changed since Watch was called.
func (d *Disk) AfterPowerCut(t *testing.T, archive string) string {
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
	path := filepath.Join(t.TempDir(), "archive.db")
	for name, content := range map[string][]byte{path: text, path + "-wal": wal} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// sync makes what is pending durable, or loses it.
func (d *Disk) sync() (refused bool) {
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
	vfs.Install()
	disks.byPath, disks.byFile = make(map[string]*Disk), make(map[uintptr]*Disk)
	tls := libc.NewTLS()
	defer tls.Close()
	below = vfs.At[lib.Tsqlite3_vfs](lib.Xsqlite3_vfs_find(tls, 0))
	over = *below
	over.FxOpen = vfs.Function(watchOpen)
	if rc := lib.Xsqlite3_vfs_register(tls, uintptr(unsafe.Pointer(&over)), 1); rc != lib.SQLITE_OK {
		panic(rc)
	}
})

func watchOpen(tls *libc.TLS, _, name, file uintptr, flags int32, outFlags uintptr) int32 {
	open := vfs.Called[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](below.FxOpen)
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
	methods := &vfs.At[lib.Tsqlite3_file](file).FpMethods
	if flags&lib.SQLITE_OPEN_WAL != 0 {
		if plain == nil {
			plain = vfs.At[lib.Tsqlite3_io_methods](*methods)
			watching = *plain
			watching.FxWrite, watching.FxSync, watching.FxTruncate, watching.FxClose =
				vfs.Function(watchWrite), vfs.Function(watchSync), vfs.Function(watchTruncate), vfs.Function(watchClose)
		}
		*methods = uintptr(unsafe.Pointer(&watching))
	} else {
		if uncounted == nil {
			uncounted = vfs.At[lib.Tsqlite3_io_methods](*methods)
			counting = *uncounted
			counting.FxRead, counting.FxClose = vfs.Function(countRead), vfs.Function(countClose)
		}
		*methods = uintptr(unsafe.Pointer(&counting))
	}
	disks.byFile[file] = d
	return rc
}

func watched(file uintptr) *Disk {
	disks.Lock()
	defer disks.Unlock()
	return disks.byFile[file]
}

func countRead(tls *libc.TLS, file, text uintptr, length int32, offset lib.Tsqlite3_int64) int32 {
	d := watched(file)
	disks.Lock()
	d.read++
	disks.Unlock()
	return vfs.Called[func(*libc.TLS, uintptr, uintptr, int32, lib.Tsqlite3_int64) int32](uncounted.FxRead)(tls, file, text, length, offset)
}

func watchWrite(tls *libc.TLS, file, text uintptr, length int32, offset lib.Tsqlite3_int64) int32 {
	d := watched(file)
	disks.Lock()
	d.pending = append(d.pending, piece{offset, slices.Clone(unsafe.Slice(vfs.At[byte](text), length))})
	disks.Unlock()
	return vfs.Called[func(*libc.TLS, uintptr, uintptr, int32, lib.Tsqlite3_int64) int32](plain.FxWrite)(tls, file, text, length, offset)
}

func watchSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	d := watched(file)
	disks.Lock()
	refused := d.sync()
	disks.Unlock()
	if refused {
		return lib.SQLITE_IOERR_FSYNC
	}
	return vfs.Called[func(*libc.TLS, uintptr, int32) int32](plain.FxSync)(tls, file, flags)
}

func watchTruncate(tls *libc.TLS, file uintptr, size lib.Tsqlite3_int64) int32 {
	d := watched(file)
	disks.Lock()
	d.kept, d.pending = d.kept[:min(size, int64(len(d.kept)))], nil
	disks.Unlock()
	return vfs.Called[func(*libc.TLS, uintptr, lib.Tsqlite3_int64) int32](plain.FxTruncate)(tls, file, size)
}

func watchClose(tls *libc.TLS, file uintptr) int32 { return closeFile(tls, file, plain) }

func countClose(tls *libc.TLS, file uintptr) int32 { return closeFile(tls, file, uncounted) }

func closeFile(tls *libc.TLS, file uintptr, own *lib.Tsqlite3_io_methods) int32 {
	disks.Lock()
	delete(disks.byFile, file)
	disks.Unlock()
	return vfs.Called[func(*libc.TLS, uintptr) int32](own.FxClose)(tls, file)
}
