// Package testclient is a client for tests. It returns replies in the notation of transcripts, and fails the test if
// there is no reply.
package testclient

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// Timeout is how long a client waits for a reply.
const Timeout = time.Minute

// Client sends commands and reads replies. Its Conn is for pipelines, and for replies as values.
type Client struct {
	*transcript.Conn
	T testing.TB
}

// New returns the client of a connection, which the end of the test closes.
func New(t testing.TB, nc net.Conn) *Client {
	c := &Client{transcript.NewConn(nc), t}
	t.Cleanup(func() { c.Close() })
	return c
}

// Line returns the reply to a command of words separated by spaces. A bulk string is its text, without quotes.
func (c *Client) Line(command string) string {
	c.T.Helper()
	v, err := c.Do(Timeout, strings.Fields(command)...)
	require.NoError(c.T, err)
	if v.Kind == transcript.Bulk {
		return v.Text
	}
	return v.String()
}

// Replies sends commands, each followed by the reply that it must have.
func (c *Client) Replies(steps ...string) {
	c.T.Helper()
	for i := 0; i < len(steps); i += 2 {
		require.Equal(c.T, steps[i+1], c.Line(steps[i]), steps[i])
	}
}

// Send sends a command and does not wait for the reply.
func (c *Client) Send(args ...string) {
	c.T.Helper()
	c.Append(args...)
	require.NoError(c.T, c.Flush())
}

// Next returns the next reply or push.
func (c *Client) Next() string {
	c.T.Helper()
	v, err := c.Read(Timeout)
	require.NoError(c.T, err)
	return v.String()
}

// Call returns the reply to a command whose arguments may have spaces.
func (c *Client) Call(args ...string) string {
	c.T.Helper()
	c.Send(args...)
	return c.Next()
}

// WaitFor repeats a command until the reply contains a text.
func (c *Client) WaitFor(command, text string) {
	c.T.Helper()
	require.Eventually(c.T, func() bool { return strings.Contains(c.Line(command), text) }, Timeout, time.Millisecond,
		"%s: %s", command, text)
}
