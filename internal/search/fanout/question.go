package fanout

import (
	"encoding/json"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// Question is a question to a shard; it is the request of a connection of peer.Search.
type Question struct {
	What string
	// Args are the arguments of the command, its name first.
	Args [][]byte `json:",omitempty"`
	// Proto is the version of RESP that the client speaks.
	Proto int `json:",omitempty"`
	// Directives are the coordinator's settings that matter for the answer.
	Directives map[string]string `json:",omitempty"`
	// Body is the part that depends on the kind of question.
	Body json.RawMessage `json:",omitempty"`
}

// View is the beginning of an answer.
type View struct {
	Shard string
	// Slots are the slots that the shard served at that time.
	Slots []cluster.Range `json:",omitempty"`
	// Near are the distances of the nearest vectors, ascending; the query needs Most. If there are any, the
	// coordinator says how many of them count. They are bytes because JSON cannot represent all numbers.
	Near []byte `json:",omitempty"`
	Most int    `json:",omitempty"`
	// Body is the part that depends on the kind of answer.
	Body json.RawMessage `json:",omitempty"`
}

// Answer is an answer while it is given. It is not safe for concurrent use.
type Answer interface {
	View() *View
	// Keep says that only the n nearest vectors count. It comes before Part.
	Keep(n int) error
	// Want announces a call of Part, so that another server can begin.
	Want() error
	// Part returns the next part, and whether there are more.
	Part() (part []byte, more bool, err error)
	// Close ends the answer.
	Close()
}

// The kinds of frames of peer.Search beside those that all purposes have.
const (
	viewFrame peer.Kind = 'v' // a View in JSON
	keepFrame peer.Kind = 'k' // how many of the nearest vectors count
	nextFrame peer.Kind = 'n' // requests the next part
	partFrame peer.Kind = 'p' // whether there are more, and a part
	endFrame  peer.Kind = 'e' // requests no further part
)

// ErrAgain says that slots or documents have changed meanwhile: all shards must be asked again.
var ErrAgain = &peer.Error{Code: peer.Again, Text: "slots have moved"}

// Refused returns the error for a question that has a wrong argument. Its text is for the client.
func Refused(text string) error { return &peer.Error{Code: peer.Refused, Text: text} }

// Views returns the views of answers.
func Views(answers []Answer) []*View {
	list := make([]*View, len(answers))
	for i, a := range answers {
		list[i] = a.View()
	}
	return list
}

// apart reports whether no slot is in two views, and returns all slots.
func apart(views []*View) (all cluster.SlotSet, ok bool) {
	for _, v := range views {
		slots := cluster.SetOf(v.Slots...)
		if both := all.Both(&slots); !both.Empty() {
			return all, false
		}
		all = all.Union(&slots)
	}
	return all, true
}
