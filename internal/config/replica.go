package config

import (
	"math"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// SetReplicaOf records the server's master; host "" is no master. CONFIG GET shows it, and CONFIG REWRITE stores it.
func (c *Config) SetReplicaOf(host string, port int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := *c.Get()
	next.Replication.ReplicaOf = ReplicaOf{host, port}
	c.noteChange(directiveNamed("replicaof"))
	c.current.Store(&next)
}

// ReplicaOf is the address of the server's master.
type ReplicaOf struct {
	Host string // "" = no master
	Port int
}

func parseReplicaOf(s *Settings, words []string) error {
	words = strings.Fields(strings.Join(words, " ")) // a name with a space could not be written to a file
	switch {
	case len(words) == 0, len(words) == 2 && strings.EqualFold(words[0], "no") && strings.EqualFold(words[1], "one"):
		s.Replication.ReplicaOf = ReplicaOf{}
		return nil
	case len(words) != 2:
		return ErrWordCount
	}
	port, ok := resp.ParseInt([]byte(words[1]))
	if !ok || port < 0 || port > 65535 {
		return errReplicaPort
	}
	s.Replication.ReplicaOf = ReplicaOf{words[0], int(port)}
	return nil
}

func showReplicaOf(s *Settings) string {
	if s.Replication.ReplicaOf.Host == "" {
		return ""
	}
	return s.Replication.ReplicaOf.Host + " " + strconv.Itoa(s.Replication.ReplicaOf.Port)
}

// AnnouncedPort returns the port that the server announces to its master.
func (s *Settings) AnnouncedPort() int {
	switch {
	case s.Replication.AnnouncePort != 0:
		return s.Replication.AnnouncePort
	case s.TLS.Replication && s.TLS.Port != 0:
		return s.TLS.Port
	}
	return s.TcpPort()
}

// minBacklogSize is the smallest effective repl-backlog-size in bytes. As in Redis, smaller values are raised to it.
const minBacklogSize = 16 << 10

func parseBacklogSize(s *Settings, words []string) error {
	n, err := parseSize(words[0], 1, math.MaxInt64)
	if err == nil {
		s.Replication.BacklogSize = command.AsInt(max(n, minBacklogSize))
	}
	return err
}
