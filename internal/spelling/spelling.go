// Package spelling finds the word that somebody meant.
package spelling

import "slices"

// Nearest returns the word that takes the fewest changes to reach from another, and
// how many those are. There must be at least one word.
func Nearest(from string, words []string) (nearest string, changes int) {
	nearest = slices.MinFunc(words, func(a, b string) int { return distance(from, a) - distance(from, b) })
	return nearest, distance(from, nearest)
}

// distance counts the bytes to insert, remove or replace on the way from one
// text to the other.
func distance(from, to string) int {
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(from) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(to) {
			replaced := diagonal
			if from[i] != to[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(to)]
}
