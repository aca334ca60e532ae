//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"github.com/atomredis/atomredis/bench/internal/servers"
	"github.com/atomredis/atomredis/internal/wire/zmtp"
)

// spiderqCase is the round trip of a worker: Lend and Repay, two requests. A task is always available.
func spiderqCase() benchmark {
	start := func(o settings) *servers.Server {
		s := startServer(o, "none", "--door-spiderq", "127.0.0.1:0")
		s.Fill(o.keys, func(dst []byte, i int) []byte {
			return servers.AppendCommand(dst, "SPIDERQ.ADD", "spiderq", servers.Key(i), servers.Value(i, 0))
		})
		return s
	}
	return benchmark{"spiderq", []contender{
		{name: "RESP", start: start, connect: func(s *servers.Server, o settings) []client {
			return clients(o, func() client { return spiderqCommands{dialRESP(s.Addr)} })
		}},
		{name: "door", start: start, connect: func(s *servers.Server, o settings) []client {
			addr := doorAddr(s, "spiderq")
			return clients(o, func() client { return dialSpiderq(addr) })
		}},
	}}
}

// spiderqCommands borrows and repays with commands.
type spiderqCommands struct{ *respConn }

func (c spiderqCommands) do() error {
	lent, err := c.ask("SPIDERQ.LEND", "spiderq", "60000", "BLOCK")
	if err != nil {
		return err
	}
	parts, ok := lent.([]any)
	if !ok || len(parts) != 3 {
		return fmt.Errorf("SPIDERQ.LEND gave %v", lent)
	}
	repaid, err := c.ask("SPIDERQ.REPAY", "spiderq", parts[0].(string), parts[1].(string), parts[2].(string), "PENALTY")
	if err == nil && repaid != "REPAID" {
		err = fmt.Errorf("SPIDERQ.REPAY gave %v", repaid)
	}
	return err
}

// spiderqPeer borrows and repays as a REQ socket.
type spiderqPeer struct {
	net.Conn
	z       *zmtp.Conn
	request []byte
}

func dialSpiderq(addr string) *spiderqPeer {
	conn, err := net.Dial("tcp", addr)
	servers.Check(err)
	// With the mechanism NULL both sides send the same handshake.
	z, err := zmtp.Accept(conn, "REQ", []string{"ROUTER"}, zmtp.Limits{Message: 1 << 20, Frames: 8, Time: time.Minute})
	servers.Check(err)
	return &spiderqPeer{Conn: conn, z: z}
}

// The tags of requests and replies.
const (
	tagLend, tagRepay   = 4, 5
	tagLent, tagRepaid  = 6, 7
	lendWait, giveLater = 1, 1
)

func (p *spiderqPeer) do() error {
	lent, err := p.ask(append(binary.BigEndian.AppendUint64(append(p.request[:0], tagLend), 60_000), lendWait), tagLent)
	if err != nil {
		return err
	}
	// The repayment is the loan with the same key and value, and a status.
	p.request = append(append(append(p.request[:0], tagRepay), lent[1:]...), giveLater)
	_, err = p.ask(p.request, tagRepaid)
	return err
}

func (p *spiderqPeer) ask(request []byte, want byte) ([]byte, error) {
	if err := p.z.Write(nil, request); err != nil {
		return nil, err
	}
	frames, err := p.z.Read()
	if err != nil {
		return nil, err
	}
	if len(frames) != 2 || len(frames[1]) == 0 || frames[1][0] != want {
		return nil, fmt.Errorf("request %x gave %x", request, frames)
	}
	return frames[1], nil
}

// doorAddr returns the address of a door.
func doorAddr(s *servers.Server, name string) string {
	return s.InfoField("Door_"+name, "door_"+name+"_address:")
}
