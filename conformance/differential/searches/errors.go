// The reference has the texts of errors of Redis 8.0, without codes. atomredis has those of 8.8 and later.

package searches

import (
	"regexp"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// texts are those that both releases are compared with.
var texts = []struct {
	text *regexp.Regexp
	old  string // replaces it
}{
	{regexp.MustCompile(`^SEARCH_[A-Z_]+ `), ""},
	{regexp.MustCompile("^Parameter not found `"), "No such parameter `"},
	{regexp.MustCompile(`^(.*) \(Error parsing vector similarity parameters\)$`), "Error parsing vector similarity parameters: $1"},
	{regexp.MustCompile("^Property (?:not loaded nor in|is not present in document or) pipeline: (`.*`)$"),
		"Property $1 not loaded nor in pipeline"},
	{regexp.MustCompile(`^(Error converting string).*`), "$1"},
	{regexp.MustCompile(`^Invalid numeric value$`), "Could not convert value to a number"},
	{regexp.MustCompile(`^(Invalid geo string).*`), "$1"},
}

// older returns a reply with an error as in Redis 8.0.
func older(v value) value {
	if v.Kind == transcript.Error {
		for _, c := range texts {
			v.Text = c.text.ReplaceAllString(v.Text, c.old)
		}
	}
	return v
}
