package perperignite_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
	_ "github.com/atomredis/atomredis/doors/perper-ignite"
	objects "github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const deadline = 30 * time.Second

// opened starts a server with the door.
func opened(t testing.TB, settings ...string) *atomredistest.Server {
	t.Helper()
	o := atomredis.Options{Config: map[string]string{"door-perper-ignite": "127.0.0.1:0"}}
	for i := 0; i < len(settings); i += 2 {
		o.Config[settings[i]] = settings[i+1]
	}
	return atomredistest.RunOptions(t, o)
}

func long(n int64) []byte { return objects.AppendLong(nil, n) }

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(t, err)
	return b
}

// peer is a thin client of version 1.7.
type peer struct {
	t    testing.TB
	conn net.Conn
	id   uint64
}

// dial connects without a handshake.
func dial(t testing.TB, s *atomredistest.Server) *peer {
	t.Helper()
	return dialAt(t, s.DoorAddr("perper-ignite"))
}

func dialAt(t testing.TB, addr string) *peer {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(deadline))
	return &peer{t: t, conn: conn}
}

// connect connects as the client in Python does.
func connect(t testing.TB, s *atomredistest.Server) *peer {
	t.Helper()
	p := dial(t, s)
	p.hello()
	return p
}

// hello does the handshake.
func (p *peer) hello() {
	p.t.Helper()
	p.write(unhex(p.t, "0e000000 01 0100 0700 0000 02 0c 01000000 04"))
	require.Equal(p.t, unhex(p.t, "01 0c 01000000 04 0a"), p.message()[:8])
}

func (p *peer) write(b []byte) {
	p.t.Helper()
	_, err := p.conn.Write(b)
	require.NoError(p.t, err)
}

// message reads a message, without its length.
func (p *peer) message() []byte {
	p.t.Helper()
	var head [4]byte
	_, err := io.ReadFull(p.conn, head[:])
	require.NoError(p.t, err)
	b := make([]byte, binary.LittleEndian.Uint32(head[:]))
	_, err = io.ReadFull(p.conn, b)
	require.NoError(p.t, err)
	return b
}

// send sends a request.
func (p *peer) send(op int, body []byte) {
	p.t.Helper()
	p.id++
	b := binary.LittleEndian.AppendUint32(nil, uint32(10+len(body)))
	b = binary.LittleEndian.AppendUint16(b, uint16(op))
	b = binary.LittleEndian.AppendUint64(b, p.id)
	p.write(append(b, body...))
}

// ask sends a request and returns the body of its reply, or the status and the message of the error.
func (p *peer) ask(op int, body []byte) (reply []byte, failed string) {
	p.t.Helper()
	p.send(op, body)
	b := p.message()
	require.Equal(p.t, p.id, binary.LittleEndian.Uint64(b))
	switch flags := binary.LittleEndian.Uint16(b[8:]); flags {
	case 0:
		return b[10:], ""
	case 2: // with the version of a new topology
		return b[22:], ""
	}
	text, ok := objects.AsString(b[14:])
	require.True(p.t, ok)
	return nil, fmt.Sprint(int32(binary.LittleEndian.Uint32(b[10:])), " ", text)
}

// step is an operation with its body and the body of the reply in hex, or an error with its status.
type step struct {
	op         int
	body, want string
}

func (p *peer) play(steps ...step) {
	p.t.Helper()
	for _, s := range steps {
		got, failed := p.ask(s.op, unhex(p.t, s.body))
		if failed != "" {
			require.Equal(p.t, s.want, failed, "%d %s", s.op, s.body)
			continue
		}
		require.Equal(p.t, strings.ReplaceAll(s.want, " ", ""), hex.EncodeToString(got), "%d %s", s.op, s.body)
	}
}

// Objects and prefixes of the tests.
const (
	executions = "5b582820" // the id of the cache
	prefix     = executions + "00"
	null       = "65"
	keyA       = "09 01000000 61"
	keyB       = "04 0500000000000000"
	one        = "03 01000000"
	two        = "03 02000000"
	// thing is a complex object of type 5 without fields; wrapped is its form in replies.
	thing   = "67 01 0100 05000000 01000000 18000000 00000000 00000000"
	wrapped = "1b 18000000" + thing + "00000000"
)

func TestFramesOfTheClientInPython(t *testing.T) {
	s := opened(t)
	p := dial(t, s)
	const id = "0807060504030201"
	// An ExecutionData of 77 bytes with the fields of the registered type.
	values := "09 0100000069 09 0100000061 09 0400000073746172 0800 65 65 65"
	values = strings.ReplaceAll(values, " ", "")
	object := "67012b00c2aefc36 01000000 4d000000 63aa28d4 46000000"
	object = strings.ReplaceAll(object, " ", "") + values + strings.Repeat("65", 0x46-24-len(values)/2) + "181c2228292a2b"
	require.Len(t, object, 2*77)
	for _, frame := range []struct{ sent, got string }{
		{"0e000000010100070000000 20c0100000004", "18000000010c01000000040a"},
		{"190000001c04" + id + "090a000000657865637574696f6e73", "0a000000" + id + "0000"},
		{"64000000ea03" + id + "5b58282000 0903000000782d31" + object, "0b000000" + id + "000001"},
		{"17000000e803" + id + "5b58282000 0903000000782d31", "60000000" + id + "00001b4d000000" + object + "00000000"},
	} {
		p.write(unhex(t, frame.sent))
		got := p.message()
		want := unhex(t, frame.got)
		require.Equal(t, int(binary.LittleEndian.Uint32(want)), len(got), frame.sent)
		if len(want)-4 < len(got) { // the id of the server
			got = got[:len(want)-4]
		}
		require.Equal(t, want[4:], got, frame.sent)
	}
	require.Equal(t, `["executions"]`, fmt.Sprintf("%q", texts(t, s.MustDo(t, "PERPER.CACHES"))))
}

func texts(t testing.TB, r atomredis.Reply) []string {
	all, err := r.Texts()
	require.NoError(t, err)
	return all
}

func TestOperationsOnKeysAndValues(t *testing.T) {
	s := opened(t)
	p := connect(t, s)
	p.play(
		step{1000, prefix + keyA, "1000 Cache does not exist [cacheId=539514971]"},
		step{1052, "09 0a000000 657865637574696f6e73", ""},
		step{1000, prefix + keyA, null},
		step{1001, prefix + keyA + one, ""},
		step{1000, prefix + keyA, one},
		step{1002, prefix + keyA + two, "00"},
		step{1002, prefix + keyB + two, "01"},
		step{1003, prefix + "03000000" + keyA + "08 01" + keyB, "02000000" + keyA + one + keyB + two},
		step{1003, prefix + "00000000", "00000000"},
		step{1004, prefix + "02000000" + keyA + thing + "08 01" + wrapped, ""},
		step{1004, prefix + "00000000", ""},
		step{1000, prefix + keyA, wrapped},
		step{1000, prefix + "08 01", wrapped},
		step{1005, prefix + keyA + one, wrapped},
		step{1006, prefix + keyA + two, one},
		step{1006, prefix + "08 00" + two, null},
		step{1007, prefix + keyA, two},
		step{1007, prefix + keyA, null},
		step{1008, prefix + keyA + one, null},
		step{1008, prefix + keyA + two, one},
		step{1009, prefix + keyA + two, "01"},
		step{1009, prefix + "08 00" + two, "00"},
		step{1010, prefix + keyA + one + two, "00"},
		step{1010, prefix + keyA + two + thing, "01"},
		step{1010, prefix + keyA + wrapped + one, "01"},
		step{1011, prefix + keyA, "01"},
		step{1011, prefix + "08 00", "00"},
		step{1012, prefix + "02000000" + keyA + keyB, "01"},
		step{1012, prefix + "02000000" + keyA + "08 00", "00"},
		step{1012, prefix + "00000000", "01"},
		step{1020, prefix + "01000000 00", "0300000000000000"},
		step{1020, prefix + "01000000 02", "0300000000000000"},
		step{1020, prefix + "02000000 0403", "0000000000000000"}, // there is no other server
		step{1020, prefix + "01000000 05", "0300000000000000"},
		step{1020, prefix + "01000000 06", "1 Unknown peek mode"},
		step{1021, prefix + keyA + "00000000", one},
		step{1021, prefix + keyA + "01000000 03", null},
		step{1021, prefix + "08 00 00000000", null},
		step{1020, prefix + "00000000", "0300000000000000"},
		step{1014, prefix + keyA, ""},
		step{1015, prefix + "02000000" + keyB + "08 00", ""},
		step{1020, prefix + "00000000", "0100000000000000"},
		step{1016, prefix + "08 01", "01"},
		step{1016, prefix + "08 01", "00"},
		step{1001, prefix + keyA + one, ""},
		step{1017, prefix + keyA + two, "00"},
		step{1017, prefix + keyA + one, "01"},
		step{1004, prefix + "02000000" + keyA + thing + keyB + one, ""},
		step{1018, prefix + "01000000" + keyA, ""},
		step{1020, prefix + "00000000", "0100000000000000"},
		step{1019, prefix, ""},
		step{1001, prefix + keyA + one, ""},
		step{1013, prefix, ""},
		step{1020, prefix + "00000000", "0000000000000000"},
	)
	s.MustDo(t, "PERPER.PUT", "executions", "a", "int(1)")
	p.play(step{1000, executions + "01" + keyA, one})
	p.play(step{1001, executions + "04" + keyA + one, "1 malformed object"},
		step{1001, executions + "04 feffffffffffffff ffffffffffffffff feffffffffffffff" + keyA + two, ""},
		step{1001, executions + "04 fdffffffffffffff ffffffffffffffff feffffffffffffff" + keyA + one, "1 malformed object"},
		step{1000, prefix + keyA, two},
		step{1000, prefix + null, "1 BADOBJECT keys and values cannot be null"},
		step{1000, prefix + keyA + "00", "1 malformed object"},
		step{1000, prefix + "ff", "1 malformed object: unknown type 255"},
		step{1000, "", "1 malformed object"},
		step{9999, "", "2 Invalid request op code: 9999"},
	)
	require.Equal(t, `"int(2)"`, s.MustDo(t, "PERPER.GET", "executions", "a").String())
}

func TestCachesAreCreatedAndDestroyed(t *testing.T) {
	s := opened(t)
	p := connect(t, s)
	const name, id = "09 01000000 63", "63000000"
	configuration := "0200 0000" + name + "0300 02000000"
	p.play(
		step{1050, "", "00000000"},
		step{1051, name, ""},
		step{1051, name, "1001 CACHEEXISTS the cache exists already"},
		step{1052, name, ""},
		step{1050, "", "01000000" + name},
		step{1056, id, ""},
		step{1056, id, "1000 Cache does not exist [cacheId=99]"},
		step{1053, "eeffffff" + configuration, ""},
		step{1053, "11000000" + configuration, "1001 CACHEEXISTS the cache exists already"},
		step{1054, "11000000" + configuration, ""},
		step{1052, "09 00000000", "1 ERR a cache must have a name"},
		step{1053, "00000000 0100 e703", "1002 The configuration of the cache cannot be read: unknown property 999"},
		step{1053, "00000000 0200 0000" + name, "1002 The configuration of the cache cannot be read: malformed object"},
	)
	got, failed := p.ask(1055, unhex(t, id+"00"))
	require.Empty(t, failed)
	require.Equal(t, len(got)-4, int(binary.LittleEndian.Uint32(got)))
	require.Equal(t, unhex(t, "01000000 02000000 02000000 01 65"), got[4:18])
	require.Contains(t, string(got), string(unhex(t, name)))

	// Another name has the same id.
	p.play(step{1051, "09 02000000 4161", ""}, step{1051, "09 02000000 4242", "1001 CACHEID another cache has the same id"},
		step{1020, "40080000 00 00000000", "0000000000000000"})
	s.MustDo(t, "PERPER.DESTROY", "Aa")
	s.MustDo(t, "PERPER.CREATE", "BB")
	s.MustDo(t, "PERPER.PUT", "BB", "a", "int(1)")
	p.play(step{1000, "40080000 00" + keyA, one})
}

func TestConfigurationsOfEveryProperty(t *testing.T) {
	p := connect(t, opened(t))
	const text = "09 01000000 63"
	all := "1f00 0000" + text + "0100 01000000 0200 01000000 0300 01000000 0400 01000000 0500 01 0600 01 6400" + text + "6500 01" +
		"c800 01000000" + text + text + null + null + null + "01000000" + text + text + "00 00 65 ffffffff ffffffff" +
		"01000000" + text + text + "01000000" + text + "00 ffffffff 01000000" + text + "00" +
		"c900 01000000 ca00 01000000 cb00" + text + "cc00 01000000 cd00 01 ce00 01000000" +
		"2c01 01000000 2d01 0100000000000000 2e01 0100000000000000 2f01 01000000 3001 0100000000000000 3101 01000000" +
		"3201 0100000000000000 9001" + text + "9101 01000000" + text + text + "9201 0100000000000000 9301 01000000 9401 01000000" +
		"9501 01 9601 01 9701 00"
	p.play(step{1053, "00000000" + all, ""})
	got, failed := p.ask(1055, unhex(t, "63000000 00"))
	require.Empty(t, failed)
	require.Equal(t, byte(0), got[len(got)-1], "no expiry policy")
}

func TestTypes(t *testing.T) {
	p := connect(t, opened(t))
	const field, schema = "09 01000000 61 09000000 61000000", "07000000 01000000 61000000"
	const other, otherSchema = "09 01000000 62 03000000 62000000", "08000000 02000000 61000000 62000000"
	const named = "05000000 09 01000000 54 65"
	p.play(
		step{3002, "05000000", "00"},
		step{3003, named + "01000000" + field + "00 01000000" + schema, ""},
		step{3002, "05000000", "01" + named + "01000000" + field + "00 01000000" + schema},
		step{3003, named + "01000000" + other + "00 01000000" + otherSchema, ""},
		step{3002, "05000000", "01" + named + "02000000" + field + other + "00 02000000" + schema + otherSchema},
		step{3003, named + "01000000 09 01000000 61 03000000 61000000 00 00000000", `1 field "a" of type "T" has another type`},
		step{3003, named, "1 not the definition of a type"},
		step{3000, "00 05000000", "1 Unknown type: 5"},
		step{3001, "00 05000000 09 01000000 54", "01"},
		step{3000, "00 05000000", "09 01000000 54"},
		step{3000, "01 05000000", "1 Unknown type: 5"},
	)
}

func TestScanQueriesHavePages(t *testing.T) {
	s := opened(t)
	p := connect(t, s)
	s.MustDo(t, "PERPER.CREATE", "executions")
	const n = 1000
	for i := range n {
		s.MustDo(t, "PERPER.PUT", "executions", i, "true")
	}
	const pageOf300 = prefix + "65 2c010000 ffffffff 00"
	seen := map[int64]bool{}
	rows := func(b []byte) (more bool) {
		r := objects.NewReader(b)
		count := r.Int32()
		for range count {
			k, ok := objects.AsLong(r.Object())
			require.True(t, ok)
			require.False(t, seen[k])
			seen[k] = true
			require.Equal(t, []byte{8, 1}, r.Object())
		}
		more = r.Bool()
		require.NoError(t, r.Err())
		require.Zero(t, r.Len())
		if more {
			require.Equal(t, int32(300), count)
		}
		return more
	}
	got, failed := p.ask(2000, unhex(t, pageOf300))
	require.Empty(t, failed)
	cursor := hex.EncodeToString(got[:8])
	pages := 1
	for more := rows(got[8:]); more; pages++ {
		got, failed = p.ask(2001, unhex(t, cursor))
		require.Empty(t, failed)
		more = rows(got)
	}
	require.Equal(t, 4, pages)
	require.Len(t, seen, n)
	p.play(step{2001, cursor, "1011 Failed to find resource with id: 1"}, step{0, cursor, "1011 Failed to find resource with id: 1"},
		step{2000, prefix + "65 2c010000 01000000 00", "0200000000000000 00000000 00"},
		step{2000, prefix + thing + "01 2c010000 ffffffff 00", "1 Scan queries with a filter are not supported: its code (type id 5) cannot run here. " +
			"Filter in the client, or ask in SQL"})

	for range 128 {
		_, failed = p.ask(2000, unhex(t, pageOf300))
		require.Empty(t, failed)
	}
	p.play(step{2000, pageOf300, "1010 Too many open cursors: 128"})
	require.Contains(t, s.MustDo(t, "INFO", "door_perper_ignite").String(), "cursors_open:128")
	p.play(step{0, "0500000000000000", ""})
	p.conn.Close()
	require.Eventually(t, func() bool {
		return strings.Contains(s.MustDo(t, "INFO", "door_perper_ignite").String(), "cursors_open:0")
	}, deadline, time.Millisecond)
}

func TestQueriesInSQL(t *testing.T) {
	s := opened(t)
	p := connect(t, s)
	price := objects.ID("price")
	typ := objects.Type{ID: objects.ID("Item"), Name: "Item", Fields: []objects.TypeField{{Name: "price", Code: 3, ID: price}}}
	p.ask(3003, typ.Append(nil))
	p.play(step{1052, "09 0a000000 657865637574696f6e73", ""})
	items := make([]string, 5)
	for i := range items {
		item := objects.AppendObject(nil, typ.ID, []objects.Field{{ID: price, Value: objects.AppendInt(nil, int32(i))}})
		s.MustDo(t, "PERPER.PUT", "executions", objects.AppendLong(nil, int64(10-i)), item, "RAW")
		items[i] = hex.EncodeToString(objects.AppendWrapped(nil, item))
	}
	sql := func(cache, schema, text, args, names string, page string) string {
		text = hex.EncodeToString(objects.AppendString(nil, text))
		return cache + schema + page + "ffffffff" + text + args + "00 00 00 00 00 00 00 0000000000000000" + names
	}
	const statement, page2 = `SELECT _VAL FROM "executions".ITEM WHERE price > ?`, "02000000"
	p.play(
		step{2004, sql(prefix, null, statement, "01000000"+one, "01", page2),
			"0100000000000000 01000000 09 04000000 5f56414c 02000000" + items[4] + items[3] + "01"},
		step{2005, "0100000000000000", "01000000" + items[2] + "00"},
		step{2005, "0100000000000000", "1011 Failed to find resource with id: 1"},
		step{2004, sql("00000000 00", null, statement, "01000000 65", "00", page2), "0200000000000000 01000000 00000000 00"},
		step{2004, sql(prefix, null, "SELECT COUNT(*) FROM ITEM", "00000000", "00", page2),
			"0300000000000000 01000000 01000000 04 0500000000000000 00"},
		step{2004, sql("00000000 00", "09 0a000000 657865637574696f6e73", "SELECT COUNT(*) FROM ITEM", "00000000", "00", page2),
			"0400000000000000 01000000 01000000 04 0500000000000000 00"},
		step{2004, sql(prefix, null, `SELECT * FROM "other".ITEM`, "00000000", "00", page2),
			`1 Failed to set schema for DB connection: there is no schema "other"`},
		step{2004, sql(prefix, null, "GRANT ALL", "00000000", "00", page2), `1 unsupported SQL at "GRANT ALL"`},
		step{2004, sql(prefix, null, "SELECT size FROM ITEM", "00000000", "00", page2), `1 Column "SIZE" not found`},
		step{2004, sql("05000000 00", null, "SELECT * FROM ITEM", "00000000", "00", page2), "1000 Cache does not exist [cacheId=5]"},
	)
}

func TestQueriesFindTheTablesOfASchema(t *testing.T) {
	s := opened(t)
	p := connect(t, s)
	text := func(s string) string { return hex.EncodeToString(objects.AppendString(nil, s)) }
	entity := text("java.lang.Long") + text("java.lang.Integer") + text("THINGS") + text("ID") + text("WORTH") + "00000000 00000000 00000000"
	p.play(
		step{1051, text("aside"), ""},
		step{1053, "00000000 0300 0000" + text("c") + "cb00" + text("STORE") + "c800 01000000" + entity, ""},
		step{1001, "63000000 00" + keyB + two, ""},
	)
	sql := func(cache, schema, statement string) string {
		return cache + "00" + schema + "0a000000 ffffffff" + text(statement) + "00000000 00 00 00 00 00 00 00 0000000000000000 00"
	}
	const answer = "0100000000000000 01000000 01000000" + two + "00"
	again := func(n string) string { return n + answer[2:] }
	p.play(
		step{2004, sql("00000000", text("store"), "SELECT worth FROM things WHERE id = 5"), answer},
		step{2004, sql("63000000", null, "SELECT worth FROM things"), again("02")},
		step{2004, sql("00000000", null, "SELECT worth FROM STORE.things"), again("03")},
		step{2004, sql("00000000", text("c"), "SELECT worth FROM things"), again("04")},
		step{2004, sql("00000000", text("store"), "SELECT worth FROM others"), `1 Table "OTHERS" not found`},
		step{2004, sql("00000000", text("PUBLIC"), "SELECT worth FROM things"), `1 Table "THINGS" not found`},
		step{2004, sql("00000000", text("shop"), "SELECT worth FROM things"),
			`1 Failed to set schema for DB connection: there is no schema "shop"`},
	)
}

func TestTablesOfSQL(t *testing.T) {
	s := opened(t)
	p := connect(t, s)
	text := func(s string) string { return hex.EncodeToString(objects.AppendString(nil, s)) }
	cursor := 0
	// sql plays statements in the schema PUBLIC. want is the rest of the reply after the cursor, or an error.
	sql := func(statement, args, demand, want string) {
		t.Helper()
		body := "00000000 00" + text("PUBLIC") + "0a000000 ffffffff" + text(statement) + args + demand
		body += "00 00 00 00 00 00 0000000000000000 01"
		if strings.HasPrefix(want, "01") || strings.HasPrefix(want, "02") {
			cursor++
			want = hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, uint64(cursor))) + want
		}
		p.play(step{2004, body, want})
	}
	updated := func(n int64) string {
		return "01000000" + text("UPDATED") + "01000000" + hex.EncodeToString(long(n)) + "00"
	}
	const none, any, selects, updates = "00000000", "00", "01", "02"
	sql("DROP TABLE City IF EXISTS", none, any, updated(0))
	sql("DROP TABLE City", none, any, "1 Table doesn't exist: CITY")
	sql("CREATE TABLE City (id INT PRIMARY KEY, name CHAR(4))", none, updates, updated(0))
	sql("CREATE TABLE City (id INT PRIMARY KEY, name CHAR(4))", none, any, "1 Table already exists: CITY")
	sql("CREATE TABLE IF NOT EXISTS City (id INT PRIMARY KEY, name CHAR(4))", none, any, updated(0))
	sql("CREATE TABLE x.City (id INT PRIMARY KEY, name CHAR(4))", none, any, "1 CREATE TABLE is only supported in the schema PUBLIC")
	sql("INSERT INTO City VALUES (?, ?), (2, 'b')", "02000000"+one+keyA, any, updated(2))
	sql("INSERT INTO City VALUES (2, 'b')", none, any, "1 Duplicate key during INSERT [key=int(2)]")
	sql("SELECT id FROM City WHERE name = 'b'", none, selects, "01000000"+text("ID")+"01000000"+two+"00")
	sql("SELECT id FROM City", none, updates, "1 Given statement type does not match that declared by the client")
	sql("DELETE FROM PUBLIC.City WHERE id = 1", none, any, updated(1))
	sql("DELETE FROM City", none, selects, "1 Given statement type does not match that declared by the client")
	sql("DELETE FROM Town", none, any, `1 Table "TOWN" not found`)
	sql("CREATE INDEX i ON City (name)", none, any, updated(0))
	sql("DROP INDEX i", none, any, updated(0))
	sql("DROP INDEX i", none, any, "1 Index doesn't exist: I")
	sql("DROP TABLE City", "01000000"+one, any, "1 The statement has no arguments")

	// Keys and values of the table's type, in pages.
	kind := text("CITY")
	query := func(rest string) string {
		cache := hex.EncodeToString(binary.LittleEndian.AppendUint32(nil, uint32(objects.Hash("SQL_PUBLIC_CITY"))))
		return cache + "00" + kind + text(rest) + none + "00 00 00 01000000 0000000000000000"
	}
	sql("INSERT INTO City VALUES (1, 'a')", none, any, updated(1))
	for _, rest := range []string{"ORDER BY id DESC", "WHERE id > 0 ORDER BY id DESC", "id > 0 ORDER BY id DESC",
		"SELECT * FROM City ORDER BY id DESC", "FROM City ORDER BY id DESC"} {
		reply, failed := p.ask(2002, unhex(t, query(rest)))
		require.Empty(t, failed)
		require.Equal(t, unhex(t, "01000000"+two), reply[8:17])
		require.EqualValues(t, 1, reply[len(reply)-1])
		reply, failed = p.ask(2003, reply[:8])
		require.Empty(t, failed)
		require.Equal(t, unhex(t, "01000000"+one), reply[:9])
		require.Zero(t, reply[len(reply)-1])
		cursor++
	}
	p.play(step{2002, query("?"), "1 the statement has 1 arguments, not 0"},
		step{2002, query("SELECT id FROM City"), "1 Invalid query (query must begin with an asterisk): SELECT id FROM City"})

	// A table in a cache of another name is found again after it was replaced.
	for _, name := range []string{"a", "b"} {
		sql(`CREATE TABLE Town (id INT PRIMARY KEY, n INT) WITH "cache_name=`+name+`"`, none, any, updated(0))
		sql("INSERT INTO Town VALUES (1, 1)", none, any, updated(1))
		sql("UPDATE Town SET n = 2", none, any, updated(1))
		sql("DROP TABLE Town", none, any, updated(0))
		sql("UPDATE Town SET n = 2", none, any, `1 Table "TOWN" not found`)
	}
	// A request on a cache finds the tables of all caches of its schema.
	atCity := func(statement, want string) {
		t.Helper()
		body := hex.EncodeToString(binary.LittleEndian.AppendUint32(nil, uint32(objects.Hash("SQL_PUBLIC_CITY")))) + "00 65 0a000000 ffffffff"
		body += text(statement) + none + any + "00 00 00 00 00 00 0000000000000000 01"
		if strings.HasPrefix(want, "01") {
			cursor++
			want = hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, uint64(cursor))) + want
		}
		p.play(step{2004, body, want})
	}
	atCity("CREATE TABLE Street (id INT PRIMARY KEY, n INT)", updated(0))
	atCity("INSERT INTO Street VALUES (1, 2)", updated(1))
	atCity("SELECT n FROM Street", "01000000"+text("N")+"01000000"+two+"00")
	atCity("ALTER TABLE Street ADD COLUMN m INT", updated(0))
	atCity("DROP TABLE Street", updated(0))
	atCity("SELECT n FROM Street", `1 Table "STREET" not found`)
	atCity("DROP TABLE Street", "1 Table doesn't exist: STREET")
	s.MustDo(t, "PERPER.STATE", "READONLY")
	p.play(step{5001, "02", ""})
	sql("DELETE FROM City", none, any, "1 Failed to execute the statement (cluster is in read-only mode)")
	sql("SELECT id FROM City WHERE id = 2", none, any, "01000000"+text("ID")+"01000000"+two+"00")
}

func TestUsersAndRefusals(t *testing.T) {
	s := opened(t, "requirepass", "secret")
	p := dial(t, s)
	p.write(unhex(t, "0e000000 01 0100 0700 0000 02 0c 01000000 04"))
	refused := p.message()
	require.Equal(t, unhex(t, "00 0100 0700 0000 09"), refused[:8])
	require.Equal(t, unhex(t, "d0070000"), refused[len(refused)-4:])
	_, err := p.conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "without a user it could do nothing")
	s.MustDo(t, "ACL", "SETUSER", "u", "on", ">pw", "~perper:*", "+perper.caches")
	p = dial(t, s)
	p.write(unhex(t, "15000000 01 0100 0200 0000 02 09 01000000 75 09 02000000 7077"))
	require.Equal(t, []byte{1}, p.message())
	p.write(unhex(t, "0a000000 1a04 0700000000000000"))
	require.Equal(t, unhex(t, "0700000000000000 00000000 00000000"), p.message())
	p = dial(t, s)
	p.write(unhex(t, "15000000 01 0100 0200 0000 02 09 01000000 75 09 02000000 7078"))
	refused = p.message()
	require.Equal(t, unhex(t, "00 0100 0700 0000 09"), refused[:8])
	require.Equal(t, unhex(t, "d0070000"), refused[len(refused)-4:])
	_, err = p.conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// Malformed and incomplete messages affect only their sender.
func TestMalformedMessagesLeaveOthersUnharmed(t *testing.T) {
	s := opened(t)
	bystander := connect(t, s)
	s.MustDo(t, "PERPER.CREATE", "executions")
	const own = "64000000 00" // a cache for this peer alone
	bystander.play(step{1052, "09 01000000 64", ""}, step{1001, own + keyA + one, ""})
	n := 10000
	if testing.Short() {
		n = 500
	}
	random := rand.New(rand.NewPCG(5, 6))
	good := [][]byte{}
	for _, body := range []string{"e803" + "0100000000000000" + prefix + keyA, "e903" + "0100000000000000" + prefix + keyB + wrapped,
		"eb03" + "0100000000000000" + prefix + "02000000" + keyA + keyB, "1d04" + "0100000000000000" + "00000000 0100 0000 0901000000 63",
		"d007" + "0100000000000000" + prefix + "65 2c010000 ffffffff 00",
		"a00f" + "0100000000000000" + "0101 0500000000000000 65", "a10f" + "0100000000000000" + "01000000 01",
		"4d04" + "0100000000000000" + "01000000" + executions,
		"eb03" + "0100000000000000" + executions + "02 01000000" + "02000000" + keyA + keyB,
		"ec03" + "0100000000000000" + executions + "02 01000000" + "01000000" + keyA + keyB,
		"bb0b" + "0100000000000000" + "05000000 0901000000 54 65 00000000 00 00000000"} {
		b := unhex(t, body)
		good = append(good, append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...))
	}
	hello := unhex(t, "0e000000 01 0100 0700 0000 02 0c 01000000 04")
	var p net.Conn
	for i := range n {
		if p == nil {
			conn, err := net.Dial("tcp", s.DoorAddr("perper-ignite"))
			require.NoError(t, err)
			conn.SetDeadline(time.Now().Add(deadline))
			p = conn
			if random.IntN(5) > 0 {
				_, err = p.Write(hello)
				require.NoError(t, err)
			}
		}
		b := slices.Clone(good[random.IntN(len(good))])
		for range 1 + random.IntN(3) {
			at := 4 + random.IntN(len(b)-4)
			if random.IntN(10) == 0 {
				at = random.IntN(len(b))
			}
			b[at] = byte(random.Uint32())
		}
		if random.IntN(10) == 0 {
			b = b[:random.IntN(len(b))]
		}
		if _, err := p.Write(b); err != nil || random.IntN(8) == 0 {
			p.Close()
			p = nil
		}
		if i%100 == 0 {
			bystander.play(step{1000, own + keyA, one})
			require.Equal(t, "PONG", s.MustDo(t, "PING").String())
		}
	}
	if p != nil {
		p.Close()
	}
	bystander.play(step{1011, own + keyA, "01"})
}

func TestKilledClientsAreDisconnected(t *testing.T) {
	s := opened(t)
	p := connect(t, s)
	p.play(step{1050, "", "00000000"})
	require.Equal(t, "(integer) 1", s.MustDo(t, "CLIENT", "KILL", "ADDR", p.conn.LocalAddr().String()).String())
	_, err := p.conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// Pipelined requests are answered in order.
func TestRequestsThatAreSentAhead(t *testing.T) {
	s := opened(t)
	p := connect(t, s)
	p.play(step{1052, "09 0a000000 657865637574696f6e73", ""})
	const n = 1000
	go func() {
		for i := range n {
			p.send(1005, append(unhex(t, prefix+keyA), objects.AppendLong(nil, int64(i))...))
		}
	}()
	for i := range n {
		b := p.message()
		require.Equal(t, uint64(i+2), binary.LittleEndian.Uint64(b))
		if i > 0 {
			require.Equal(t, objects.AppendLong(nil, int64(i-1)), b[10:])
		}
	}
}
