package replication

import (
	"strconv"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// The stream that followers execute is made of the journal's records, whose commands depend on neither time nor
// chance. A record is repeated as a whole, but a follower executes commands one by one as they arrive. So a record
// of several commands becomes a transaction. What is only for the journal is left out: notes of the history (REPLCONF), and
// positions of consumers (CHANGES), which mean nothing in another journal and which a Redis does not know. A record always
// becomes the same stream.

// Stream converts records to the stream. The zero value is at its beginning.
type Stream struct {
	selected int // the stream's database plus one; 0 if unknown
	commands []streamCommand
	buf      []byte
}

// streamCommand is a command of a record, encoded, in a database.
type streamCommand struct {
	db      int
	encoded []byte
}

// Restart makes the stream begin with SELECT again.
func (r *Stream) Restart() { r.selected = 0 }

// Resume sets the stream's database; NoDatabase is Restart.
func (r *Stream) Resume(db int) { r.selected = db + 1 }

// Database returns the stream's database, NoDatabase if unknown.
func (r *Stream) Database() int { return r.selected - 1 }

// Translate returns what followers execute for the commands that were journalled under one guard. It is valid until
// the next call.
func (r *Stream) Translate(record []byte) []byte {
	r.commands = r.commands[:0]
	if r.buf = r.buf[:0]; cap(r.buf) > maxStreamBuffer {
		r.buf = nil
	}
	parser := resp.Parser{MaxBulk: resp.AnyBulk}
	db := 0
	for len(record) > 0 {
		args, n, err := parser.Next(record, nil)
		if err != nil || n == 0 {
			break // the server itself never writes this
		}
		encoded := record[:n]
		record = record[n:]
		if len(args) == 2 && command.EqualFold(args[0], "select") {
			db, _ = strconv.Atoi(string(args[1]))
			continue
		}
		if command.EqualFold(args[0], "replconf") || command.EqualFold(args[0], "changes") {
			continue
		}
		r.commands = append(r.commands, streamCommand{db, encoded})
	}
	for i, c := range r.commands {
		if r.selected != c.db+1 {
			r.selected = c.db + 1
			r.add([]byte("SELECT"), strconv.AppendInt(nil, int64(c.db), 10))
		}
		if i == 0 && len(r.commands) > 1 {
			r.add([]byte("MULTI"))
		}
		r.buf = append(r.buf, c.encoded...)
	}
	if len(r.commands) > 1 {
		r.add([]byte("EXEC"))
	}
	clear(r.commands)
	return r.buf
}

func (r *Stream) add(args ...[]byte) { r.buf = command.AppendRequest(r.buf, args) }

// maxStreamBuffer is the size in bytes of the largest buffer that is kept for the next record.
const maxStreamBuffer = 1 << 20
