package crash

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	doorskein "github.com/atomredis/atomredis/doors/skein"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	pb "github.com/atomredis/atomredis/internal/wire/skein"
)

// skein is a worker that uses the door of Skein. Two writers put and delete keys, also two in a transaction; a third
// one adds containers, gives them keys, and kills them. An owned key does not survive its container.
type skein struct {
	addr    string
	secrets *tls.Config
	writers [skeinWriters]*doorHistory // the last one is that of containers
	// next is the number of the next container.
	next  int
	found skeinState
}

const (
	skeinWriters = 3
	skeinOwner   = skeinWriters - 1
	// skeinKeys is the number of keys of a writer, skeinOwned that of a container.
	skeinKeys, skeinOwned = 20, 3
	skeinService          = "crash"
	// skeinContainer is the prefix of containers' names in the history, before their numbers.
	skeinContainer        = "container "
	skeinLive, skeinEnded = "live", "ended"
)

// skeinFiles writes the certificate and the key that all sides share, and returns the clients' configuration.
func skeinFiles(certFile, keyFile string) (*tls.Config, error) {
	cert, key, err := doorskein.NewCredentials()
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	// The certificate names no host.
	return &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true},
		errors.Join(os.WriteFile(certFile, cert, 0o600), os.WriteFile(keyFile, key, 0o600))
}

func newSkein(addr string, secrets *tls.Config) *skein {
	w := &skein{addr: addr, secrets: secrets}
	for i := range w.writers {
		w.writers[i] = newDoorHistory()
	}
	return w
}

func (w *skein) name() string { return "skein" }

func (w *skein) run(_ dialer, r *rand.Rand) error {
	tasks := []func(pb.AppMasterClient, *rand.Rand) error{skeinOwner: w.contain}
	for i := range skeinOwner {
		tasks[i] = func(c pb.AppMasterClient, r *rand.Rand) error { return w.write(c, r, i) }
	}
	return runDoorTasks("skein", w.dial, r, tasks)
}

func (w *skein) dial() (pb.AppMasterClient, func(), error) {
	conn, err := grpc.NewClient("passthrough:///"+w.addr, grpc.WithTransportCredentials(credentials.NewTLS(w.secrets)))
	if err != nil {
		return nil, nil, err
	}
	return pb.NewAppMasterClient(conn), func() { conn.Close() }, nil
}

func (w *skein) write(c pb.AppMasterClient, r *rand.Rand, i int) error {
	h := w.writers[i]
	key := func() string { return fmt.Sprintf("w%d-%d", i, r.IntN(skeinKeys)) }
	for n := 0; ; n++ {
		a, b := key(), key()
		value := strconv.FormatUint(r.Uint64(), 36)
		var err error
		switch r.IntN(5) {
		case 0:
			done := h.send(doorChange{a: ""})
			_, err = callRPC(c.DeleteRange, &pb.DeleteRangeRequest{Start: a, End: a + "\x00"})
			h.answered(done, err)
		case 1:
			done := h.send(doorChange{a: value, b: value})
			put := func(key string) *pb.OpRequest {
				return &pb.OpRequest{Request: &pb.OpRequest_PutKey{PutKey: &pb.PutKeyRequest{Key: key, Value: []byte(value)}}}
			}
			_, err = callRPC(c.Transaction, &pb.TransactionRequest{OnSuccess: []*pb.OpRequest{put(a), put(b)}})
			h.answered(done, err)
		default:
			done := h.send(doorChange{a: value})
			_, err = callRPC(c.PutKey, &pb.PutKeyRequest{Key: a, Value: []byte(value)})
			h.answered(done, err)
		}
		if err != nil {
			return err
		}
	}
}

// contain adds containers with keys, and kills most of them.
func (w *skein) contain(c pb.AppMasterClient, r *rand.Rand) error {
	h := w.writers[skeinOwner]
	var live []int
	for name, state := range h.base {
		if number, ok := strings.CutPrefix(name, skeinContainer); ok && state == skeinLive {
			n, err := strconv.Atoi(number)
			if err != nil {
				return err
			}
			live = append(live, n)
		}
	}
	for {
		if len(live) < 8 {
			n := w.next
			done := h.send(doorChange{skeinContainer + strconv.Itoa(n): skeinLive})
			reply, err := callRPC(c.AddContainer, &pb.AddContainerRequest{ServiceName: skeinService})
			h.answered(done, err)
			if err != nil {
				return err
			}
			if int(reply.Instance) != n {
				return fmt.Errorf("the container after %d is %d", n-1, reply.Instance)
			}
			w.next++
			live = append(live, n)
		}
		n := live[r.IntN(len(live))]
		owner := &pb.ContainerInstance{ServiceName: skeinService, Instance: int32(n)}
		key := func(i int) string { return fmt.Sprintf("c%d-%d", n, i) }
		if r.IntN(4) > 0 {
			k, value := key(r.IntN(skeinOwned)), strconv.FormatUint(r.Uint64(), 36)
			done := h.send(doorChange{k: value})
			_, err := callRPC(c.PutKey, &pb.PutKeyRequest{Key: k, Value: []byte(value), Owner: owner})
			h.answered(done, err)
			if err != nil {
				return err
			}
			continue
		}
		gone := doorChange{skeinContainer + strconv.Itoa(n): skeinEnded}
		for i := range skeinOwned {
			gone[key(i)] = ""
		}
		done := h.send(gone)
		_, err := callRPC(c.KillContainer, owner)
		h.answered(done, err)
		if err != nil {
			return err
		}
		live = slices.DeleteFunc(live, func(other int) bool { return other == n })
	}
}

// skeinState is the content of the application's keys.
type skeinState struct {
	values, owners, containers map[string]string
	indexed, owned             int
}

func (w *skein) inquire(c *transcript.Conn) error {
	const keys = "skein:{skein}"
	replies, err := ask(c, []string{"SELECT", "0"}, []string{"MULTI"}, []string{"HGETALL", keys},
		[]string{"HGETALL", keys + ":owners"}, []string{"HGETALL", keys + ":containers"}, []string{"ZCARD", keys + ":index"},
		[]string{"ZCARD", keys + ":owned"}, []string{"EXEC"})
	if err != nil {
		return err
	}
	parts := replies[len(replies)-1].Elems
	w.found = skeinState{values: fields(parts[0]), owners: fields(parts[1]), containers: fields(parts[2])}
	w.found.indexed, _ = strconv.Atoi(parts[3].Text)
	w.found.owned, _ = strconv.Atoi(parts[4].Text)
	return nil
}

func (w *skein) settle(_ *snapshot, e ending) (acked int, err error) {
	if w.found.indexed != len(w.found.values) || w.found.owned != len(w.found.owners) {
		return 0, fmt.Errorf("skein: %d keys, of which %d are in the index; %d have owners, of which %d are in their index",
			len(w.found.values), w.found.indexed, len(w.found.owners), w.found.owned)
	}
	var have [skeinWriters]map[string]string
	for i := range have {
		have[i] = map[string]string{}
	}
	w.next = 0 // the last containers added may be lost with everysec
	for id, stored := range w.found.containers {
		number, ok := strings.CutPrefix(id, skeinService+"_")
		if !ok {
			return 0, fmt.Errorf("skein: there is a container %s, which was never added", id)
		}
		state := skeinLive
		if word, _, _ := strings.Cut(stored, " "); word != "WAITING" && word != "REQUESTED" && word != "RUNNING" {
			state = skeinEnded
		}
		have[skeinOwner][skeinContainer+number] = state
		if n, err := strconv.Atoi(number); err == nil {
			w.next = max(w.next, n+1)
		}
	}
	for key, value := range w.found.values {
		number, _, _ := strings.Cut(strings.TrimLeft(key, "wc"), "-")
		owner, owned := w.found.owners[key]
		switch n, err := strconv.Atoi(number); {
		case err != nil:
			return 0, fmt.Errorf("skein: key %q was never put", key)
		case key[0] == 'w' && !owned && n < skeinOwner:
			have[n][key] = value
		case key[0] == 'c' && owner == skeinService+"_"+number:
			if have[skeinOwner][skeinContainer+number] != skeinLive {
				return 0, fmt.Errorf("skein: key %s has survived its container, which is %s", key, w.found.containers[owner])
			}
			have[skeinOwner][key] = value
		default:
			return 0, fmt.Errorf("skein: key %q has the owner %q", key, owner)
		}
	}
	for i, h := range w.writers {
		n, err := h.settle(have[i], e)
		if err != nil {
			return 0, fmt.Errorf("skein: writer %d: %w", i, err)
		}
		acked += n
	}
	return acked, nil
}
