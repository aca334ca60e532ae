// Package peers is how the servers of a group, and of the shards of a cluster, talk to each other. A server connects to
// another one, sends a [Question] and reads the answer, or sends what belongs to the question. What servers send each
// other is the same in all versions, so that servers of two versions understand each other.
//
// [Broadcast] passes published messages on to the other servers.
package peers

import (
	"encoding/json"
	"io"
	"net"
	"time"

	"github.com/atomredis/atomredis/internal/cluster"
)

const (
	// Timeout is the timeout for a connection to another server, and for a short answer.
	Timeout = 2 * time.Second
	// TaskTimeout is the timeout for answers that need the agreement of a shard.
	TaskTimeout = 5 * Timeout
	// MaxAnswer is the longest answer, in bytes. It is enough for the acknowledgements of a million rounds.
	MaxAnswer = 16 << 20
	// maxQuestion is the longest question, in bytes: the sender is not known yet.
	maxQuestion = 1 << 20
)

// The values of Question.Ask.
const (
	AskNews = "news" // what the server's shard has agreed on
	AskMeet = "meet" // the shard is to learn of another one
	// AskExport asks the shard to export slots. Its value stays, because all versions know it.
	AskExport = "give"
	AskEnd    = "end" // a migration is to end, unless the slots are exported
	// AskForward is followed by the commands of a client of the server that asks.
	AskForward = "proxy"
	// AskStream tells the leader that the server that asks has followers. It has no answer.
	AskStream = "stream"
	// AskPublish is followed by published messages: channels and messages, each after its length. AskPublishShard is the
	// same for shard channels.
	AskPublish      = "publish"
	AskPublishShard = "publish-shard"
)

// Question is the first thing that a server sends on a connection to another one.
type Question struct {
	Ask string
	// Shard is the shard that asks, with the addresses of its servers. AskNews and AskEnd have none.
	Shard *cluster.Other `json:",omitempty"`
	// Task and, for AskExport, Slots are those of a migration.
	Task  string          `json:",omitempty"`
	Slots []cluster.Range `json:",omitempty"`
}

// News answers questions.
type News struct {
	Shard   cluster.Other
	Known   []cluster.Other
	Members []Member
	Leader  string // the raft-addr of the leader; "" without a leader
	Leads   bool   // this server leads
	Error   string `json:",omitempty"`
}

// Member is a server of a shard.
type Member struct {
	Addr, Client  string
	Leads, Online bool
	Index         uint64
}

// Node connects to other servers; quorum.Node is one.
type Node interface {
	Dial(addr string, timeout time.Duration) (net.Conn, error)
}

// Tell connects to a server and sends a question that has no answer, or one that the caller continues. The caller closes
// the connection.
func Tell(n Node, addr, ask string) (net.Conn, error) {
	conn, err := n.Dial(addr, Timeout)
	if err != nil {
		return nil, err
	}
	conn.SetWriteDeadline(time.Now().Add(Timeout))
	if err := json.NewEncoder(conn).Encode(Question{Ask: ask}); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// ReadQuestion reads the question of another server, which may belong to any shard. What follows the question is read
// through in, or from in.Buffered and the connection.
func ReadQuestion(c net.Conn) (q Question, in *json.Decoder, err error) {
	c.SetDeadline(time.Now().Add(TaskTimeout))
	limit := &io.LimitedReader{R: c, N: maxQuestion}
	in = json.NewDecoder(limit)
	err = in.Decode(&q)
	limit.N = MaxAnswer
	return q, in, err
}
