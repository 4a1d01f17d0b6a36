// Package docs holds the pages of the documentation that a running archive
// shows to people.
package docs

import _ "embed"

// Interface is the guide to the interface: the rules that all operations share.
//
//go:embed interface.md
var Interface []byte

// Problems explains every problem, each in a section headed by its code.
//
//go:embed problems.md
var Problems []byte
