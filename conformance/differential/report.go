// Minimising a difference, and writing it to a file that the transcript runner can replay.

package differential

import (
	"net"
	"slices"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// minimiseTime bounds the search for a shorter sequence.
const minimiseTime = 30 * time.Second

// Minimise drops operations, first many at a time and then single ones, as long as any difference remains, and returns
// the shortest sequence found with its difference.
func (r *Runner) Minimise(ops []Op, d *Difference) ([]Op, *Difference, error) {
	if d.Op >= 0 {
		shorter := ops[:d.Op+1]
		again, err := r.Run(shorter)
		if err != nil {
			return ops, d, err
		}
		if again != nil {
			ops, d = shorter, again
		}
	}
	end := time.Now().Add(minimiseTime)
	for size := len(ops) / 2; size > 0; {
		dropped := false
		for i := len(ops) - size; i >= 0 && time.Now().Before(end); i -= size {
			shorter := slices.Delete(slices.Clone(ops), i, i+size)
			again, err := r.Run(shorter)
			if err != nil {
				return ops, d, err
			}
			if again != nil {
				ops, d, dropped = shorter, again, true
			}
		}
		if !dropped || size > 1 {
			size /= 2
		}
	}
	return ops, d, nil
}

// Transcript renders a sequence as a transcript with the replies of server A.
func (r *Runner) Transcript(ops []Op, d *Difference) (string, error) {
	var b strings.Builder
	for line := range strings.Lines(d.String()) {
		b.WriteString("# " + strings.TrimRight(line, "\n") + "\n")
	}
	if slices.ContainsFunc(ops, func(op Op) bool { return op.Conn == blocker }) {
		b.WriteString("w> CLIENT ID\n$w=*\n")
	}
	// Another run determines which blocking commands wait.
	if _, err := r.Run(ops); err != nil {
		return "", err
	}
	open := false
	finish := func() {
		if open {
			b.WriteString("b> CLIENT UNBLOCK ${w}\nw<\n")
		}
		open = false
	}
	for i, op := range ops {
		if op.Conn == blocker {
			finish()
		}
		for _, cmd := range op.Cmds {
			b.WriteString(connNames[op.Conn] + "> " + transcript.QuoteCommand(cmd) + "\n")
			if c := comparisons[strings.ToUpper(cmd[0])]; c.marker != "" {
				b.WriteString(c.marker + "\n")
			}
		}
		if r.waited[i] {
			b.WriteString("...\n")
			open = true
		}
	}
	finish()
	if slices.ContainsFunc(ops, func(op Op) bool { return op.Conn == subscriber }) {
		b.WriteString("s> PING\n")
	}
	for _, cmd := range d.Check {
		b.WriteString("check> " + transcript.QuoteCommand(cmd) + "\n")
		if c := comparisons[cmd[0]]; c.marker != "" {
			b.WriteString(c.marker + "\n")
		}
	}
	t, err := transcript.Parse("difference", b.String())
	if err != nil {
		return "", err
	}
	err = transcript.Record(func() (net.Conn, error) { return transcript.Dial(r.addrs[0]) }, t)
	return t.String(), err
}
