package peer

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/memconn"
)

func accept(*Hello) error { return nil }

// Servers with the same secret speak with each other; all others are refused, and know why.
func TestServersProveTheirSecret(t *testing.T) {
	for _, c := range []struct {
		name, dialling, accepting string
		ok                        bool
		says                      string
	}{
		{"the same", "s3cret", "s3cret", true, ""},
		{"another", "guess", "s3cret", false, "the servers have different values of raft-secret"},
		{"only the accepting one", "", "s3cret", false, "raft-secret is needed, and the connecting server has none"},
		{"only the dialling one", "s3cret", "", false, "the other server has no raft-secret, and this one has"},
		{"none", "", "", true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			opened, accepted, failed, refused := pairWith(t, Shards, c.dialling, c.accepting, accept)
			if !c.ok {
				require.ErrorIs(t, failed, Untrusted)
				require.EqualError(t, failed, c.says)
				if c.accepting != "" {
					require.ErrorIs(t, refused, Untrusted)
				}
				return
			}
			require.NoError(t, failed)
			require.NoError(t, refused)
			require.NoError(t, opened.Request("question"))
			var got string
			require.NoError(t, accepted.ReadRequest(&got))
			require.Equal(t, "question", got)
		})
	}
}

// A refusal for another reason is the answer also to a server that knows the secret.
func TestAServerWithTheSecretMayBeRefused(t *testing.T) {
	_, _, failed, _ := pairWith(t, "x", "s", "s", func(*Hello) error { return &Error{BadPurpose, "no such purpose"} })
	require.ErrorIs(t, failed, BadPurpose)
}

// What is recorded of a connection opens no other one: a proof fits the nonces of its connection, its end, the server that
// was dialled, and its purpose.
func TestAProofIsOfUseOnce(t *testing.T) {
	const secret = "s3cret"
	asked, given := newNonce(), newNonce()
	first := transcript{Raft, "x:1", asked, given}
	for name, other := range map[string]transcript{
		"another answer":  {Raft, "x:1", asked, newNonce()},
		"another hello":   {Raft, "x:1", newNonce(), given},
		"another purpose": {Members, "x:1", asked, given},
		"another server":  {Raft, "y:1", asked, given},
		"swapped nonces":  {Raft, "x:1", given, asked},
	} {
		fields := []Field{{authProof, first.proof(secret, dialling)}}
		require.True(t, first.fits(secret, dialling, fields))
		require.False(t, first.fits(secret, accepting, fields), "the other end")
		require.False(t, other.fits(secret, dialling, fields), name)
		require.False(t, first.fits("other", dialling, fields))
		require.False(t, first.fits(secret, dialling, nil))
	}
}

// A stranger that connects gets no proof of the dialled server.
func TestTheAcceptingServerProvesLast(t *testing.T) {
	here, there := memconn.Pipe(1 << 20)
	defer here.Close()
	done := make(chan error, 1)
	go func() {
		_, err := Accept(there, nil, "x:1", "s3cret", accept, soon())
		there.Close()
		done <- err
	}()
	h := Hello{Min: 1, Max: 1, Purpose: Raft, Auth: []Field{{authTo, []byte("x:1")}, {authNonce, newNonce()}}}
	_, err := here.Write(h.Append(nil))
	require.NoError(t, err)
	a, err := ReadAnswer(here)
	require.NoError(t, err)
	require.Len(t, a.Auth, 1)
	require.Equal(t, authNonce, a.Auth[0].Name)
	wrong := Hello{Auth: []Field{{authProof, make([]byte, 32)}}}
	_, err = here.Write(wrong.Append(nil))
	require.NoError(t, err)
	a, err = ReadAnswer(here)
	require.NoError(t, err)
	require.Zero(t, a.Version)
	require.Empty(t, a.Auth)
	require.Equal(t, Untrusted, a.Refusal.Code)
	require.ErrorIs(t, <-done, Untrusted)
}

// A server that is dialled cannot pass the connection on to another one, which would take it for a proven server.
func TestAConnectionIsNotPassedOn(t *testing.T) {
	here, dialled := memconn.Pipe(1 << 20)
	passed, there := memconn.Pipe(1 << 20)
	defer here.Close()
	for _, way := range [][2]net.Conn{{passed, dialled}, {dialled, passed}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			way[0].Close()
		}()
	}
	refused := make(chan error, 1)
	go func() {
		_, err := Accept(there, nil, "y:1", "s3cret", accept, soon())
		there.Close()
		refused <- err
	}()
	_, err := Open(here, Raft, "", "x:1", "s3cret", soon())
	require.ErrorIs(t, err, Untrusted)
	require.EqualError(t, err, `"x:1" was dialled, which is not the raft-addr of the server that answers`)
	require.ErrorIs(t, <-refused, Untrusted)
}

// CLUSTER MEET dials a server at its IP address, and its raft-addr may have a name.
func TestAServerMayBeDialledAtItsIPAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	open := func(to string) error {
		go func() {
			there, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = Accept(there, nil, "name:1", "s3cret", accept, soon())
			there.Close()
		}()
		here, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer here.Close()
		_, err = Open(here, Shards, "", to, "s3cret", soon())
		return err
	}
	require.NoError(t, open("name:1"))
	require.NoError(t, open(l.Addr().String()))
	require.ErrorIs(t, open("127.0.0.1:1"), Untrusted)
	require.ErrorIs(t, open(""), Untrusted)
}
