// The reference has the texts of errors and explanations of Redis 8.0. atomredis has those of 8.8 and later.

package searches

import (
	"regexp"
	"slices"

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
	{regexp.MustCompile(`^(?:Index not found: (.*)|(.*): no such index)$`), "No such index $1$2"},
}

// older returns a reply with an error as in Redis 8.0, and without the explanations of unions of one part, which releases
// since 8.2 do not have.
func older(v value) value {
	if v.Kind == transcript.Error {
		for _, c := range texts {
			v.Text = c.text.ReplaceAllString(v.Text, c.old)
		}
	}
	if len(v.Elems) == 2 && v.Elems[0].Kind == transcript.Simple && len(v.Elems[1].Elems) == 1 && grouped.MatchString(v.Elems[0].Text) {
		return older(v.Elems[1].Elems[0])
	}
	v.Elems = slices.Clone(v.Elems)
	for i := range v.Elems {
		v.Elems[i] = older(v.Elems[i])
	}
	return v
}

// grouped matches the explanation of the score of an intersection or a union.
var grouped = regexp.MustCompile(`Weight [0-9.]+ \* (total )?children`)
