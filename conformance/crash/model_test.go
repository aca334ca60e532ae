package crash

import (
	"log/slog"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	atomredis "github.com/atomredis/atomredis/server"
)

// The model's result of commands is that of a server that is not killed.
func TestModelAgreesWithAServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	conf := config.NewConfig()
	conf.InMemory()
	conf.ListenNowhere()
	srv, err := atomredis.New(conf, slog.New(slog.DiscardHandler), atomredis.Options{Listeners: []net.Listener{l}})
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	defer srv.Close()
	connect := func() *transcript.Conn {
		nc, err := transcript.Dial(l.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { nc.Close() })
		return transcript.NewConn(nc)
	}
	c, reader := connect(), connect()

	all := generators("worker")
	all["fields"] = &fieldDeadlines{label: fieldsOwner} // the worker whose deadlines are read
	all["members"] = &memberDeadlines{label: membersOwner}
	all["library"] = &library{label: libraryOwner}
	all["grouped"] = &grouped{label: "worker", newer: true}
	for name, g := range all {
		t.Run(name, func(t *testing.T) {
			_, err := ask(c, []string{"FLUSHALL"}, []string{"FUNCTION", "FLUSH"})
			require.NoError(t, err)
			w := newLinear("worker", g, 1, 0)
			r := rand.New(rand.NewPCG(1, 2))
			for i := range 500 {
				o := g.next(r)
				o.sent = time.Now()
				replies, err := do(c, o.wire...)
				require.NoError(t, err)
				o.acked = time.Now()
				require.NoError(t, o.learn(replies))
				g.observe(o)
				w.execute(o, nil, ending{})
				if i%50 != 49 {
					continue
				}
				s, err := takeSnapshot(reader)
				require.NoError(t, err)
				for p, want := range w.model {
					require.True(t, same(want, s.data[p], s.read), "after %d operations key %s: %s", i+1, p,
						difference(want, s.data[p]))
				}
				for p := range s.data {
					require.Contains(t, w.model, p)
				}
			}
		})
	}
}
