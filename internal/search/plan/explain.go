package plan

import "fmt"

// Explanation is a node of the tree of EXPLAINSCORE: a text, and what it was computed from.
type Explanation struct {
	Text     string
	Children []Explanation
}

// setf sets the text. Without an explanation it does nothing; callers that run for each document check that
// themselves, because the arguments would be allocated.
func (x *Explanation) setf(format string, args ...any) {
	if x != nil {
		x.Text = fmt.Sprintf(format, args...)
	}
}

// child adds a child and returns it; without an explanation it returns nil. It is valid until the next one is added.
func (x *Explanation) child() *Explanation {
	if x == nil {
		return nil
	}
	x.Children = append(x.Children, Explanation{})
	return &x.Children[len(x.Children)-1]
}
