// Package fault has tools with which tests, measurements and the drill inflict
// the faults of machines and networks on an archive.
//
// A Process is a program that can be killed. A Yard is a directory in which
// programs run; when its owner ends, even by SIGKILL, its programs end and the
// directory is removed. A Cluster is a throw-away PostgreSQL in a yard, which
// can be stopped, killed and copied. A Proxy is a network connection that can
// be cut.
//
// Tests use them through internal/test/env, which ties them to a test. The
// archive itself uses none of them.
package fault
