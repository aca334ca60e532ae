package perper_test

import (
	"bytes"
	"encoding/hex"
	"iter"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/event"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
)

var indent = regexp.MustCompile(`\n +`)

// play executes the commands of a session, and compares their replies, each on one line.
func play(t *testing.T, s *atomredistest.Server, session string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(session), "\n")
	for i := 0; i < len(lines); i++ {
		words := strings.Fields(lines[i])
		require.Equal(t, ">", words[0], lines[i])
		args := make([]any, len(words)-1)
		for i, word := range words[1:] {
			args[i] = word
		}
		var want []string
		for i+1 < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[i+1]), "> ") {
			i++
			want = append(want, strings.TrimSpace(lines[i]))
		}
		r, err := s.Do(t.Context(), args...)
		got := r.String()
		if err != nil {
			got = err.Error()
		}
		got = indent.ReplaceAllString(got, "\n")
		require.Equal(t, strings.Join(want, "\n"), got, strings.Join(words, " "))
	}
}

func TestCommandsOnCaches(t *testing.T) {
	s := atomredistest.Run(t)
	play(t, s, `
		> PERPER.CACHES
		(empty array)
		> PERPER.GET c k
		NOCACHE the cache does not exist
		> PERPER.CREATE c
		(integer) 1
		> PERPER.CREATE c
		CACHEEXISTS the cache exists already
		> PERPER.CREATE c IFMISSING CONFIG x
		(integer) 0
		> PERPER.CONFIG c
		""
		> PERPER.CREATE Aa CONFIG configuration
		(integer) 1
		> PERPER.CREATE BB
		CACHEID another cache has the same id
		> PERPER.NAME 2112
		"Aa"
		> PERPER.NAME 2113
		(nil)
		> PERPER.CONFIG Aa
		"configuration"
		> PERPER.CACHES
		1) "Aa"
		2) "c"
		> PERPER.DESTROY Aa
		OK
		> PERPER.DESTROY Aa
		NOCACHE the cache does not exist
		> PERPER.CREATE BB
		(integer) 1
		> PERPER.CREATE c OTHER
		ERR syntax error
		> PERPER.CREATE u UNLISTED CONFIG x
		(integer) 1
		> PERPER.CREATE u UNLISTED IFMISSING
		(integer) 0
		> PERPER.CREATE u IFMISSING UNLISTED
		ERR syntax error
		> PERPER.CONFIG u
		"x"
		> PERPER.CACHES
		1) "BB"
		2) "c"
		> PERPER.DESTROY u OTHER
		ERR syntax error
		> PERPER.DESTROY u UNLISTED
		OK
		> PERPER.CONFIG u
		NOCACHE the cache does not exist
		> PERPER.PUT c k v
		OK
		> PERPER.GET c k
		"v"
		> PERPER.GET c k RAW
		BADOBJECT not an object
		> PERPER.GET c "k"
		"v"
		> PERPER.GET c k more
		ERR syntax error
		> PERPER.GET c null
		BADOBJECT keys and values cannot be null
		> PERPER.HAS c k
		(integer) 1
		> PERPER.HAS c l
		(integer) 0
		> PERPER.PUTNX c k w
		(integer) 0
		> PERPER.PUTNX c l 5
		(integer) 1
		> PERPER.REPLACE c m 1
		(integer) 0
		> PERPER.REPLACE c l 6
		(integer) 1
		> PERPER.REPLACEIF c l 5 7
		(integer) 0
		> PERPER.REPLACEIF c l int(6) 7
		(integer) 0
		> PERPER.REPLACEIF c l 6 7
		(integer) 1
		> PERPER.GETPUT c l 8
		"7"
		> PERPER.GETPUT c n 1.5
		(nil)
		> PERPER.GETREPLACE c o true
		(nil)
		> PERPER.GETREPLACE c n true
		"1.5"
		> PERPER.GETPUTNX c n false
		"true"
		> PERPER.GETPUTNX c o false
		(nil)
		> PERPER.GETREMOVE c o
		"false"
		> PERPER.GETREMOVE c o
		(nil)
		> PERPER.REMOVEIF c n false
		(integer) 0
		> PERPER.REMOVEIF c n true
		(integer) 1
		> PERPER.REMOVE c l
		(integer) 1
		> PERPER.REMOVE c l
		(integer) 0
		> PERPER.LEN c
		(integer) 1
		> PERPER.MPUT c 3 a 1 b 2 5 "3"
		OK
		> PERPER.MPUT c 3 a 1 b 2 5
		ERR Number of keys can't be greater than number of args
		> PERPER.MGET c 0 a
		ERR numkeys should be greater than 0
		> PERPER.MGET c 4 a z 5 "5"
		1) "1"
		2) (nil)
		3) "\"3\""
		4) (nil)
		> PERPER.MHAS c 3 a z 5
		(integer) 2
		> PERPER.MREMOVE c 3 a z 5
		(integer) 2
		> PERPER.SCAN c 0 COUNT 100
		1) "0"
		2) 1) "k"
		2) "v"
		3) "b"
		4) "2"
		> PERPER.SCAN c x
		ERR invalid cursor
		> PERPER.CLEAR c
		(integer) 2
		> PERPER.SCAN c 0
		1) "0"
		2) (empty array)
	`)
	require.Equal(t, "OK", s.MustDo(t, "SET", "perper:{s}", "x").String())
	play(t, s, `
		> PERPER.CREATE s
		WRONGTYPE Operation against a key holding the wrong kind of value
	`)
}

func TestKeysThatAreLongsHaveAnOrder(t *testing.T) {
	s := atomredistest.Run(t)
	play(t, s, `
		> PERPER.CREATE s
		(integer) 1
		> PERPER.MPUT s 6 5 a -3 b 9007199254740993 c 9007199254740992 d text e int(7) f
		OK
		> PERPER.PUT s 5 again
		OK
		> PERPER.KEYS s - +
		1) (integer) -3
		2) (integer) 5
		3) (integer) 9007199254740992
		4) (integer) 9007199254740993
		> PERPER.KEYS s - + REV COUNT 1
		1) (integer) 9007199254740993
		> PERPER.KEYS s (5 (9007199254740993
		1) (integer) 9007199254740992
		> PERPER.KEYS s (9223372036854775807 +
		(empty array)
		> PERPER.KEYS s + +
		(empty array)
		> PERPER.KEYS s 0 5 COUNT 0
		(empty array)
		> PERPER.OLDEST s COUNT 2
		1) (integer) 5
		2) (integer) -3
		> PERPER.REMOVE s 5
		(integer) 1
		> PERPER.PUT s 5 a
		OK
		> PERPER.OLDEST s
		1) (integer) -3
		2) (integer) 9007199254740993
		3) (integer) 9007199254740992
		4) (integer) 5
		> PERPER.KEYS s x +
		ERR value is not an integer or out of range
	`)
	s.CheckKeys(t, map[string]any{
		"perper:caches":       map[string]string{"115": "s"},
		"perper:{s}:config":   "",
		"perper:{s}":          atomredistest.Any{},
		"perper:{s}:order":    atomredistest.Any{},
		"perper:{s}:inserted": atomredistest.Any{},
	})
	s.MustDo(t, "PERPER.CLEAR", "s")
	s.CheckKeys(t, map[string]any{"perper:caches": map[string]string{"115": "s"}, "perper:{s}:config": ""})
	require.Equal(t, "OK", s.MustDo(t, "PERPER.DESTROY", "s").String())
	s.CheckKeys(t, map[string]any{})
}

func TestObjectsAreShownWithTheNamesOfTheirTypes(t *testing.T) {
	s := atomredistest.Run(t)
	agent, stride := binary.ID("agent"), binary.ID("stride")
	typ := binary.Type{ID: binary.ID("Thing"), Name: "Thing", Fields: []binary.TypeField{{Name: "agent", Code: 9, ID: agent}}}
	s.MustDo(t, "PERPER.PUTTYPE", typ.Append(nil))
	typ.Fields = []binary.TypeField{{Name: "stride", Code: 4, ID: stride}}
	s.MustDo(t, "PERPER.PUTTYPE", typ.Append(nil))
	object := binary.AppendObject(nil, typ.ID, []binary.Field{{ID: agent, Value: binary.AppendString(nil, "x")},
		{ID: stride, Value: binary.AppendLong(nil, 5)}})
	s.MustDo(t, "PERPER.CREATE", "c")
	s.MustDo(t, "PERPER.PUT", "c", binary.AppendString(nil, "k"), binary.AppendWrapped(nil, object), "RAW")
	got, err := s.MustDo(t, "PERPER.GET", "c", binary.AppendString(nil, "k"), "RAW").Bytes()
	require.NoError(t, err)
	require.Equal(t, object, got, "it is not wrapped any more")
	play(t, s, `
		> PERPER.GET c k
		"Thing{agent: \"x\", stride: 5}"
		> PERPER.PUT c l hex(`+hex.EncodeToString(object)+`)
		OK
		> PERPER.GET c l
		"Thing{agent: \"x\", stride: 5}"
		> PERPER.TYPES
		1# "Thing" => (integer) 110331118
		> PERPER.TYPE thing
		1# "id" => (integer) 110331118
		2# "name" => "Thing"
		3# "affinity" => ""
		4# "fields" => 1# "agent" => "string"
		2# "stride" => "long"
		5# "values" => (empty hash)
		> PERPER.TYPE 5
		(nil)
		> PERPER.PUTTYPE x
		BADTYPE not the definition of a type
		> PERPER.TYPENAME 0 5
		(nil)
		> PERPER.PUTTYPENAME 0 5 List
		OK
		> PERPER.TYPENAME 0 5
		"List"
		> PERPER.TYPENAME 1 5
		(nil)
	`)
	s.MustDo(t, "PERPER.PUT", "c", "number", 5)
	rows, err := s.MustDo(t, "PERPER.QUERY", "c", "SELECT _KEY FROM Thing WHERE stride = ? ORDER BY _KEY", "ARGS", 1, 5).Slice()
	require.NoError(t, err)
	require.Equal(t, "1) \"_KEY\"", rows[0].String())
	require.Equal(t, "1) 1) \"k\"\n2) 1) \"l\"", rows[1].String())
	for statement, want := range map[string]string{"SELECT": "BADQUERY unsupported SQL at the end",
		"SELECT * FROM other.Thing": "BADQUERY the statement asks another cache", "SELECT * FROM No": `BADQUERY Table "NO" not found`} {
		_, err := s.Do(t.Context(), "PERPER.QUERY", "c", statement)
		require.ErrorContains(t, err, want)
	}
	_, err = s.Do(t.Context(), "PERPER.QUERY", "c", "SELECT * FROM Thing", "ARGS", 2, 5)
	require.ErrorContains(t, err, "number of args")
	typ.Fields[0].Code = 9
	_, err = s.Do(t.Context(), "PERPER.PUTTYPE", typ.Append(nil))
	require.ErrorContains(t, err, `BADTYPE field "stride" of type "Thing" has another type`)
}

func TestChangesAreToldInOrder(t *testing.T) {
	s := atomredistest.Run(t)
	s.MustDo(t, "PERPER.CREATE", "c")
	next, stop := iter.Pull2(s.Subscribe(t.Context(), keys.Events("c")))
	defer stop()
	for _, line := range []string{"PUT c 5 a", "PUT c 5 b", "PUTNX c 5 c", "REMOVE c 5", "PUT c 6 d", "CLEAR c"} {
		words := strings.Fields(line)
		args := []any{"PERPER." + words[0]}
		for _, word := range words[1:] {
			args = append(args, word)
		}
		s.MustDo(t, args...)
	}
	s.MustDo(t, "PERPER.DESTROY", "c")
	text := func(s string) []byte {
		if s == "" {
			return []byte{}
		}
		b, err := binary.ParseText([]byte(s))
		require.NoError(t, err)
		return b
	}
	for _, want := range []event.Event{
		{Kind: event.Created, Key: text("5"), Value: text("a"), Old: text("")},
		{Kind: event.Updated, Key: text("5"), Value: text("b"), Old: text("a")},
		{Kind: event.Removed, Key: text("5"), Value: text(""), Old: text("b")},
		{Kind: event.Created, Key: text("6"), Value: text("d"), Old: text("")},
		{Kind: event.Removed, Key: text("6"), Value: text(""), Old: text("d")},
		{Kind: event.Destroyed, Key: text(""), Value: text(""), Old: text("")},
	} {
		m, err, ok := next()
		require.True(t, ok)
		require.NoError(t, err)
		got, err := event.Parse([]byte(m.Payload))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// Random operations have the same results as on a map, and survive a restart.
func TestRandomOperationsAgainstAModel(t *testing.T) {
	n := 20000
	if testing.Short() {
		n = 2000
	}
	dir := t.TempDir()
	open := func() *atomredis.DB {
		db, err := atomredis.Open(atomredis.Options{Dir: dir})
		require.NoError(t, err)
		return db
	}
	db := open()
	defer func() { db.Close() }()
	do := func(args ...any) atomredis.Reply {
		r, err := db.Do(t.Context(), args...)
		require.NoError(t, err)
		return r
	}
	do("PERPER.CREATE", "c")
	random := rand.New(rand.NewPCG(1, 2))
	model, born, births := map[int64]string{}, map[int64]int{}, 0
	for i := range n {
		k, v := random.Int64N(200)-100, []string{"a", "b", "c"}[random.IntN(3)]
		old, had := model[k]
		set := func() {
			if model[k] = v; !had {
				births++
				born[k] = births
			}
		}
		count := func(v bool) string {
			if v {
				return "(integer) 1"
			}
			return "(integer) 0"
		}
		orNull := `"` + old + `"`
		if !had {
			orNull = "(nil)"
		}
		got, want := "", ""
		switch random.IntN(12) {
		case 0, 1:
			got, want = do("PERPER.PUT", "c", k, v).String(), "OK"
			set()
		case 2:
			if got, want = do("PERPER.PUTNX", "c", k, v).String(), count(!had); !had {
				set()
			}
		case 3:
			if got, want = do("PERPER.REPLACE", "c", k, v).String(), count(had); had {
				set()
			}
		case 4:
			if got, want = do("PERPER.REPLACEIF", "c", k, "a", v).String(), count(old == "a"); old == "a" {
				set()
			}
		case 5:
			got, want = do("PERPER.REMOVE", "c", k).String(), count(had)
			delete(model, k)
		case 6:
			if got, want = do("PERPER.REMOVEIF", "c", k, "b").String(), count(old == "b"); old == "b" {
				delete(model, k)
			}
		case 7:
			got, want = do("PERPER.GETPUT", "c", k, v).String(), orNull
			set()
		case 8:
			if got, want = do("PERPER.GETPUTNX", "c", k, v).String(), orNull; !had {
				set()
			}
		case 9:
			if got, want = do("PERPER.GETREPLACE", "c", k, v).String(), orNull; had {
				set()
			}
		case 10:
			got, want = do("PERPER.GETREMOVE", "c", k).String(), orNull
			delete(model, k)
		default:
			got, want = do("PERPER.GET", "c", k).String(), orNull
		}
		require.Equal(t, want, got)
		if i == n/2 {
			require.NoError(t, db.Close())
			db = open()
		}
	}
	got, err := do("PERPER.LEN", "c").Int()
	require.NoError(t, err)
	require.Equal(t, len(model), int(got))
	numbers := func(args ...any) (out []int64) {
		parts, err := do(args...).Slice()
		require.NoError(t, err)
		for _, p := range parts {
			n, err := p.Int()
			require.NoError(t, err)
			out = append(out, n)
		}
		return out
	}
	ordered, oldest := numbers("PERPER.KEYS", "c", "-", "+"), numbers("PERPER.OLDEST", "c")
	require.Len(t, ordered, len(model))
	require.Len(t, oldest, len(model))
	for i := range ordered {
		require.Contains(t, model, ordered[i])
		if i > 0 {
			require.Less(t, ordered[i-1], ordered[i])
			require.Less(t, born[oldest[i-1]], born[oldest[i]])
		}
	}
}

func TestTextsOfKeysHaveTheirOrder(t *testing.T) {
	numbers := []int64{math.MinInt64, -1 << 53, -1, 0, 1, 15, 16, 1<<53 + 1, math.MaxInt64}
	for i, n := range numbers {
		got, ok := keys.FromOrder(keys.OrderOf(n))
		require.True(t, ok)
		require.Equal(t, n, got)
		if i > 0 {
			require.Negative(t, bytes.Compare(keys.OrderOf(numbers[i-1]), keys.OrderOf(n)))
		}
	}
	_, ok := keys.FromOrder([]byte("xxxxxxxxxxxxxxxx"))
	require.False(t, ok)
	_, ok = keys.FromOrder([]byte("-000000000000001"))
	require.False(t, ok)
}

func TestEventsThatAreNone(t *testing.T) {
	e := event.Event{Kind: event.Updated, Key: []byte("k"), Value: []byte("value"), Old: []byte("old")}
	b := e.Append(nil)
	for n := range b {
		_, err := event.Parse(b[:n])
		require.Error(t, err)
	}
	_, err := event.Parse(append(b, 0))
	require.Error(t, err)
	_, err = event.Parse([]byte{9, 0, 0, 0})
	require.Error(t, err)
}

func TestEntriesExpireWhenTheCacheSaysSo(t *testing.T) {
	s := atomredistest.RunOptions(t, atomredis.Options{Clock: engine.NewManualClock(time.Unix(1_000_000_000, 0))})
	play(t, s, `
		> PERPER.CREATE c EXPIRY 1000 2000 -2
		(integer) 1
		> PERPER.CREATE d EXPIRY 1000 2000
		ERR syntax error
		> PERPER.CREATE d EXPIRY 1000 2000 -3
		ERR a duration is a number of milliseconds, -1 for ever, or -2 to leave it
		> PERPER.PUT c 1 a
		OK
		> PERPER.PUT c 2 a EXPIRY -1 -1 500
		OK
		> PERPER.PUT c k a
		OK
		> PERPER.PUT c k b
		OK
		> PERPER.PUT c gone a EXPIRY 0 -2 -2
		OK
		> PERPER.TTL c 1
		(integer) 1000
		> PERPER.TTL c 2
		(integer) -1
		> PERPER.TTL c k
		(integer) 2000
		> PERPER.TTL c gone
		(integer) -2
		> PERPER.GET c 2 EXPIRY -2 -2
		ERR syntax error
	`)
	s.FastForward(time.Second)
	play(t, s, `
		> PERPER.GET c 1
		(nil)
		> PERPER.KEYS c - +
		1) (integer) 2
		> PERPER.OLDEST c
		1) (integer) 2
		> PERPER.GETPUTNX c k x EXPIRY -2 -2 300
		"b"
		> PERPER.TTL c k
		(integer) 300
		> PERPER.GET c k EXPIRY -2 -2 -1
		"b"
	`)
	require.Eventually(t, func() bool { return s.MustDo(t, "PERPER.TTL", "c", "k").String() == "(integer) -1" }, time.Minute,
		time.Millisecond)
	play(t, s, `
		> PERPER.REPLACE c k y EXPIRY -2 100 -2
		(integer) 1
		> PERPER.REMOVE c k
		(integer) 1
		> PERPER.PUTNX c k z
		(integer) 1
		> EXISTS perper:{c}:expires
		(integer) 1
		> PERPER.CLEAR c
		(integer) 2
		> EXISTS perper:{c}:expires
		(integer) 0
	`)
}

// Deadlines survive a restart, and overdue entries are then removed.
func TestEntriesExpireAfterARestart(t *testing.T) {
	dir := t.TempDir()
	open := func() *atomredis.DB {
		db, err := atomredis.Open(atomredis.Options{Dir: dir})
		require.NoError(t, err)
		return db
	}
	db := open()
	do := func(args ...any) string {
		r, err := db.Do(t.Context(), args...)
		require.NoError(t, err)
		return r.String()
	}
	do("PERPER.CREATE", "c")
	do("PERPER.PUT", "c", 1, "a", "EXPIRY", 1, -2, -2)
	do("PERPER.PUT", "c", 2, "a", "EXPIRY", 3_600_000, -2, -2)
	require.NoError(t, db.Close())
	db = open()
	defer func() { require.NoError(t, db.Close()) }()
	require.Eventually(t, func() bool { return do("PERPER.LEN", "c") == "(integer) 1" }, time.Minute, time.Millisecond)
	require.Equal(t, "1) (integer) 2", do("PERPER.KEYS", "c", "-", "+"))
	require.NotEqual(t, "(integer) -1", do("PERPER.TTL", "c", 2))
}
