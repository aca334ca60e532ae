// Package nearest finds the name that is meant by a mistyped one.
package nearest

import "strings"

// minPrefix is the length of the shortest prefix that can stand for a name.
const minPrefix = 3

// Of returns the name among names that a mistyped word is likely to mean, "" if none is near. A third of the letters
// may be wrong. If no name is that near, it returns the shortest name that begins with the word. Case does not
// matter; of equally near names it returns the first.
func Of(word string, names []string) (found string) {
	typed := strings.ToLower(word)
	within := len(typed) / 3
	for _, name := range names {
		if d := distance(typed, strings.ToLower(name), within); d <= within {
			found, within = name, d-1
		}
	}
	if found != "" || len(typed) < minPrefix {
		return found
	}
	for _, name := range names {
		if len(name) > len(typed) && strings.EqualFold(name[:len(typed)], typed) && (found == "" || len(name) < len(found)) {
			found = name
		}
	}
	return found
}

// Question returns a suffix for an error about an unknown word: a question that suggests the nearest name, or
// nothing.
func Question(word string, names []string) string {
	if name := Of(word, names); name != "" {
		return "; did you mean " + name + "?"
	}
	return ""
}

// distance returns how many letters must be added, removed, replaced or swapped with the next one to turn a into b.
// If that exceeds limit, the result is any number above limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	// rows[i%3][j] is the distance between the first i letters of a and the first j letters of b.
	var rows [3][]int
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, above := rows[i%3], rows[(i-1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := above[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(above[j]+1, row[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], rows[(i-2)%3][j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
