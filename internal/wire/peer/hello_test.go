package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/memconn"
)

const testTimeout = 30 * time.Second

func soon() time.Time { return time.Now().Add(testTimeout) }

func TestHellosAreReadAsTheyWereWritten(t *testing.T) {
	for _, h := range []Hello{
		{Min: 1, Max: 1, Purpose: Raft, From: "10.0.0.1:16379"},
		{Min: 3, Max: 300, Purpose: "something new", Auth: []Field{{"method", []byte("hmac")}, {"nonce", []byte{0, 1}}}},
		{},
	} {
		b := h.Append(nil)
		r := bytes.NewReader(append(b, "rest"...))
		got, err := ReadHello(r)
		require.NoError(t, err)
		require.Equal(t, h, got)
		require.Equal(t, len("rest"), r.Len())
		for n := range b {
			_, err := ReadHello(bytes.NewReader(b[:n]))
			require.Error(t, err)
		}
	}
	for _, a := range []Answer{{Version: 1, Min: 1, Max: 2}, {Min: 1, Max: 1, Refusal: Error{BadPurpose, "no"},
		Auth: []Field{{"proof", []byte("p")}}}} {
		got, err := ReadAnswer(bytes.NewReader(a.Append(nil)))
		require.NoError(t, err)
		require.Equal(t, a, got)
	}
}

// The bytes of a hello, which later versions must understand.
func TestTheFormOfAHello(t *testing.T) {
	h := Hello{Min: 1, Max: 2, Purpose: "raft", Auth: []Field{{"k", []byte("v")}}}
	require.Equal(t, "\xa7arp\x00\x00\x00\x11"+"\x01\x01\x01"+"\x02\x01\x02"+"\x03\x04raft"+"\x04\x03\x01kv", string(h.Append(nil)))
	h = Hello{From: "a:1"}
	require.Equal(t, "\xa7arp\x00\x00\x00\x0d"+"\x01\x01\x00"+"\x02\x01\x00"+"\x03\x00"+"\x05\x03a:1", string(h.Append(nil)))
	a := Answer{Version: 1, Min: 1, Max: 1, Refusal: Error{"c", "t"}}
	require.Equal(t, "\xa7arp\x00\x00\x00\x0f"+"\x01\x01\x01"+"\x02\x01\x01"+"\x03\x01\x01"+"\x04\x01c"+"\x05\x01t", string(a.Append(nil)))
}

func TestUnknownFieldsOfAHelloAreSkipped(t *testing.T) {
	b := appendMessage(nil, func(b []byte) []byte {
		b = appendField(b, 77, []byte("of a later version"))
		b = appendNumberField(b, helloMax, 5)
		return appendField(b, 1<<40, nil)
	})
	h, err := ReadHello(bytes.NewReader(b))
	require.NoError(t, err)
	require.Equal(t, Hello{Max: 5}, h)
}

func TestBrokenHellosAreRefused(t *testing.T) {
	message := func(fields string) string {
		return string(appendMessage(nil, func(b []byte) []byte { return append(b, fields...) }))
	}
	for name, c := range map[string]struct {
		sent string
		want error
	}{
		"another magic":         {"HTTP/1.1 400 Bad Request", errMagic},
		"too long":              {Magic + "\x00\x01\x00\x01", errHello},
		"nearly too long":       {Magic + "\x00\x01\x00\x00", io.ErrUnexpectedEOF},
		"a field breaks off":    {message("\x01\x05"), errHello},
		"no length":             {message("\x01"), errHello},
		"an endless number":     {message(strings.Repeat("\xff", 20)), errHello},
		"a version with a rest": {message("\x01\x02\x01\x01"), errHello},
		"no version":            {message("\x01\x00"), errHello},
		"a broken field":        {message("\x04\x01\x05"), errHello},
		"nothing":               {"", io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadHello(strings.NewReader(c.sent))
			require.ErrorIs(t, err, c.want)
		})
	}
}

// pair returns the results of Open and of Accept at the ends of a connection.
func pair(t *testing.T, purpose Purpose, check func(*Hello) error) (opened, accepted *Conn, failed, refused error) {
	return pairWith(t, purpose, "", "", check)
}

// pairWith is pair for ends with secrets.
func pairWith(t *testing.T, purpose Purpose, dialling, accepting string, check func(*Hello) error) (opened, accepted *Conn,
	failed, refused error) {
	here, there := memconn.Pipe(1 << 20)
	t.Cleanup(func() {
		here.Close()
		there.Close()
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		var first [1]byte
		_, _ = there.Read(first[:])
		if accepted, refused = Accept(there, first[:], "x:1", accepting, check, soon()); refused != nil {
			there.Close()
		}
	}()
	if opened, failed = Open(here, purpose, "", "x:1", dialling, soon()); failed != nil {
		here.Close()
	}
	<-done
	return opened, accepted, failed, refused
}

func TestAHelloIsAcceptedOrRefused(t *testing.T) {
	opened, accepted, failed, refused := pair(t, Forward, func(h *Hello) error {
		require.Equal(t, Forward, h.Purpose)
		return nil
	})
	require.NoError(t, errors.Join(failed, refused))
	for _, c := range []*Conn{opened, accepted} {
		require.Equal(t, Forward, c.Purpose())
		require.EqualValues(t, MaxVersion, c.Version())
	}
	_, _, failed, refused = pair(t, "x", func(*Hello) error { return &Error{BadPurpose, "no such purpose"} })
	require.ErrorIs(t, failed, BadPurpose)
	require.EqualError(t, failed, "no such purpose")
	require.ErrorIs(t, refused, BadPurpose)
	_, _, failed, _ = pair(t, "x", func(*Hello) error { return errors.New("for a reason") })
	require.EqualError(t, failed, "for a reason")
	require.NotErrorIs(t, failed, BadPurpose)
	require.NotErrorIs(t, failed, ErrOld)
}

func TestTheVersionIsTheHighestThatBothSpeak(t *testing.T) {
	for _, c := range []struct{ min, max, want uint64 }{
		{1, 1, 1}, {0, 9, MaxVersion}, {MaxVersion + 1, MaxVersion + 2, 0}, {0, 0, 0},
	} {
		here, there := memconn.Pipe(1 << 20)
		h := Hello{Min: c.min, Max: c.max, Purpose: Raft}
		_, err := here.Write(h.Append(nil))
		require.NoError(t, err)
		_, err = Accept(there, nil, "", "", func(*Hello) error { return nil }, soon())
		a, failed := ReadAnswer(here)
		require.NoError(t, failed)
		require.Equal(t, c.want, a.Version)
		if c.want == 0 {
			require.ErrorIs(t, err, BadVersion)
			require.Equal(t, BadVersion, a.Refusal.Code)
		}
		require.EqualValues(t, MaxVersion, a.Max)
		here.Close()
		there.Close()
	}
}

// answers runs Open against a server that sends something, or waits.
func answers(t *testing.T, sent string, closes bool, deadline time.Time) error {
	here, there := memconn.Pipe(1 << 20)
	defer here.Close()
	defer there.Close()
	_, err := io.WriteString(there, sent)
	require.NoError(t, err)
	if closes {
		there.Close()
	}
	_, err = Open(here, Raft, "", "", "", deadline)
	require.Error(t, err)
	return err
}

func TestOldServersAreRecognized(t *testing.T) {
	require.ErrorIs(t, answers(t, "", true, soon()), ErrOld)
	require.ErrorIs(t, answers(t, "-ERR unknown command\r\n", false, soon()), ErrOld)
	require.ErrorIs(t, answers(t, Magic[:2], true, soon()), ErrOld)
	chosen := Answer{Version: MaxVersion + 1}
	for _, a := range []string{string(chosen.Append(nil)), Magic + "\xff\xff\xff\xff", Magic + "\x00\x00\x00\x01\x01"} {
		require.NotErrorIs(t, answers(t, a, false, soon()), ErrOld)
	}
	// A server that does not reply may be of any version.
	err := answers(t, "", false, time.Now())
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NotErrorIs(t, err, ErrOld)
	here, there := net.Pipe()
	there.Close()
	here.Close()
	_, err = Open(here, Raft, "", "", "", soon())
	require.Error(t, err)
}

// An announced length takes no memory before the bytes arrive, and nothing makes the reader panic.
func FuzzHello(f *testing.F) {
	h := Hello{Min: 1, Max: 2, Purpose: Shards, Auth: []Field{{"name", []byte("value")}}}
	f.Add(h.Append(nil))
	a := Answer{Version: 1, Min: 1, Max: 2, Refusal: Error{Busy, "text"}}
	f.Add(a.Append(nil))
	f.Add([]byte(Magic + "\x00\x00\x00\x03\x07\x01x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := ReadHello(bytes.NewReader(b)); err == nil {
			again, err := ReadHello(bytes.NewReader(h.Append(nil)))
			require.NoError(t, err)
			require.Equal(t, h, again)
			require.LessOrEqual(t, binary.BigEndian.Uint32(b[len(Magic):]), uint32(maxHello))
		}
		if a, err := ReadAnswer(bytes.NewReader(b)); err == nil {
			again, err := ReadAnswer(bytes.NewReader(a.Append(nil)))
			require.NoError(t, err)
			require.Equal(t, a, again)
		}
	})
}
