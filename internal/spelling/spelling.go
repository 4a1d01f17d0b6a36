// Package spelling finds the word that somebody meant.
package spelling

import "slices"

// Nearest returns the word that takes the fewest changes to reach from another. There
// must be at least one word.
func Nearest(from string, words []string) string {
	return slices.MinFunc(words, func(a, b string) int { return distance(from, a) - distance(from, b) })
}

// Near returns the nearest word, or "" if it is too far away to be what
// somebody meant.
func Near(from string, words []string) string {
	if len(words) == 0 {
		return ""
	}
	nearest := Nearest(from, words)
	changes := distance(from, nearest)
	if changes > max(2, len(from)/3) || 2*changes > max(len(from), len(nearest)) {
		return ""
	}
	return nearest
}

// distance counts the bytes to insert, remove, replace or swap with the next one to turn
// one text into the other.
func distance(from, to string) int {
	var before, row, next []int // for the first i-1, i and i+1 bytes of from
	for j := range len(to) + 1 {
		row = append(row, j)
	}
	for i := range len(from) {
		next = append(make([]int, 0, len(row)), i+1)
		for j := range len(to) {
			replaced := row[j]
			if from[i] != to[j] {
				replaced++
			}
			least := min(replaced, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && from[i] == to[j-1] && from[i-1] == to[j] {
				least = min(least, before[j-1]+1)
			}
			next = append(next, least)
		}
		before, row = row, next
	}
	return row[len(to)]
}
