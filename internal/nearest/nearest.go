// Package nearest finds the name that somebody meant who typed another one.
package nearest

import "strings"

// minPrefix is how many letters the beginning of a name must have to stand for it.
const minPrefix = 3

// Of returns the name among names that a mistyped word is likely to mean, "" if none is near. A third of the letters may be
// wrong; where nothing is as near as that it is the shortest name that begins with the word. Case does not matter, and of
// names that are equally near the first is returned.
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

// Question returns what is put behind an error that names an unknown word: a question for the name that is meant, or
// nothing.
func Question(word string, names []string) string {
	if name := Of(word, names); name != "" {
		return "; did you mean " + name + "?"
	}
	return ""
}

// distance returns how many letters have to be added, left out, replaced or exchanged with the next one to make b of a, or
// more than limit if it is more than that.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	// rows[i%3][j] is the distance of the first i letters of a and the first j letters of b.
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
