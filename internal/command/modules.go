package command

import (
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/resp"
)

// WriteModules writes the parts that are modules in Redis, for MODULE LIST and HELLO. They have no files.
func WriteModules(w *resp.Writer) {
	w.Array(len(version.Modules))
	for _, m := range version.Modules {
		w.Map(4)
		w.BulkString("name")
		w.BulkString(m.Name)
		w.BulkString("ver")
		w.Int(int64(m.Number))
		w.BulkString("path")
		w.BulkString("")
		w.BulkString("args")
		w.Array(0)
	}
}
