package vfs

import (
	"unsafe"

	"modernc.org/libc"
)

// SQLite's Go code was translated from C. Its structures are outside Go's memory, it
// passes their addresses as numbers, and it refers to a function by the address of
// Go's function value. The functions below translate. Only this package and the disk
// of the tests may use them.

// At returns the value at an address that SQLite passed.
func At[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// Function returns a Go function as SQLite refers to it.
func Function(f any) uintptr { return (*[2]uintptr)(unsafe.Pointer(&f))[1] }

// Called returns the function that SQLite refers to.
func Called[F any](address uintptr) F { return *(*F)(unsafe.Pointer(&address)) }

// placed returns the address of a copy of a value in SQLite's memory. SQLite computes
// with addresses, which the race detector forbids for those of Go's memory.
func placed[T any](tls *libc.TLS, value T) uintptr {
	address := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(value)))
	*At[T](address) = value
	return address
}
