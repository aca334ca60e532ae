package searches

import (
	"fmt"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

const (
	// cursor stands for the cursor that the command before created or used.
	cursor = "$cursor"

	settleTime = 10 * time.Second
	replyTime  = 30 * time.Second
)

// settle waits until both servers have indexed all keys, and makes the reference forget the counts of deleted
// documents, which it otherwise does after a while.
func settle(a, b *transcript.Conn) error {
	clean := false
	for _, c := range []*transcript.Conn{b, a} {
		for end := time.Now().Add(settleTime); ; {
			v, err := c.Do(replyTime, "FT.INFO", index)
			if err != nil {
				return err
			}
			if v.Kind == transcript.Error || entry(v, "indexing") == "0" {
				clean = v.Kind != transcript.Error && entry(v, "num_docs") == entry(v, "max_doc_id") // nothing was ever deleted
				break
			}
			if time.Now().After(end) {
				return fmt.Errorf("searches: %s is still being filled: %s", index, v)
			}
			time.Sleep(time.Millisecond)
		}
	}
	if clean {
		return nil
	}
	// A server without these commands refuses them, which does no harm.
	if _, err := a.Do(replyTime, "FT.CONFIG", "SET", "FORK_GC_CLEAN_THRESHOLD", "0"); err != nil {
		return err
	}
	_, err := a.Do(replyTime, "_FT.DEBUG", "GC_FORCEINVOKE", index)
	return err
}

// entry returns the value of a name in a map or a flat list of pairs.
func entry(v transcript.Value, name string) string {
	for i := 0; i+1 < len(v.Elems); i += 2 {
		if v.Elems[i].Text == name {
			return v.Elems[i+1].Text
		}
	}
	return ""
}

// rewrite inserts the cursor from a reply.
func rewrite(cmd, _ []string, reply transcript.Value) []string {
	if cmd[len(cmd)-1] != cursor || len(reply.Elems) != 2 {
		return cmd
	}
	return append(cmd[:len(cmd)-1:len(cmd)-1], reply.Elems[1].Text)
}
