package http

import (
	"strings"
)

// field is a line of INFO, in a section.
type field struct{ section, name, value string }

// fieldsOf returns the fields in a text of INFO.
func fieldsOf(text string) (list []field) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if title, ok := strings.CutPrefix(line, "# "); ok {
			section = title
		} else if name, value, ok := strings.Cut(line, ":"); ok {
			list = append(list, field{section, name, value})
		}
	}
	return list
}

// parts splits a value such as calls=3,usec=4.
func parts(value string) map[string]string {
	m := map[string]string{}
	for part := range strings.SplitSeq(value, ",") {
		k, v, _ := strings.Cut(part, "=")
		m[k] = v
	}
	return m
}
