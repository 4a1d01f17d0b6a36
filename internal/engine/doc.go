// Package engine holds what the engines share and the rules need not know:
// listings that are read slowly, and whether writing works.
package engine
