package skein_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
	"github.com/atomredis/atomredis/doors/skein"
	pb "github.com/atomredis/atomredis/internal/wire/skein"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const deadline = 30 * time.Second

// secret has the files of a certificate and its key.
type secret struct{ cert, key string }

// ours makes the credentials of the tests, once.
var ours = sync.OnceValues(func() (cert, key []byte) {
	cert, key, err := skein.NewCredentials()
	if err != nil {
		panic(err)
	}
	return cert, key
})

// stored writes credentials to files.
func stored(t testing.TB, cert, key []byte) secret {
	t.Helper()
	dir := t.TempDir()
	s := secret{filepath.Join(dir, "skein.crt"), filepath.Join(dir, "skein.pem")}
	require.NoError(t, os.WriteFile(s.cert, cert, 0o600))
	require.NoError(t, os.WriteFile(s.key, key, 0o600))
	return s
}

// opened starts a server with the door and a running container of the service "sleeper".
func opened(t testing.TB, settings ...string) *atomredistest.Server {
	t.Helper()
	s := stored(t, first(ours()), second(ours()))
	o := atomredis.Options{Config: map[string]string{"skein-cert": s.cert, "skein-key": s.key,
		"skein-services": "sleeper=1", "door-skein": "127.0.0.1:0"}}
	for i := 0; i < len(settings); i += 2 {
		o.Config[settings[i]] = settings[i+1]
	}
	return atomredistest.RunOptions(t, o)
}

func first(a, _ []byte) []byte  { return a }
func second(_, b []byte) []byte { return b }

// client is a client of the door.
type client struct {
	pb.AppMasterClient
	conn *grpc.ClientConn
}

// trust returns the TLS configuration of a client of Skein.
func trust(t testing.TB, cert, key []byte) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(cert))
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, NextProtos: []string{"h2"},
		// The certificate has no subject alternative name, which Go needs; clients of Skein check the common name.
		InsecureSkipVerify: true, VerifyConnection: func(c tls.ConnectionState) error {
			_, err := c.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool})
			return err
		}}
}

func connect(t testing.TB, s *atomredistest.Server) *client {
	t.Helper()
	return connectWith(t, s.DoorAddr("skein"), credentials.NewTLS(trust(t, first(ours()), second(ours()))))
}

func connectWith(t testing.TB, address string, c credentials.TransportCredentials) *client {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(c), grpc.WithAuthority(skein.Name))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &client{pb.NewAppMasterClient(conn), conn}
}

// message parses a message in text form.
func message[M proto.Message](t testing.TB, m M, text string) M {
	t.Helper()
	require.NoError(t, prototext.Unmarshal([]byte(text), m), text)
	return m
}

// step is a call: a method, its request, and its response, or the code and the text of its error.
type step struct{ method, request, want string }

// play plays steps.
func (c *client) play(t testing.TB, steps ...step) {
	t.Helper()
	for _, s := range steps {
		got, err := c.call(t, s.method, s.request)
		if err != nil {
			require.Equal(t, s.want, status.Code(err).String()+": "+status.Convert(err).Message(), "%v", s)
			continue
		}
		want := proto.Clone(got)
		proto.Reset(want)
		message(t, want, s.want)
		require.True(t, proto.Equal(want, got), "%v: %v", s, got)
	}
}

func (c *client) call(t testing.TB, method, request string) (proto.Message, error) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	switch method {
	case "GetRange":
		return c.GetRange(ctx, message(t, new(pb.GetRangeRequest), request))
	case "PutKey":
		return c.PutKey(ctx, message(t, new(pb.PutKeyRequest), request))
	case "DeleteRange":
		return c.DeleteRange(ctx, message(t, new(pb.DeleteRangeRequest), request))
	case "Transaction":
		return c.Transaction(ctx, message(t, new(pb.TransactionRequest), request))
	case "getContainers":
		return c.GetContainers(ctx, message(t, new(pb.ContainersRequest), request))
	case "addContainer":
		return c.AddContainer(ctx, message(t, new(pb.AddContainerRequest), request))
	case "scale":
		return c.Scale(ctx, message(t, new(pb.ScaleRequest), request))
	case "killContainer":
		return c.KillContainer(ctx, message(t, new(pb.ContainerInstance), request))
	case "SetProgress":
		return c.SetProgress(ctx, message(t, new(pb.SetProgressRequest), request))
	case "shutdown":
		return c.Shutdown(ctx, message(t, new(pb.ShutdownRequest), request))
	case "AddProxy":
		return c.AddProxy(ctx, message(t, new(pb.Proxy), request))
	case "RemoveProxy":
		return c.RemoveProxy(ctx, message(t, new(pb.RemoveProxyRequest), request))
	case "GetProxies":
		return c.GetProxies(ctx, &pb.GetProxiesRequest{})
	case "UiInfo":
		return c.UiInfo(ctx, &pb.UIInfoRequest{})
	case "getApplicationSpec":
		return c.GetApplicationSpec(ctx, &pb.Empty{})
	}
	t.Fatalf("no method %s", method)
	return nil, nil
}

// The semantics of Skein's ranges.
func TestRanges(t *testing.T) {
	c := connect(t, opened(t))
	put := func(key string) step { return step{"PutKey", `key: "` + key + `" value: "v"`, ``} }
	c.play(t, step{"GetRange", ``, ``},
		put("b"), put("a"), put("b\\000"), put("\\uffff"), put("\\U0001f600"), put("\\ue000"), put(""),
		// UTF-16 code units: a supplementary character is before U+E000.
		step{"GetRange", `result_type: KEYS`, `count: 7 result_type: KEYS result {} result { key: "a" } result { key: "b" }
			result { key: "b\000" } result { key: "\U0001f600" } result { key: "\ue000" } result { key: "\uffff" }`},
		step{"GetRange", `start: "\U0001f600" end: "\ue000" result_type: KEYS`,
			`count: 1 result_type: KEYS result { key: "\U0001f600" }`},
		step{"GetRange", `start: "b" end: "b\000"`, `count: 1 result { key: "b" value: "v" }`},
		step{"GetRange", `start: "\000" end: "b"`, `count: 2 result { value: "v" } result { key: "a" value: "v" }`},
		step{"GetRange", `start: "b" result_type: NONE`, `count: 5 result_type: NONE`},
		step{"GetRange", `start: "z" end: "a"`, ``},
		step{"GetRange", `start: "z" end: "a" result_type: NONE`, `result_type: NONE`},
		step{"DeleteRange", `start: "z" end: "a" result_type: ITEMS`, `result_type: ITEMS`},
		step{"DeleteRange", `start: "b" end: "c"`, `count: 2`},
		step{"DeleteRange", `start: "\000" end: "b" result_type: KEYS`, `count: 2 result_type: KEYS result {} result { key: "a" }`},
		step{"DeleteRange", `result_type: ITEMS`, `count: 3 result_type: ITEMS result { key: "\U0001f600" value: "v" }
			result { key: "\ue000" value: "v" } result { key: "\uffff" value: "v" }`},
		step{"GetRange", ``, ``},
		step{"GetRange", `result_type: 7`, `InvalidArgument: Unknown result type 7`},
		step{"DeleteRange", `result_type: 7`, `InvalidArgument: Unknown result type 7`},
	)
}

func TestPuts(t *testing.T) {
	c := connect(t, opened(t))
	c.play(t,
		step{"PutKey", `key: "k" ignore_value: true ignore_owner: true`,
			`InvalidArgument: ignore_value & ignore_owner can't both be true`},
		step{"PutKey", `key: "k" ignore_value: true owner { service_name: "nobody" }`,
			`FailedPrecondition: ignore_value=True & key isn't already set`},
		step{"PutKey", `key: "k" owner { service_name: "nobody" }`, `InvalidArgument: Unknown service 'nobody'`},
		step{"PutKey", `key: "k" owner {}`, `InvalidArgument: Unknown service ''`},
		step{"PutKey", `key: "k" owner { service_name: "sleeper" instance: 3 }`,
			`InvalidArgument: Service 'sleeper' has no container instance 3`},
		step{"PutKey", `key: "k" owner { service_name: "sleeper" instance: -1 }`,
			`InvalidArgument: Service 'sleeper' has no container instance -1`},
		step{"GetRange", ``, ``},
		step{"PutKey", `key: "k" value: "\377\000" return_previous: true`, `return_previous: true`},
		step{"PutKey", `key: "k" owner { service_name: "sleeper" } ignore_value: true return_previous: true`,
			`return_previous: true previous { key: "k" value: "\377\000" }`},
		step{"PutKey", `key: "k" value: "2" ignore_owner: true owner { service_name: "nobody" }`, ``},
		step{"GetRange", ``, `count: 1 result { key: "k" value: "2" owner { service_name: "sleeper" } }`},
		step{"PutKey", `key: "k" value: "3" return_previous: true`,
			`return_previous: true previous { key: "k" value: "2" owner { service_name: "sleeper" } }`},
		step{"GetRange", ``, `count: 1 result { key: "k" value: "3" }`},
		step{"PutKey", `key: "k" ignore_owner: true`, ``},
		step{"GetRange", ``, `count: 1 result { key: "k" }`},
	)
}

func TestContainers(t *testing.T) {
	s := opened(t)
	c := connect(t, s)
	containers := func(request string, want ...string) {
		t.Helper()
		got, err := c.GetContainers(t.Context(), message(t, new(pb.ContainersRequest), request))
		require.NoError(t, err)
		require.Equal(t, want, described(got.Containers))
	}
	containers(``, "sleeper_0 RUNNING")
	added, err := c.Scale(t.Context(), &pb.ScaleRequest{ServiceName: "sleeper", Count: 3})
	require.NoError(t, err)
	require.Equal(t, []string{"sleeper_1 REQUESTED", "sleeper_2 REQUESTED"}, described(added.Containers))
	one, err := c.AddContainer(t.Context(), &pb.AddContainerRequest{ServiceName: "sleeper", Env: map[string]string{"A": "B"}})
	require.NoError(t, err)
	require.Equal(t, []string{"sleeper_3 REQUESTED"}, described([]*pb.Container{one}))
	s.MustDo(t, "SKEIN.CONTAINER", "START", "skein", "sleeper_2")
	containers(``, "sleeper_0 RUNNING", "sleeper_1 REQUESTED", "sleeper_2 RUNNING", "sleeper_3 REQUESTED")
	containers(`states: RUNNING services: "sleeper"`, "sleeper_0 RUNNING", "sleeper_2 RUNNING")

	c.play(t,
		step{"PutKey", `key: "one" owner { service_name: "sleeper" instance: 2 }`, ``},
		step{"PutKey", `key: "two" owner { service_name: "sleeper" instance: 2 }`, ``},
		step{"PutKey", `key: "three" owner { service_name: "sleeper" instance: 0 }`, ``},
		step{"killContainer", `service_name: "sleeper" instance: 2`, ``},
		step{"killContainer", `service_name: "sleeper" instance: 2`, ``},
		step{"killContainer", `service_name: "sleeper" instance: 9`,
			`InvalidArgument: Service 'sleeper' has no container instance 9`},
		step{"killContainer", `service_name: "nobody"`, `InvalidArgument: Unknown service 'nobody'`},
		step{"GetRange", `result_type: KEYS`, `count: 1 result_type: KEYS result { key: "three" }`},
		step{"PutKey", `key: "k" owner { service_name: "sleeper" instance: 2 }`,
			`InvalidArgument: Container 'sleeper_2' has already completed`},
		step{"scale", `service_name: "sleeper" count: 1 delta: 1`, `InvalidArgument: Can't specify both count and delta`},
		step{"scale", `service_name: "sleeper" count: -1`, `InvalidArgument: count must be >= 0`},
		step{"scale", `service_name: "nobody" count: 1`, `InvalidArgument: Unknown service 'nobody'`},
		step{"addContainer", `service_name: "nobody"`, `InvalidArgument: Unknown service 'nobody'`},
		step{"getContainers", `services: "nobody"`, `InvalidArgument: Unknown service 'nobody'`},
		step{"getContainers", `states: 17`, `InvalidArgument: Unknown state 17`},
	)
	killed, err := c.GetContainers(t.Context(), message(t, new(pb.ContainersRequest), `states: KILLED`))
	require.NoError(t, err)
	require.Equal(t, []string{"sleeper_2 KILLED"}, described(killed.Containers))
	require.Equal(t, "Killed by user request.", killed.Containers[0].ExitMessage)
	require.NotZero(t, killed.Containers[0].StartTime)
	require.NotZero(t, killed.Containers[0].FinishTime)

	// A scale-down ends requested containers before running ones, the oldest first; it stops at zero.
	changed, err := c.Scale(t.Context(), &pb.ScaleRequest{ServiceName: "sleeper", Delta: -1})
	require.NoError(t, err)
	require.Equal(t, []string{"sleeper_1 KILLED"}, described(changed.Containers))
	changed, err = c.Scale(t.Context(), &pb.ScaleRequest{ServiceName: "sleeper", Delta: -100})
	require.NoError(t, err)
	require.Equal(t, []string{"sleeper_3 KILLED", "sleeper_0 KILLED"}, described(changed.Containers))
	c.play(t, step{"getContainers", ``, ``}, step{"GetRange", ``, ``})
}

// described returns containers in short form.
func described(list []*pb.Container) (all []string) {
	for _, c := range list {
		all = append(all, c.ServiceName+"_"+string(rune('0'+c.Instance))+" "+c.State.String())
	}
	return all
}

func TestTransactions(t *testing.T) {
	c := connect(t, opened(t))
	holds := func(conditions string, want bool) step {
		if want {
			return step{"Transaction", conditions, `succeeded: true`}
		}
		return step{"Transaction", conditions, ``}
	}
	c.play(t,
		step{"PutKey", `key: "k" value: "\200"`, ``},
		step{"PutKey", `key: "owned" value: "v" owner { service_name: "sleeper" }`, ``},
		holds(``, true),
		holds(`condition { key: "k" operator: NOT_EQUAL }`, true), // exists
		holds(`condition { key: "k" operator: EQUAL }`, false),    // missing
		holds(`condition { key: "none" operator: EQUAL }`, true),
		holds(`condition { key: "none" operator: NOT_EQUAL }`, false),
		holds(`condition { key: "none" operator: LESS }`, false),
		holds(`condition { key: "none" operator: NOT_EQUAL value: "x" }`, true),
		holds(`condition { key: "none" operator: LESS value: "x" }`, false),
		holds(`condition { key: "k" operator: LESS value: "\000" }`, true), // Skein compares signed bytes
		holds(`condition { key: "k" operator: GREATER value: "\000" }`, false),
		holds(`condition { key: "k" operator: GREATER_EQUAL value: "\200" }`, true),
		holds(`condition { key: "k" operator: LESS_EQUAL value: "\200\000" }`, true),
		holds(`condition { key: "k" operator: EQUAL value: "" }`, false),
		holds(`condition { key: "k" field: OWNER operator: EQUAL }`, true),
		holds(`condition { key: "k" field: OWNER operator: EQUAL value: "v" }`, true),
		holds(`condition { key: "owned" field: OWNER operator: NOT_EQUAL }`, true),
		holds(`condition { key: "owned" field: OWNER operator: EQUAL owner { service_name: "sleeper" } }`, true),
		holds(`condition { key: "owned" field: OWNER operator: LESS owner { service_name: "sleeper" instance: 10 } }`, true),
		holds(`condition { key: "owned" field: OWNER operator: LESS owner { service_name: "a" instance: 10 } }`, false),
		holds(`condition { key: "k" operator: NOT_EQUAL } condition { key: "k" operator: EQUAL }`, false),
		step{"Transaction", `condition { operator: 9 }`, `InvalidArgument: Unknown operator 9`},
		step{"Transaction", `condition { field: 9 }`, `InvalidArgument: Unknown field 9`},
		step{"Transaction", `on_success { get_range { result_type: 9 } }`, `InvalidArgument: Unknown result type 9`},
		step{"Transaction", `on_failure { delete_range { result_type: 9 } }`, `InvalidArgument: Unknown result type 9`},

		// An invalid operation in the chosen branch refuses the transaction, before any operation is executed.
		step{"Transaction", `on_success { delete_range {} } on_success { put_key { key: "x" ignore_value: true } }`,
			`FailedPrecondition: ignore_value=True & key isn't already set`},
		step{"Transaction", `on_success { put_key { key: "x" value: "1" } } on_success { put_key { key: "x" ignore_value: true } }`,
			`FailedPrecondition: ignore_value=True & key isn't already set`},
		step{"Transaction", `on_success { put_key { key: "x" } } on_success { put_key { owner { service_name: "nobody" } } }`,
			`InvalidArgument: Unknown service 'nobody'`},
		step{"GetRange", `result_type: NONE`, `count: 2 result_type: NONE`},
		step{"Transaction", `on_failure { put_key { ignore_value: true ignore_owner: true } } on_success {}
				on_success { put_key { key: "x" value: "1" return_previous: true } } on_success {}
				on_success { put_key { key: "x" value: "2" return_previous: true } }
				on_success { get_range { start: "x" } } on_success { delete_range { start: "x" result_type: ITEMS } }
				on_success { get_range { result_type: KEYS } } on_success { delete_range {} }`,
			`succeeded: true result { put_key { return_previous: true } }
				result { put_key { return_previous: true previous { key: "x" value: "1" } } }
				result { get_range { count: 1 result { key: "x" value: "2" } } }
				result { delete_range { count: 1 result_type: ITEMS result { key: "x" value: "2" } } }
				result { get_range { count: 2 result_type: KEYS result { key: "k" } result { key: "owned" } } }
				result { delete_range { count: 2 } }`},
		step{"Transaction", `condition { key: "k" operator: NOT_EQUAL } on_failure { put_key { key: "k" value: "default" } }`,
			`result { put_key {} }`},
		step{"GetRange", ``, `count: 1 result { key: "k" value: "default" }`},
	)
}

func TestTheApplication(t *testing.T) {
	s := opened(t, "skein-application", "mine")
	c := connect(t, s)
	c.play(t,
		step{"getApplicationSpec", ``, `name: "mine"`},
		step{"SetProgress", `progress: 0.25`, ``},
		step{"SetProgress", `progress: 1.5`, `InvalidArgument: progress must be between 0 and 1, got 1.5`},
		step{"SetProgress", `progress: -1`, `InvalidArgument: progress must be between 0 and 1, got -1.0`},
		step{"SetProgress", `progress: nan`, `InvalidArgument: progress must be between 0 and 1, got NaN.0`},
		step{"AddProxy", `route: "r" target: "http://x" link_name: "a page"`, ``},
		step{"AddProxy", `route: "r"`, `AlreadyExists: Proxy 'r' already exists`},
		step{"AddProxy", `route: "q" target: "http://y"`, ``},
		step{"GetProxies", ``, `proxy { route: "q" target: "http://y" } proxy { route: "r" target: "http://x" link_name: "a page" }`},
		step{"RemoveProxy", `route: "q"`, ``},
		step{"RemoveProxy", `route: "q"`, `NotFound: Proxy 'q' doesn't exist`},
		step{"UiInfo", ``, ``},
		step{"PutKey", `key: "k" value: "v" owner { service_name: "sleeper" }`, ``},
	)
	require.Equal(t, `"0.25"`, s.MustDo(t, "GET", "skein:{mine}:progress").String())
	require.Contains(t, s.MustDo(t, "HGETALL", "skein:{mine}").String(), `"k" => "v"`)
	s.MustDo(t, "SKEIN.PUT", "mine", "other", "VALUE", "w")
	c.play(t, step{"GetRange", ``, `count: 2 result { key: "k" value: "v" owner { service_name: "sleeper" } }
		result { key: "other" value: "w" }`})
}

func TestShutdown(t *testing.T) {
	s := opened(t)
	c := connect(t, s)
	w := watching(t, c)
	w.create("", "")
	c.play(t, step{"PutKey", `key: "k" owner { service_name: "sleeper" }`, ``})
	w.expect(`type: PUT event { key: "k" owner { service_name: "sleeper" } }`)
	c.play(t, step{"shutdown", `final_status: 9`, `InvalidArgument: Unknown status 9`},
		step{"shutdown", `final_status: SUCCEEDED`, ``})
	for {
		_, err := w.stream.Recv()
		if err == nil {
			continue // event of the owned key
		}
		require.Equal(t, codes.Unavailable, status.Code(err), err)
		break
	}
	require.Eventually(t, func() bool { return s.DoorAddr("skein") == "" }, deadline, time.Millisecond)
	_, err := c.call(t, "GetRange", ``)
	require.Equal(t, codes.Unavailable, status.Code(err), err)
	require.Equal(t, `"SUCCEEDED Shutdown requested by user."`, s.MustDo(t, "GET", "skein:{skein}:status").String())
	require.Equal(t, `(empty array)`, s.MustDo(t, "SKEIN.RANGE", "skein", "", "").String(), "what was owned is gone")

	// Containers run again when the door is opened again.
	s.MustDo(t, "CONFIG", "SET", "door-skein", "")
	s.MustDo(t, "CONFIG", "SET", "door-skein", "127.0.0.1:0", "skein-shutdown", "server")
	c = connect(t, s)
	c.play(t, step{"GetRange", ``, ``})
	// A command finishes the application too, if it names this one.
	s.MustDo(t, "SKEIN.FINISH", "other", "SUCCEEDED")
	c.play(t, step{"GetRange", ``, ``})
	s.MustDo(t, "CONFIG", "SET", "skein-shutdown", "door")
	s.MustDo(t, "SKEIN.FINISH", "skein", "FAILED", "gone")
	require.Eventually(t, func() bool { return s.DoorAddr("skein") == "" }, deadline, time.Millisecond)
	s.MustDo(t, "CONFIG", "SET", "door-skein", "")
	s.MustDo(t, "CONFIG", "SET", "door-skein", "127.0.0.1:0", "skein-shutdown", "server")
	c = connect(t, s)
	got, err := c.GetContainers(t.Context(), &pb.ContainersRequest{})
	require.NoError(t, err)
	require.Equal(t, []string{"sleeper_2 RUNNING"}, described(got.Containers))
	c.play(t, step{"shutdown", `diagnostics: "done"`, ``})
	require.Eventually(t, func() bool {
		_, err := s.Do(t.Context(), "PING")
		return errors.Is(err, atomredis.ErrClosed)
	}, deadline, time.Millisecond)
}

// Peers with a wrong certificate or none are refused.
func TestWhoIsNotTrusted(t *testing.T) {
	s := opened(t)
	bystander := connect(t, s)
	bystander.play(t, step{"GetRange", ``, ``})
	otherCert, otherKey, err := skein.NewCredentials()
	require.NoError(t, err)
	other := trust(t, otherCert, otherKey)
	other.VerifyConnection = nil
	none := trust(t, first(ours()), second(ours()))
	none.Certificates = nil
	for name, c := range map[string]credentials.TransportCredentials{
		"another": credentials.NewTLS(other), "none": credentials.NewTLS(none), "clear": insecure.NewCredentials(),
	} {
		stranger := connectWith(t, s.DoorAddr("skein"), c)
		_, err := stranger.call(t, "GetRange", ``)
		require.Equal(t, codes.Unavailable, status.Code(err), name)
		stranger.conn.Close()
	}
	// An incomplete handshake, and a handshake without ALPN.
	half, err := net.Dial("tcp", s.DoorAddr("skein"))
	require.NoError(t, err)
	defer half.Close()
	_, err = half.Write([]byte{22, 3, 1, 2, 0, 1, 0})
	require.NoError(t, err)
	config := trust(t, first(ours()), second(ours()))
	config.NextProtos = nil
	plain, err := tls.Dial("tcp", s.DoorAddr("skein"), config)
	if err == nil {
		plain.SetDeadline(time.Now().Add(deadline))
		_, err = io.Copy(io.Discard, plain)
		plain.Close()
	}
	require.False(t, errors.Is(err, os.ErrDeadlineExceeded))
	bystander.play(t, step{"GetRange", ``, ``})
}

func TestFilesThatChangeAreReadAgain(t *testing.T) {
	files := stored(t, first(ours()), second(ours()))
	s := opened(t, "skein-cert", files.cert, "skein-key", files.key)
	before := connect(t, s)
	before.play(t, step{"GetRange", ``, ``})
	require.NoError(t, os.WriteFile(files.cert, []byte("nonsense"), 0o600))
	connect(t, s).play(t, step{"GetRange", ``, ``})
	cert, key, err := skein.NewCredentials()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(files.cert, cert, 0o600))
	require.NoError(t, os.WriteFile(files.key, key, 0o600))
	connectWith(t, s.DoorAddr("skein"), credentials.NewTLS(trust(t, cert, key))).play(t, step{"GetRange", ``, ``})
	_, err = connect(t, s).call(t, "GetRange", ``)
	require.Equal(t, codes.Unavailable, status.Code(err))
	before.play(t, step{"GetRange", ``, ``})
	// The directives name other files.
	third := stored(t, first(ours()), second(ours()))
	s.MustDo(t, "CONFIG", "SET", "skein-cert", third.cert, "skein-key", third.key)
	connect(t, s).play(t, step{"GetRange", ``, ``})
}

func TestDirectives(t *testing.T) {
	db, err := atomredis.Open(atomredis.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	for _, bad := range [][2]string{
		{"skein-application", ""}, {"skein-application", "{a}"}, {"skein-services", "a"}, {"skein-services", "a=1,"},
		{"skein-services", "=1"}, {"skein-services", "a=-1"}, {"skein-shutdown", "perhaps"}, {"door-skein", "127.0.0.1:0"},
	} {
		_, err := db.Do(t.Context(), "CONFIG", "SET", bad[0], bad[1])
		require.ErrorContains(t, err, "possibly related to argument '"+bad[0]+"'", bad)
	}
	_, err = db.Do(t.Context(), "CONFIG", "SET", "skein-cert", "/nowhere", "skein-key", "/nowhere", "door-skein", "127.0.0.1:0")
	require.Error(t, err)
}

func TestPeersActAsTheUserOfTheDoor(t *testing.T) {
	s := opened(t)
	s.MustDo(t, "ACL", "SETUSER", "peers", "on", "nopass", "~skein:*", "+skein.range", "+skein.put")
	s.MustDo(t, "CONFIG", "SET", "door-skein-user", "peers")
	c := connect(t, s)
	c.play(t, step{"PutKey", `key: "k"`, ``}, step{"DeleteRange", ``,
		"PermissionDenied: NOPERM User peers has no permissions to run the 'skein.del' command"})
	stream, err := c.Watch(t.Context())
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.PermissionDenied, status.Code(err), err)
	s.MustDo(t, "CONFIG", "SET", "maxmemory", "1")
	_, err = c.call(t, "PutKey", `key: "k"`)
	require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
	require.True(t, strings.Contains(err.Error(), "OOM"), err)
}

// The caller of shutdown gets its reply before the server ends, whatever the server does at its end.
func TestShutdownOfTheServer(t *testing.T) {
	for name, settings := range map[string][]string{
		"in memory": nil, "with a journal": {"dir", t.TempDir(), "appendonly", "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := opened(t, append(settings, "skein-shutdown", "server")...)
			c := connect(t, s)
			c.play(t, step{"GetRange", ``, ``}) // makes the client connect
			s.MustDo(t, "ACL", "SETUSER", "worker", "on", "nopass", "~*", "&*", "+@all", "-shutdown")
			s.MustDo(t, "CONFIG", "SET", "door-skein-user", "worker")
			c.play(t, step{"shutdown", ``, ``}) // as the default user
			require.Eventually(t, func() bool { return s.DoorAddr("skein") == "" }, deadline, time.Millisecond)
			s.MustDo(t, "PING") // the door's user may not end the server

			s.MustDo(t, "CONFIG", "SET", "door-skein", "")
			s.MustDo(t, "CONFIG", "SET", "door-skein", "127.0.0.1:0")
			c = connect(t, s)
			c.play(t, step{"shutdown", ``, `PermissionDenied: NOPERM User worker has no permissions to run the 'shutdown' command`},
				step{"GetRange", ``, ``})
			s.MustDo(t, "CONFIG", "SET", "door-skein-user", "")
			s.MustDo(t, "PUBLISH", "skein:{skein}:finished", "SUCCEEDED forged")
			c = connect(t, s)
			c.play(t, step{"GetRange", ``, ``}, step{"shutdown", `diagnostics: "done"`, ``})
			require.Eventually(t, func() bool {
				_, err := s.Do(t.Context(), "PING")
				return errors.Is(err, atomredis.ErrClosed)
			}, deadline, time.Millisecond)
			require.NoError(t, s.Close())
		})
	}
}
