package protocols_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/doors/skein"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	pb "github.com/atomredis/atomredis/internal/wire/skein"
)

// skeinServer is a server with the door, and the files of its credentials.
type skeinServer struct {
	*atomredis.DB
	cert, key string
}

func newSkeinServer(t *testing.T) *skeinServer {
	cert, key, err := skein.NewCredentials()
	require.NoError(t, err)
	dir := t.TempDir()
	s := &skeinServer{cert: filepath.Join(dir, "skein.crt"), key: filepath.Join(dir, "skein.pem")}
	require.NoError(t, os.WriteFile(s.cert, cert, 0o600))
	require.NoError(t, os.WriteFile(s.key, key, 0o600))
	config := testConfig()
	config["skein-cert"], config["skein-key"], config["skein-services"] = s.cert, s.key, "sleeper=1"
	s.DB, err = atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0", Config: config,
		Doors: map[string]string{"skein": "127.0.0.1:0"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// secure returns the TLS configuration of the door's clients.
func (s *skeinServer) secure(t *testing.T) *tls.Config {
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(pair.Leaf)
	return &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}, InsecureSkipVerify: true,
		VerifyConnection: func(c tls.ConnectionState) error { // the certificate names no host that crypto/tls could check
			_, err := c.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots})
			return err
		}}
}

func (s *skeinServer) connect(t *testing.T) *grpc.ClientConn {
	conn, err := grpc.NewClient(s.DoorAddr("skein"), grpc.WithTransportCredentials(credentials.NewTLS(s.secure(t))),
		grpc.WithAuthority(skein.Name))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// skeinPython returns an interpreter that has grpc, and a folder with stubs made from our skein.proto.
func skeinPython(t *testing.T) (interpreter, stubs string) {
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(name, "-c", "import grpc, google.protobuf").Run() == nil {
			interpreter = name
			break
		}
	}
	plugin, err := exec.LookPath("grpc_python_plugin")
	if interpreter == "" || err != nil {
		t.Skip("apt-get install python3-grpcio python3-protobuf protobuf-compiler protobuf-compiler-grpc")
	}
	stubs = t.TempDir()
	out, err := exec.Command("protoc", "-I", "../../internal/wire/skein", "--python_out="+stubs, "--grpc_python_out="+stubs,
		"--plugin=protoc-gen-grpc_python="+plugin, "skein.proto").CombinedOutput()
	require.NoError(t, err, string(out))
	return interpreter, stubs
}

// The walkthrough of Skein's documentation, with a client in Python.
func TestTheWalkthroughOfSkein(t *testing.T) {
	interpreter, stubs := skeinPython(t)
	s := newSkeinServer(t)
	cmd := exec.Command(interpreter, "-B", "testdata/skein/walkthrough.py", s.DoorAddr("skein"), s.cert, s.key)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+stubs)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Eventually(t, func() bool { return s.DoorAddr("skein") == "" }, 30*time.Second, time.Millisecond,
		"its last step has ended the door")
}

// The tutorial's program and its command lines work as the page says.
func TestTheTutorialOfSkeinRunsAsWritten(t *testing.T) {
	interpreter, stubs := skeinPython(t)
	s := newSkeinServer(t)
	page, err := os.ReadFile("../../docs/skein.md")
	require.NoError(t, err)
	_, program, ok := strings.Cut(string(page), "```python\n")
	require.True(t, ok)
	program, rest, _ := strings.Cut(program, "```")
	program = strings.NewReplacer("127.0.0.1:5560", s.DoorAddr("skein"), "skein.crt", s.cert, "skein.pem", s.key).Replace(program)
	cmd := exec.Command(interpreter, "-B", "-c", program)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+stubs)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	_, console, ok := strings.Cut(rest, "```console\n")
	require.True(t, ok)
	console, _, _ = strings.Cut(console, "```")
	runConsole(t, s.DB, console)
}

// rawCodec sends bytes as messages.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error)      { return v.([]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }
func (rawCodec) Name() string                       { return "proto" }

// Ten thousand malformed inputs: to the port, after the handshake, and in place of messages. Well-behaved clients,
// through the door or on the Redis port, notice nothing.
func TestMalformedInputHurtsNobodyAtTheDoorOfSkein(t *testing.T) {
	inputs := 10_000
	if testing.Short() {
		inputs = 300
	}
	s := newSkeinServer(t)
	bystander := pb.NewAppMasterClient(s.connect(t))
	redis := client(t, s.Addr())
	_, err := bystander.PutKey(t.Context(), &pb.PutKeyRequest{Key: "k", Value: []byte("0")})
	require.NoError(t, err)
	watch, err := bystander.Watch(t.Context())
	require.NoError(t, err)
	require.NoError(t, watch.Send(&pb.WatchRequest{Request: &pb.WatchRequest_Create{Create: &pb.WatchCreateRequest{Start: "k",
		End: "k\x00"}}}))
	_, err = watch.Recv()
	require.NoError(t, err)
	id, err := redis.ClientID(t.Context()).Result()
	require.NoError(t, err)

	hostile := s.connect(t)
	secure := s.secure(t)
	seeds := skeinMessages(t)
	r := testseed.Rand(t)
	for i := range inputs {
		switch {
		case i%20 == 0:
			dialAndWrite(t, s.DoorAddr("skein"), secure, hostileFrames(r))
		case i%4 == 0:
			dialAndWrite(t, s.DoorAddr("skein"), nil, randomBytes(r, 1+r.IntN(300)))
		default:
			malformedCall(t, r, hostile, seeds)
		}
		if i%100 != 0 {
			continue
		}
		value := fmt.Appendf(nil, "%d", i+1)
		_, err := bystander.PutKey(t.Context(), &pb.PutKeyRequest{Key: "k", Value: value})
		require.NoError(t, err)
		for { // a hostile message may be valid by accident
			r, err := watch.Recv()
			require.NoError(t, err)
			if len(r.Event) == 1 && bytes.Equal(r.Event[0].Value, value) {
				break
			}
		}
		now, err := redis.ClientID(t.Context()).Result()
		require.NoError(t, err)
		require.Equal(t, id, now, "the connection is the same")
	}
	require.NotEmpty(t, s.DoorAddr("skein"))
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// hostileFrames returns the preface of HTTP/2 followed by invalid frames, or by frames with random types and contents.
func hostileFrames(r *rand.Rand) []byte {
	b := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	for range r.IntN(20) {
		content := randomBytes(r, r.IntN(100))
		size := len(content)
		if r.IntN(10) == 0 {
			size = r.IntN(1 << 24)
		}
		b = append(b, byte(size>>16), byte(size>>8), byte(size), byte(r.IntN(11)), byte(r.Uint32()), 0, 0, 0, byte(r.IntN(8)))
		b = append(b, content...)
	}
	return b
}

// dialAndWrite connects, with TLS if secure is set, writes, and reads what comes within a short time.
func dialAndWrite(t *testing.T, address string, secure *tls.Config, input []byte) {
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	if secure != nil {
		protected := tls.Client(conn, secure)
		require.NoError(t, protected.Handshake())
		protected.Write(input)
		conn.SetReadDeadline(time.Now().Add(time.Millisecond))
		io.Copy(io.Discard, protected)
		return
	}
	conn.Write(input)
}

// skeinMessages are valid messages of all methods.
func skeinMessages(t *testing.T) map[string][]byte {
	owner := &pb.ContainerInstance{ServiceName: "sleeper"}
	put := &pb.PutKeyRequest{Key: "a", Value: []byte("v"), Owner: owner, ReturnPrevious: true}
	op := &pb.OpRequest{Request: &pb.OpRequest_PutKey{PutKey: put}}
	all := map[string]proto.Message{
		"GetRange": &pb.GetRangeRequest{Start: "a", End: "z", ResultType: pb.GetRangeRequest_KEYS}, "PutKey": put,
		"DeleteRange": &pb.DeleteRangeRequest{Start: "a", End: "b", ResultType: pb.DeleteRangeRequest_ITEMS},
		"Transaction": &pb.TransactionRequest{Condition: []*pb.Condition{{Key: "a", Field: pb.Condition_OWNER,
			Rhs: &pb.Condition_Owner{Owner: owner}}}, OnSuccess: []*pb.OpRequest{op}, OnFailure: []*pb.OpRequest{op, op}},
		"getContainers": &pb.ContainersRequest{States: []pb.Container_State{1, 2}, Services: []string{"sleeper"}},
		"addContainer":  &pb.AddContainerRequest{ServiceName: "nobody", Env: map[string]string{"A": "B"}},
		"scale":         &pb.ScaleRequest{ServiceName: "nobody", Count: 1}, "killContainer": &pb.ContainerInstance{ServiceName: "nobody"},
		"SetProgress": &pb.SetProgressRequest{Progress: 0.5}, "AddProxy": &pb.Proxy{Route: "r"},
		"RemoveProxy": &pb.RemoveProxyRequest{Route: "r"}, "UiInfo": &pb.UIInfoRequest{}, "nothing": &pb.Empty{},
		"Watch": &pb.WatchRequest{Request: &pb.WatchRequest_Create{Create: &pb.WatchCreateRequest{Start: "a"}}},
	}
	seeds := map[string][]byte{}
	for method, m := range all {
		b, err := proto.Marshal(m)
		require.NoError(t, err)
		seeds[method] = b
	}
	return seeds
}

// malformedCall calls a method with a damaged message. The ranges that it may delete do not contain the bystander's
// key.
func malformedCall(t *testing.T, r *rand.Rand, conn *grpc.ClientConn, seeds map[string][]byte) {
	methods := slices.Sorted(maps.Keys(seeds))
	method := methods[r.IntN(len(methods))]
	message := bytes.Clone(seeds[method])
	for range 1 + r.IntN(3) {
		switch i := r.IntN(len(message) + 1); r.IntN(3) {
		case 0:
			message = append(message[:i:i], append(randomBytes(r, r.IntN(8)), message[i:]...)...)
		case 1:
			message = message[:i]
		default:
			if i < len(message) {
				message[i] ^= 1 << r.IntN(8)
			}
		}
	}
	if strings.HasPrefix(method, "Delete") || method == "Transaction" {
		message = append(message, 0xff) // which is never valid
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var reply []byte
	err := conn.Invoke(ctx, "/skein.AppMaster/"+method, message, &reply, grpc.ForceCodec(rawCodec{}))
	require.NotContains(t, []codes.Code{codes.Unavailable, codes.DeadlineExceeded}, status.Code(err), "%s: %v", method, err)
}

// Unfinished handshakes delay neither other clients nor the end of the server.
func TestHandshakesThatStopInTheMiddle(t *testing.T) {
	s := newSkeinServer(t)
	for i := range 200 {
		conn, err := net.Dial("tcp", s.DoorAddr("skein"))
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		_, err = conn.Write([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252}[:i%10])
		require.NoError(t, err)
	}
	_, err := pb.NewAppMasterClient(s.connect(t)).GetRange(t.Context(), &pb.GetRangeRequest{})
	require.NoError(t, err)
	began := make(chan error, 1)
	go func() { began <- s.Close() }()
	select {
	case err := <-began:
		require.True(t, err == nil || errors.Is(err, atomredis.ErrClosed))
	case <-time.After(8 * time.Second): // a handshake may take ten
		require.Fail(t, "the server waits for handshakes")
	}
}
