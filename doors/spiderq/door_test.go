package spiderq_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
	"github.com/atomredis/atomredis/doors/spiderq"
	"github.com/atomredis/atomredis/engine"
)

// A peer whose user needs a password gets 64 KiB for a message, whatever length it announces.
func TestMemoryOfStrangers(t *testing.T) {
	s := opened(t, "requirepass", "secret")
	p := connect(t, s, "DEALER")
	p.send([]byte{11})
	_, err := io.Copy(io.Discard, p.conn)
	require.NoError(t, err, "it is disconnected, as the protocol has no words for it")
	p = connect(t, s, "DEALER")
	p.write(unhex(t, "02 0000000000010001"))
	_, err = io.Copy(io.Discard, p.conn)
	require.NoError(t, err)
	s.MustDo(t, "ACL", "SETUSER", "u", "on", "nopass", "+@all", "~*")
	s.MustDo(t, "CONFIG", "SET", "door-spiderq-user", "u")
	p = connect(t, s, "DEALER")
	p.send(append(unhex(t, "02 00000001 6b 00100000"), make([]byte, 1<<20)...))
	require.Equal(t, [][]byte{{2}}, p.receive())
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const deadline = 30 * time.Second

// opened starts a server with the door, and a clock that only FastForward moves.
func opened(t testing.TB, settings ...string) *atomredistest.Server {
	t.Helper()
	o := atomredis.Options{Clock: engine.NewManualClock(time.UnixMilli(1e12)),
		Doors: map[string]string{"spiderq": "127.0.0.1:0"}, Config: map[string]string{}}
	for i := 0; i < len(settings); i += 2 {
		o.Config[settings[i]] = settings[i+1]
	}
	return atomredistest.RunOptions(t, o)
}

// peer speaks ZMTP like libzmq.
type peer struct {
	t    testing.TB
	conn net.Conn
}

func unhex(t testing.TB, text string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(t, err)
	return b
}

// connect connects as a socket of a type.
func connect(t testing.TB, s *atomredistest.Server, socketType string) *peer {
	t.Helper()
	conn, err := net.Dial("tcp", s.DoorAddr("spiderq"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(deadline))
	p := &peer{t, conn}
	p.write(unhex(t, "ff 00 00 00 00 00 00 00 01 7f"))
	got := p.read(64)
	require.Equal(t, unhex(t, "ff 00 00 00 00 00 00 00 01 7f 03 01 4e554c4c"), got[:16])
	p.write(append(unhex(t, "03 01 4e554c4c"), make([]byte, 16+1+31)...))
	ready := append(unhex(t, "05 5245414459 0b 536f636b65742d54797065 00 00 00"), byte(len(socketType)))
	ready = append(append(ready, socketType...), unhex(t, "08 4964656e74697479 00 00 00 00")...)
	p.write(append([]byte{4, byte(len(ready))}, ready...))
	require.Equal(t, unhex(t, "04 29 05 5245414459 0b 536f636b65742d54797065 00000006 524f55544552 08 4964656e74697479 00000000"),
		p.read(43))
	return p
}

func (p *peer) write(b []byte) {
	_, err := p.conn.Write(b)
	require.NoError(p.t, err)
}

func (p *peer) read(n int) []byte {
	p.t.Helper()
	b := make([]byte, n)
	_, err := io.ReadFull(p.conn, b)
	require.NoError(p.t, err)
	return b
}

// send sends a message of frames.
func (p *peer) send(frames ...[]byte) {
	var b []byte
	for i, f := range frames {
		flags := byte(1)
		if i == len(frames)-1 {
			flags = 0
		}
		if len(f) < 256 {
			b = append(b, flags, byte(len(f)))
		} else {
			b = binary.BigEndian.AppendUint64(append(b, flags|2), uint64(len(f)))
		}
		b = append(b, f...)
	}
	p.write(b)
}

// receive returns the frames of the next message.
func (p *peer) receive() (frames [][]byte) {
	p.t.Helper()
	for {
		head := p.read(2)
		size := uint64(head[1])
		if head[0]&2 != 0 {
			size = binary.BigEndian.Uint64(append(head[1:], p.read(7)...))
		}
		frames = append(frames, p.read(int(size)))
		if head[0]&1 == 0 {
			return frames
		}
	}
}

// ask sends a request as REQ does, and returns the reply.
func (p *peer) ask(request []byte) []byte {
	p.t.Helper()
	p.send(nil, request)
	frames := p.receive()
	require.Len(p.t, frames, 2)
	require.Empty(p.t, frames[0])
	return frames[1]
}

// step is a request and its reply, both in hex.
type step [2]string

func (p *peer) play(steps ...step) {
	p.t.Helper()
	for _, s := range steps {
		require.Equal(p.t, strings.ReplaceAll(s[1], " ", ""), hex.EncodeToString(p.ask(unhex(p.t, s[0]))), s[0])
	}
}

// The frames of the specification.
const (
	addCat    = "02 00000003 636174 00000005 736d616c6c"
	updateCat = "03 00000003 636174 00000005 736d616c6c"
	lookupCat = "09 00000003 636174"
	lendPoll  = "04 00000000000003e8 02"
	lendBlock = "04 00000000000003e8 01"
)

func TestFramesOfTheSpecification(t *testing.T) {
	s := opened(t)
	p := connect(t, s, "REQ")
	p.play(
		step{"0b", "11"},
		step{"01", "01 00000000"},
		step{updateCat, "05"},
		step{lookupCat, "0e"},
		step{lendPoll, "10"},
		step{addCat, "02"},
		step{addCat, "03"},
		step{"01", "01 00000001"},
		step{updateCat, "04"},
		step{lookupCat, "0d 00000005 736d616c6c"},
		step{lendBlock, "06 0000000000000002 00000003 636174 00000005 736d616c6c"},
		step{"01", "01 00000000"},
		step{"06 0000000000000002 00000003 636174 00000000000007d0", "08"},
		step{"06 0000000000000001 00000003 636174 00000000000007d0", "09"},
		step{"05 0000000000000001 00000003 636174 00000003 626967 02", "05"},
		step{lookupCat, "0d 00000005 736d616c6c"},
		step{"05 0000000000000002 00000003 636174 00000003 626967 02", "07"},
		step{"05 0000000000000002 00000003 636174 00000003 626967 02", "05"},
		step{lookupCat, "0d 00000003 626967"},
		step{"0a", "0f"},
		step{"07", "0a 0000000000000003 0000000000000002 0000000000000002 0000000000000004 0000000000000002" +
			"0000000000000003 0000000000000002 0000000000000001"},
	)
	s.CheckKeys(t, map[string]any{
		"spiderq:{spiderq}":        map[string]string{"cat": "big"},
		"spiderq:{spiderq}:queue":  atomredistest.Any{},
		"spiderq:{spiderq}:boosts": map[string]string{"cat": "1"},
		"spiderq:{spiderq}:serial": "3",
	})
	p.play(step{"08", "0c"})
	_, err := p.conn.Read(make([]byte, 1))
	require.Error(t, err, "the door has ended")
	require.Equal(t, "PONG", s.MustDo(t, "PING").String())
}

func TestFramesOfTheNewerVersion(t *testing.T) {
	s := opened(t, "spiderq-protocol", "1.4")
	p := connect(t, s, "DEALER")
	p.play(
		step{"02 00000001 61 00000001 31 02", "02"},
		step{"02 00000001 62 00000001 32 02", "02"},
		step{"02 00000001 63 00000001 33 01", "02"},
		step{"02 00000001 64 00000001 33", "0b 35 00000001 00000000"},
		step{"02 00000001 64 00000001 33 03", "0b 36 03"},
		step{"0c 00000001 61", "12"},
		step{"0c 00000001 61", "13"},
		step{"0c 000000", "0b 39 00000004 00000003"},
		step{"0c 00000002 61", "0b 3a 00000002 00000001"},
		step{lendPoll, "06 0000000000000004 00000001 63 00000001 33"}, // b was put at the head
		step{lendPoll, "06 0000000000000004 00000001 62 00000001 32"}, // a was removed
		step{lendPoll, "10"},
		step{"07", "0a 0000000000000000 0000000000000000 0000000000000003 0000000000000000 0000000000000000 0000000000000002" +
			"0000000000000003 0000000000000000 0000000000000000 0000000000000001"},
	)
}

// The error of every truncated request names the missing field.
func TestRequestsThatAreCutShort(t *testing.T) {
	p := connect(t, opened(t), "REQ")
	type field struct{ size, missing int }
	for request, fields := range map[string][]field{
		addCat:    {{1, 1}, {4, 3}, {3, 4}, {4, 5}, {5, 6}},
		updateCat: {{1, 1}, {4, 39}, {3, 40}, {4, 41}, {5, 42}},
		lookupCat: {{1, 1}, {4, 47}, {3, 48}},
		lendPoll:  {{1, 1}, {8, 7}, {1, 51}},
		"05 0000000000000002 00000003 636174 00000003 626967 02": {{1, 1}, {8, 8}, {4, 9}, {3, 10}, {4, 11}, {3, 12}, {1, 13}},
		"06 0000000000000002 00000003 636174 00000000000007d0":   {{1, 1}, {8, 43}, {4, 44}, {3, 45}, {8, 46}},
	} {
		whole := unhex(t, request)
		at := 0
		for _, f := range fields {
			for given := range f.size {
				want := fmt.Sprintf("0b%02x%08x%08x", f.missing, f.size, given)
				require.Equal(t, want, hex.EncodeToString(p.ask(whole[:at+given])), "%x", whole[:at+given])
			}
			at += f.size
		}
		require.Equal(t, len(whole), at)
	}
	p.play(
		step{"0c", "0b 02 0c"}, // only in the newer version
		step{"ff 00", "0b 02 ff"},
		step{"04 00000000000003e8 03", "0b 34 03"},
		step{"04 00000000000003e8 00", "0b 34 00"},
		step{"05 0000000000000002 00000000 00000000 05", "0b 0e 05"},
		step{"02 ffffffff 61", "0b 04 ffffffff 00000001"},
		step{addCat + " 02 ff", "02"}, // trailing bytes are ignored
	)
}

func TestFramesBeforeARequestComeBack(t *testing.T) {
	p := connect(t, opened(t), "DEALER")
	long := bytes.Repeat([]byte{'e'}, 1000)
	p.send([]byte{0x0b})
	require.Equal(t, [][]byte{{0x11}}, p.receive())
	p.send([]byte("a"), long, nil, []byte{0x0b})
	require.Equal(t, [][]byte{[]byte("a"), long, {}, {0x11}}, p.receive())
	value := bytes.Repeat([]byte{'v'}, 300_000)
	add := append(unhex(t, "02 00000001 6b"), binary.BigEndian.AppendUint32(nil, uint32(len(value)))...)
	p.send(nil, append(add, value...))
	require.Equal(t, [][]byte{{}, {2}}, p.receive())
	p.send(nil, unhex(t, "09 00000001 6b"))
	require.Equal(t, value, p.receive()[1][5:])
	p.write(unhex(t, "04 09 04 50494e47 0064 6162")) // PING with a context
	require.Equal(t, unhex(t, "04 07 04 504f4e47 6162"), p.read(9))
}

// A waiting request delays no other, and several requests of one peer can wait at the same time.
func TestLendWaits(t *testing.T) {
	s := opened(t)
	p := connect(t, s, "DEALER")
	p.send([]byte("1"), unhex(t, lendBlock))
	p.send([]byte("2"), unhex(t, lendBlock))
	p.send([]byte("3"), []byte{0x0b})
	require.Equal(t, [][]byte{[]byte("3"), {0x11}}, p.receive())
	require.Eventually(t, func() bool { return strings.Contains(s.MustDo(t, "INFO", "clients").String(), "blocked_clients:2") },
		deadline, time.Millisecond)
	q := connect(t, s, "REQ")
	q.play(step{addCat, "02"}, step{"02 00000003 646f67 00000000", "02"})
	served := map[string]bool{}
	for range 2 {
		frames := p.receive()
		served[string(frames[0])] = true
		require.Equal(t, byte(6), frames[1][0])
	}
	require.Len(t, served, 2)
	q.play(step{lendPoll, "10"})
	s.FastForward(999 * time.Millisecond)
	q.play(step{lendPoll, "10"})
	s.FastForward(time.Millisecond)
	require.Equal(t, byte(6), q.ask(unhex(t, lendPoll))[0])
}

// A peer that disconnects while it waits takes nothing; entries lent to it return when their time is up.
func TestPeersThatGo(t *testing.T) {
	s := opened(t)
	gone := connect(t, s, "DEALER")
	gone.send(unhex(t, lendBlock))
	require.Eventually(t, func() bool { return strings.Contains(s.MustDo(t, "INFO", "clients").String(), "blocked_clients:1") },
		deadline, time.Millisecond)
	gone.conn.Close()
	require.Eventually(t, func() bool { return strings.Contains(s.MustDo(t, "INFO", "clients").String(), "blocked_clients:0") },
		deadline, time.Millisecond)
	p := connect(t, s, "REQ")
	p.play(step{addCat, "02"}, step{"01", "01 00000001"})
	gone = connect(t, s, "REQ")
	require.Equal(t, byte(6), gone.ask(unhex(t, lendPoll))[0])
	gone.conn.Close()
	p.play(step{"01", "01 00000000"})
	s.FastForward(time.Second)
	p.play(step{"01", "01 00000001"}, step{lendPoll, "06 0000000000000003 00000003 636174 00000005 736d616c6c"})
}

// Connections with another protocol are closed, and affect no other peer.
func TestWhoIsNoPeer(t *testing.T) {
	s := opened(t)
	p := connect(t, s, "REQ")
	greeting := append(unhex(t, "ff 0000000000000001 7f 0301 4e554c4c"), make([]byte, 48)...)
	for name, bytes := range map[string][]byte{
		"another protocol":  []byte("GET / HTTP/1.1\r\n\r\n"),
		"version 2":         append(unhex(t, "ff 0000000000000001 7f 01"), make([]byte, 60)...),
		"another mechanism": append(unhex(t, "ff 0000000000000001 7f 0301 504c41494e"), make([]byte, 47)...),
		"a subscriber": append(greeting,
			unhex(t, "04 19 05 5245414459 0b 536f636b65742d54797065 00000003 535542")...),
		"no type":          append(greeting, unhex(t, "04 06 05 5245414459")...),
		"a message before": append(greeting, unhex(t, "00 01 0b")...),
		"a huge command":   append(greeting, unhex(t, "06 7fffffffffffffff")...),
	} {
		conn, err := net.Dial("tcp", s.DoorAddr("spiderq"))
		require.NoError(t, err, name)
		conn.SetDeadline(time.Now().Add(deadline))
		conn.Write(bytes)
		got, err := io.ReadAll(conn)
		require.False(t, errors.Is(err, os.ErrDeadlineExceeded), name)
		require.LessOrEqual(t, len(got), 200, name)
		conn.Close()
	}
	for name, bytes := range map[string][]byte{
		"a huge frame":    unhex(t, "02 7fffffffffffffff 00"),
		"reserved flags":  unhex(t, "80 00"),
		"too many frames": bytes.Repeat([]byte{1, 0}, 1000),
	} {
		bad := connect(t, s, "DEALER")
		bad.conn.Write(bytes)
		_, err := io.ReadAll(bad.conn)
		require.False(t, errors.Is(err, os.ErrDeadlineExceeded), name)
		p.play(step{"0b", "11"})
	}
}

func TestSnapshotsAreThoseOfTheOriginal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "q")
	s := opened(t, "spiderq-snapshot", dir, "spiderq-flush-limit", "2")
	p := connect(t, s, "REQ")
	p.play(step{addCat, "02"}, step{"0a", "0f"})
	file := filepath.Join(dir, "snapshot")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, unhex(t, "0100000000000000 03000000 636174 05000000 736d616c6c"), b)
	p.play(step{"02 00000001 61 00000000", "02"}, step{"02 00000001 62 00000000", "02"})
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(file)
		return err == nil && len(b) == 8+16+9+9
	}, deadline, time.Millisecond)
	b, err = os.ReadFile(file)
	require.NoError(t, err)
	entries := map[string]string{}
	read := func(b []byte) error {
		return spiderq.ReadSnapshot(bytes.NewReader(b), func(k, v []byte) error {
			entries[string(k)] = string(v)
			return nil
		})
	}
	require.NoError(t, read(b))
	require.Equal(t, map[string]string{"cat": "small", "a": "", "b": ""}, entries)
	for n := range b {
		require.ErrorIs(t, read(b[:n]), io.ErrUnexpectedEOF, n)
	}
}

func TestThePeerCanStopTheServer(t *testing.T) {
	for name, settings := range map[string][]string{
		"in memory": nil, "with a journal": {"dir", t.TempDir(), "appendonly", "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := opened(t, append(settings, "spiderq-terminate", "shutdown")...)
			p := connect(t, s, "REQ")
			p.play(step{addCat, "02"}, step{"08", "0c"})
			require.Eventually(t, func() bool {
				_, err := s.Do(t.Context(), "PING")
				return errors.Is(err, atomredis.ErrClosed)
			}, deadline, time.Millisecond)
			require.NoError(t, s.Close(), "and comes to its end")
		})
	}
}

// A peer ends the door or the server with the permissions of its own user.
func TestWhoMayNotTerminate(t *testing.T) {
	terminate := func(p *peer) {
		p.send(nil, unhex(t, "08"))
		_, err := p.conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "the peer is disconnected without an answer")
	}
	for _, what := range []string{"door", "shutdown"} {
		s := opened(t, "spiderq-terminate", what)
		s.MustDo(t, "ACL", "SETUSER", "worker", "on", "nopass", "~spiderq:*", "+spiderq.lend", "+spiderq.ping")
		s.MustDo(t, "CONFIG", "SET", "door-spiderq-user", "worker")
		p := connect(t, s, "REQ")
		p.play(step{"0b", "11"})
		terminate(p)
		s.MustDo(t, "ACL", "SETUSER", "worker", "+@all", "-@dangerous")
		terminate(connect(t, s, "REQ"))

		s.MustDo(t, "CONFIG", "SET", "door-spiderq-user", "", "requirepass", "secret")
		terminate(connect(t, s, "REQ"))
		connect(t, s, "REQ") // the door is open

		s.MustDo(t, "CONFIG", "SET", "door-spiderq-user", "worker")
		s.MustDo(t, "ACL", "SETUSER", "worker", "nocommands", "+spiderq.terminate", "+shutdown")
		connect(t, s, "REQ").play(step{"08", "0c"})
	}
}

func TestACommandClosesTheDoorOfItsQueue(t *testing.T) {
	s := opened(t)
	p := connect(t, s, "REQ")
	s.MustDo(t, "SPIDERQ.TERMINATE", "other")
	p.play(step{"0b", "11"})
	require.Equal(t, "TERMINATED", s.MustDo(t, "SPIDERQ.TERMINATE", "spiderq").String())
	require.Empty(t, s.DoorAddr("spiderq"))
	_, err := p.conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// The last snapshot is written when the door closes.
func TestTheDoorLeavesASnapshot(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, "spiderq-snapshot", dir)
	connect(t, s, "REQ").play(step{addCat, "02"})
	s.MustDo(t, "CONFIG", "SET", "door-spiderq", "")
	require.NoError(t, s.Close())
	b, err := os.ReadFile(filepath.Join(dir, "snapshot"))
	require.NoError(t, err)
	require.Equal(t, unhex(t, "0100000000000000 03000000 636174 05000000 736d616c6c"), b)
}

// TestAgainstAModel lets several peers send random requests, one at a time, and compares each reply with a model of the
// original.
func TestAgainstAModel(t *testing.T) {
	steps := 50_000
	if testing.Short() {
		steps = 2_000
	}
	for _, newer := range []bool{false, true} {
		t.Run(fmt.Sprint("newer ", newer), func(t *testing.T) {
			v := "1.2"
			if newer {
				v = "1.4"
			}
			s := opened(t, "spiderq-protocol", v)
			m := &model{newer: newer, serial: 1, values: map[string]string{}, lent: map[string]*loan{}, boosts: map[string]int64{},
				queue: map[string]int64{}}
			r := rand.New(rand.NewPCG(1, uint64(len(v))))
			peers := []*peer{connect(t, s, "REQ"), connect(t, s, "DEALER"), connect(t, s, "REQ")}
			for i := range steps {
				if r.IntN(20) == 0 {
					d := int64(1 + r.IntN(2000))
					s.FastForward(time.Duration(d) * time.Millisecond)
					m.forward(d)
				}
				request := m.random(r)
				p := peers[r.IntN(len(peers))]
				p.conn.SetDeadline(time.Now().Add(deadline))
				got := p.ask(request)
				require.NoError(t, m.check(request, got), "step %d: %x: %x", i, request, got)
			}
		})
	}
}

// Malformed messages and requests affect only their sender.
func TestMalformedMessagesHurtNobodyElse(t *testing.T) {
	inputs := 10_000
	if testing.Short() {
		inputs = 500
	}
	s := opened(t)
	bystander := connect(t, s, "REQ")
	bystander.play(step{addCat, "02"})
	r := rand.New(rand.NewPCG(1, 2))
	seeds := [][]byte{unhex(t, addCat), unhex(t, lendPoll), unhex(t, lookupCat), {0x0b}, {0x07},
		unhex(t, "05 0000000000000002 00000003 636174 00000003 626967 04")}
	var bad *peer
	for i := range inputs {
		if bad == nil {
			bad = connect(t, s, "DEALER")
		}
		b := bytes.Clone(seeds[r.IntN(len(seeds))])
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] = byte(r.IntN(256))
		}
		if b = b[:1+r.IntN(len(b))]; b[0] == 8 {
			continue // a valid Terminate would end the door
		}
		message := append([]byte{0, byte(len(b))}, b...)
		if r.IntN(10) == 0 {
			message[r.IntN(2)] = byte(r.IntN(256)) // the framing itself
		}
		if _, err := bad.conn.Write(message); err != nil || i%50 == 0 {
			bad.conn.Close()
			bad = nil
		}
		if i%100 == 0 {
			bystander.conn.SetDeadline(time.Now().Add(deadline))
			bystander.play(step{"0b", "11"})
			require.Equal(t, "PONG", s.MustDo(t, "PING").String())
		}
	}
}

// Both ends of each connection are file descriptors of this process.
func TestManyPeers(t *testing.T) {
	peers := 3_000
	if testing.Short() {
		peers = 200
	}
	s := opened(t)
	all := make([]*peer, peers)
	for i := range all {
		all[i] = connect(t, s, "REQ")
	}
	for i, p := range all {
		p.conn.SetDeadline(time.Now().Add(deadline))
		require.Equal(t, []byte{2}, p.ask(fmt.Appendf(nil, "\x02\x00\x00\x00\x05%05d\x00\x00\x00\x00", i)))
	}
	for _, p := range all {
		p.conn.SetDeadline(time.Now().Add(deadline))
		require.Equal(t, byte(6), p.ask(unhex(t, lendBlock))[0])
	}
	all[0].play(step{"01", "01 00000000"})
}
