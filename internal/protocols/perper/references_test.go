package perper_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/protocols/perper"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// oneLine sends commands and compares their replies on one line.
func oneLine(t *testing.T, b *servertest.Stepped, steps ...[]string) {
	t.Helper()
	for _, s := range steps {
		require.Equal(t, s[0], servertest.OnOneLine(b.Send("a", s[1:]...)), s)
	}
}

func TestStreamsThatNobodyRefersToAreCollected(t *testing.T) {
	b := servertest.NewStepped(t, "perper-unreferenced-expiry", "1000").Journalled()
	defer b.Finish()
	oneLine(t, b,
		[]string{":1", "PERPER.CREATE", "never"}, []string{":1", "PERPER.CREATE", "s"}, []string{":1", "PERPER.CREATE", "state"},
		[]string{"+OK", "PERPER.PUT", "s", "k", "x"}, []string{"+OK", "PERPER.LISTEN", "s", "l"},
		[]string{"+OK", "PERPER.LISTEN", "gone", "m"})
	b.Pass(5000)
	oneLine(t, b,
		[]string{":1", "PERPER.REMOVE", "stream-listeners", "l"}, []string{":1", "PERPER.REMOVE", "stream-listeners", "m"},
		[]string{"+OK", "PERPER.PUT", "state", "input", "s"})
	b.Pass(1000) // kept by the state
	oneLine(t, b, []string{":1", "EXISTS", "perper:{s}:config"}, []string{"*1 s", "ZRANGE", "perper:{stream-listeners}:left", "0", "-1"},
		[]string{"+OK", "PERPER.PUT", "state", "input", "s2"})
	b.Pass(999)
	oneLine(t, b, []string{":1", "EXISTS", "perper:{s}:config"})
	b.Pass(1)
	oneLine(t, b, []string{"-NOCACHE the cache does not exist", "PERPER.LEN", "s"}, []string{":0", "PERPER.LEN", "never"},
		[]string{":1", "PERPER.LEN", "state"}, []string{":0", "EXISTS", "perper:{stream-listeners}:left"})
}

// A listener that comes back, or an execution that writes a stream, keeps it.
func TestWhatKeepsAStream(t *testing.T) {
	b := servertest.NewStepped(t, "perper-unreferenced-expiry", "1000").Journalled()
	defer b.Finish()
	oneLine(t, b, []string{"s", "PERPER.CALL", "a", "i", "numbers", "ID", "s"}, []string{":1", "PERPER.CREATE", "s"},
		[]string{"+OK", "PERPER.LISTEN", "s", "l"}, []string{":1", "PERPER.REMOVE", "stream-listeners", "l"})
	b.Pass(5000)
	oneLine(t, b, []string{":0", "PERPER.LEN", "s"}, []string{"+OK", "PERPER.LISTEN", "s", "l"}, []string{":1", "PERPER.FINISH", "s"})
	b.Pass(5000)
	oneLine(t, b, []string{":0", "PERPER.LEN", "s"}, []string{":1", "PERPER.LEN", "executions"},
		[]string{":1", "PERPER.REMOVE", "stream-listeners", "l"})
	b.Pass(3000) // first the stream, then its execution
	oneLine(t, b, []string{"-NOCACHE the cache does not exist", "PERPER.LEN", "s"}, []string{":0", "PERPER.LEN", "executions"})
}

func TestWhatIsOffIsNotCollected(t *testing.T) {
	b := servertest.NewStepped(t).Journalled()
	defer b.Finish()
	oneLine(t, b, []string{"x", "PERPER.CALL", "a", "i", "d", "ID", "x"}, []string{":1", "PERPER.FINISH", "x"},
		[]string{":0", "EXISTS", "perper:{executions}:left"},
		[]string{"-ERR CONFIG SET failed (possibly related to argument 'perper-unreferenced-expiry') - " +
			"must be a number of milliseconds, 0 for none", "CONFIG", "SET", "perper-unreferenced-expiry", "x"})
	b.Pass(1e9)
	oneLine(t, b, []string{":1", "PERPER.LEN", "executions"})
}

// A reference that moves from cache to cache is seen, although the search never finds it where it looks.
func TestAReferenceThatMovesKeepsAStream(t *testing.T) {
	b := servertest.NewStepped(t, "perper-unreferenced-expiry", "1000")
	defer b.Finish()
	for _, cache := range []string{"one", "two", "s"} {
		oneLine(t, b, []string{":1", "PERPER.CREATE", cache}, []string{"+OK", "PERPER.PUT", cache, "k", "v"})
	}
	oneLine(t, b, []string{"+OK", "PERPER.PUT", "one", "input", "s"}, []string{"+OK", "PERPER.LISTEN", "s", "l"},
		[]string{":1", "PERPER.REMOVE", "stream-listeners", "l"})
	moves := 0
	perper.BeforePiece(b.Server, func(cache string) {
		to, ok := map[string]string{"one": "two", "two": "one"}[cache]
		if ok && b.Send("mover", "PERPER.HAS", cache, "input") == ":1\r\n" {
			moves++
			b.Send("mover", "PERPER.PUT", to, "input", "s")
			b.Send("mover", "PERPER.REMOVE", cache, "input")
		}
	})
	b.Pass(1000)
	require.Positive(t, moves)
	oneLine(t, b, []string{":1", "PERPER.LEN", "s"})
	perper.BeforePiece(b.Server, nil)
	b.Pass(1000)
	oneLine(t, b, []string{":1", "PERPER.LEN", "s"}, []string{"+OK", "PERPER.DESTROY", "one"}, []string{"+OK", "PERPER.DESTROY", "two"})
	b.Pass(1000)
	oneLine(t, b, []string{"-NOCACHE the cache does not exist", "PERPER.LEN", "s"})
}

// fabricModel has what the caches have, and which streams and executions are candidates.
type fabricModel struct {
	streams    map[string]map[string][]string // streams with their items: names by key
	state      map[string]string              // names by key
	listeners  map[string]string              // streams by listener
	executions map[string][]string            // the parameters; "" in the first place says that it is not finished
	left       map[string]bool                // streams that had a listener
}

// refers reports whether something refers to a stream or, with call, to an execution.
func (m *fabricModel) refers(name string, call bool) bool {
	for stream, items := range m.streams {
		for _, names := range items {
			if stream != name && slices.Contains(names, name) {
				return true
			}
		}
	}
	for _, named := range m.state {
		if named == name {
			return true
		}
	}
	for id, parameters := range m.executions {
		if id != name && slices.Contains(parameters[1:], name) {
			return true
		}
	}
	for _, stream := range m.listeners {
		if stream == name {
			return true
		}
	}
	_, isStream := m.streams[name]
	e, is := m.executions[name]
	return is && e[0] == "" || call && isStream
}

// collect removes what is collected in the end.
func (m *fabricModel) collect() {
	for changed := true; changed; {
		changed = false
		for name := range m.streams {
			if m.left[name] && !m.refers(name, false) {
				delete(m.streams, name)
				delete(m.left, name)
				changed = true
			}
		}
		for id, e := range m.executions {
			if e[0] != "" && !m.refers(id, true) {
				delete(m.executions, id)
				changed = true
			}
		}
	}
}

// names returns those of streams and executions.
func (m *fabricModel) names() (all []string) {
	for name := range m.streams {
		all = append(all, "stream "+name)
	}
	for name := range m.executions {
		all = append(all, "execution "+name)
	}
	slices.Sort(all)
	return all
}

// Random commands, and time that passes, remove what nobody refers to and nothing else.
func TestCollectionAgainstAModel(t *testing.T) {
	r := testseed.Rand(t)
	b := servertest.NewStepped(t, "perper-unreferenced-expiry", "100").Journalled()
	defer b.Finish()
	oneLine(t, b, []string{":1", "PERPER.CREATE", "state"})
	m := &fabricModel{streams: map[string]map[string][]string{}, state: map[string]string{}, listeners: map[string]string{},
		executions: map[string][]string{}, left: map[string]bool{}}
	for round := range 60 {
		for range r.IntN(30) {
			m.step(t, b, r)
		}
		if r.IntN(3) > 0 { // what has references is there at any time
			b.Pass(r.IntN(150))
			there := present(b)
			for name := range m.streams {
				if m.refers(name, false) || !m.left[name] {
					require.Contains(t, there, "stream "+name)
				}
			}
			m.adopt(there)
			continue
		}
		for range 30 { // what refers to it is collected before
			b.Pass(100)
		}
		m.collect()
		require.Equal(t, m.names(), present(b), "round %d", round)
	}
}

// present returns the names of the streams and executions of a server.
func present(b *servertest.Stepped) (all []string) {
	for _, name := range strings.Fields(servertest.OnOneLine(b.Send("a", "PERPER.CACHES")))[1:] {
		if strings.HasPrefix(name, "n") {
			all = append(all, "stream "+name)
		}
	}
	for _, id := range []string{"n0", "n1", "n2", "n3", "n4", "n5"} {
		if b.Send("a", "PERPER.HAS", "executions", id) == ":1\r\n" {
			all = append(all, "execution "+id)
		}
	}
	slices.Sort(all)
	return all
}

// adopt removes from the model what has been collected.
func (m *fabricModel) adopt(there []string) {
	for name := range m.streams {
		if !slices.Contains(there, "stream "+name) {
			delete(m.streams, name)
			delete(m.left, name)
		}
	}
	for id := range m.executions {
		if !slices.Contains(there, "execution "+id) {
			delete(m.executions, id)
		}
	}
}

// step executes a random command.
func (m *fabricModel) step(t *testing.T, b *servertest.Stepped, r *rand.Rand) {
	name := func() string { return fmt.Sprint("n", r.IntN(6)) }
	key, a, other := fmt.Sprint(r.IntN(4)), name(), name()
	_, isStream := m.streams[a]
	e, called := m.executions[a]
	switch r.IntN(9) {
	case 0:
		if !isStream {
			oneLine(t, b, []string{":1", "PERPER.CREATE", a})
			m.streams[a] = map[string][]string{}
			m.left[a] = b.Send("a", "ZSCORE", "perper:{stream-listeners}:left", a) != "$-1\r\n" // not if that was due before
		}
	case 1:
		if isStream {
			oneLine(t, b, []string{"+OK", "PERPER.PUT", a, "k" + key, other})
			m.streams[a]["k"+key] = []string{other}
		}
	case 2, 3:
		oneLine(t, b, []string{"+OK", "PERPER.LISTEN", a, "l" + key})
		m.unlisten("l" + key)
		m.listeners["l"+key] = a
		delete(m.left, a)
	case 4:
		if m.listeners["l"+key] != "" {
			oneLine(t, b, []string{":1", "PERPER.REMOVE", "stream-listeners", "l" + key})
			m.unlisten("l" + key)
		}
	case 5:
		if !called {
			oneLine(t, b, []string{a, "PERPER.CALL", "agent", "i", "d", "ID", a, "PARAMETERS", other})
			m.executions[a] = []string{"", other}
		}
	case 6:
		if called && e[0] == "" {
			oneLine(t, b, []string{":1", "PERPER.FINISH", a, "RESULTS", other})
			m.executions[a] = []string{"finished", e[1], other}
		}
	case 7:
		oneLine(t, b, []string{"+OK", "PERPER.PUT", "state", key, other})
		m.state[key] = other
	case 8:
		if m.state[key] != "" {
			oneLine(t, b, []string{":1", "PERPER.REMOVE", "state", key})
			delete(m.state, key)
		}
	}
}

// unlisten removes a listener; the last one of a stream leaves it.
func (m *fabricModel) unlisten(id string) {
	stream := m.listeners[id]
	delete(m.listeners, id)
	for _, other := range m.listeners {
		if other == stream {
			return
		}
	}
	if stream != "" {
		m.left[stream] = true
	}
}
