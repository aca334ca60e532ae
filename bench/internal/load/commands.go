package load

import (
	"bytes"
	"fmt"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// Random stands for a number of as many digits in a command's argument, a different one each time it is sent.
const Random = "\x00a number..\x00"

// Commands is a client whose operations always consist of the same commands, apart from random numbers.
type Commands struct {
	text   []byte // of all commands
	random []int  // the positions of numbers in text
	count  int
	number func() int
	want   []string
	next   int // the index in want of the next reply
}

// NewCommands returns a client that sends these commands. It takes the numbers from number. The replies must begin with
// the strings in want, which may be shorter than commands if the last replies do not matter.
func NewCommands(commands [][]string, number func() int, want []string) *Commands {
	c := &Commands{count: len(commands), number: number, want: make([]string, len(commands))}
	copy(c.want, want)
	for _, args := range commands {
		c.text = servers.AppendCommand(c.text, args...)
	}
	for at := 0; ; at += len(Random) {
		i := bytes.Index(c.text[at:], []byte(Random))
		if i < 0 {
			return c
		}
		at += i
		c.random = append(c.random, at)
	}
}

// Append implements Client.
func (c *Commands) Append(dst []byte, _, step int) ([]byte, int) {
	if step > 0 {
		return dst, 0
	}
	begin := len(dst)
	dst = append(dst, c.text...)
	for _, at := range c.random {
		digits := dst[begin+at : begin+at+len(Random)]
		for i, n := len(digits)-1, uint64(c.number()); i >= 0; i-- {
			digits[i] = byte('0' + n%10)
			n /= 10
		}
	}
	return dst, c.count
}

// Reply implements Client.
func (c *Commands) Reply(_ int, reply []byte) error {
	want := c.want[c.next]
	if c.next++; c.next == len(c.want) {
		c.next = 0
	}
	if len(reply) < len(want) || string(reply[:len(want)]) != want {
		return fmt.Errorf("reply %.60q, which should begin with %q", reply, want)
	}
	return nil
}
