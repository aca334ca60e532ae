package config

import "strings"

// Description says what a directive can be, for those who write a command line.
type Description struct {
	Name    string
	Default string
	Values  []string // that it can have; nil if they cannot be listed
}

// Describe describes the directives that have an effect, in the order of the table. No kind of door and no directive
// can be registered from then on.
func Describe() (list []Description) {
	for _, d := range directives() {
		if d.unused || d.hidden {
			continue
		}
		list = append(list, Description{d.name, strings.Join(splitWords(d.initial), " "), d.choices})
	}
	return list
}
