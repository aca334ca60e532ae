package config

import "strings"

// Description describes a directive for command lines and their completion.
type Description struct {
	Name    string
	Default string
	Values  []string // the possible values; nil if they cannot be listed
}

// Describe returns the directives that have an effect, in the order of the table. Doors and directives cannot be
// registered afterwards.
func Describe() (list []Description) {
	for _, d := range directives() {
		if d.unused || d.hidden {
			continue
		}
		list = append(list, Description{d.name, strings.Join(splitWords(d.initial), " "), d.choices})
	}
	return list
}
