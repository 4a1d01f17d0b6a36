//go:build !linux

package vfs

import "modernc.org/libc"

// syncData makes a file durable.
func syncData(tls *libc.TLS, file uintptr, flags int32) int32 { return ownSync(tls, file, flags) }
