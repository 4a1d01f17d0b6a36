// Package sky reads positions and circles on the sky, as documents and people write
// them, and divides the sky into the cells by which an index finds targets.
//
// All angles are in degrees, ICRS.
package sky
