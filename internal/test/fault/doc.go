// Package fault has the tools with which tests, measurements and the drill do
// to an archive what machines and networks do.
//
// A Process is a program that can be killed. A Yard is a directory in which
// programs run; however its owner ends, also by SIGKILL, its programs end and
// the directory is removed. A Cluster is a throw-away PostgreSQL in a yard,
// which can be stopped, killed and copied. A Proxy is a piece of network that
// can be cut.
//
// Tests use them through internal/test/env, which ties them to a test. The
// archive itself uses none of them.
package fault
