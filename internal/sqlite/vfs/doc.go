// Package vfs makes commits cheaper: it sits between SQLite and SQLite's own layer
// over the operating system.
//
// SQLite writes each page of its write-ahead log in two calls, and its Go build
// syncs the file's times along with its data. For a small transaction that takes
// longer than everything else. This layer writes a transaction to the log in one
// call, and syncs the data alone, as the SQLite of a Linux distribution does.
//
// To do so it reaches into modernc.org/sqlite, further than any documentation goes.
// A test fails when that module, modernc.org/libc or zombiezen.com/go/sqlite has
// another version than the one that was read. It relies on this:
//
//   - zombiezen.com/go/sqlite opens connections with the default VFS, and links the
//     same modernc.org/sqlite/lib as this package (OpenConn).
//   - The functions in lib.Tsqlite3_vfs and lib.Tsqlite3_io_methods are Go functions
//     with the parameters of their C originals after a *libc.TLS, kept as the address
//     of the function value (lib.Xsqlite3_vfs_find, and any call through FxWrite).
//   - There is one set of methods for logs, and it does not change. A handle has
//     szOsFile bytes, which SQLite does not move, and it finds the methods in
//     FpMethods (unixOpen, sqlite3PagerOpen, sqlite3WalOpen).
//   - The database's handle is found by the name of its log
//     (sqlite3_database_file_object), and is open before it.
//   - A frame of the log is written as its header alone, then its page, at once and
//     in order. The last header of a transaction says how large the database is
//     (walWriteOneFrame, sqlite3WalFrames). Only then the log is synced, and only
//     then other connections are told.
//   - Who wrote gives up WAL_WRITE_LOCK through xShmLock of the database's handle, as
//     the last step of a commit or a rollback (sqlite3WalEndWriteTransaction). Before
//     that, nobody asks for the size of the log or truncates it.
//   - A new connection is given to each automatic extension, as the first parameter
//     after *libc.TLS (sqlite3AutoLoadExtensions). With SQLITE_DBCONFIG_ENABLE_QPSG, no
//     statement asks to be compiled again when a value is bound (sqlite3ExprIsInteger).
//   - The descriptor of a file is the field Fh of lib.TunixFile (unixSync).
package vfs
