package resp_test

import (
	"log/slog"
	"net"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/resp"
)

type user struct {
	Name  string        `redis:"name"`
	Age   uint8         `redis:"age,omitempty"`
	Since time.Time     `redis:"since"`
	Pause time.Duration `redis:"pause"`
	Nick  *string       `redis:"nick"`
	NoTag string
}

type binary struct{ text string }

func (b *binary) UnmarshalBinary(data []byte) error { b.text = string(data); return nil }

func TestScanStoresReplies(t *testing.T) {
	nick := "ada"
	for _, c := range []struct {
		name, reply string
		into, want  any
	}{
		{"string", "$1\r\na\r\n", new(string), "a"},
		{"integer as string", ":7\r\n", new(string), "7"},
		{"bytes", "+OK\r\n", new([]byte), []byte("OK")},
		{"array of bytes", "$2\r\nab\r\n", new([2]byte), [2]byte{'a', 'b'}},
		{"int", "$2\r\n-7\r\n", new(int), -7},
		{"uint64", "$20\r\n18446744073709551615\r\n", new(uint64), uint64(1<<64 - 1)},
		{"float", ",1.5\r\n", new(float32), float32(1.5)},
		{"bool", "#t\r\n", new(bool), true},
		{"bool of an integer", ":0\r\n", new(bool), false},
		{"text unmarshaler", "$4\r\nWARN\r\n", new(slog.Level), slog.LevelWarn},
		{"both unmarshalers", "$4\r\n\x7f\x00\x00\x01\r\n", new(netip.Addr), netip.MustParseAddr("127.0.0.1")},
		{"binary unmarshaler", "$1\r\nx\r\n", new(binary), binary{"x"}},
		{"address as bytes", "$4\r\n\x7f\x00\x00\x01\r\n", new(net.IP), net.IP{127, 0, 0, 1}},
		{"null pointer", "_\r\n", new(*int), (*int)(nil)},
		{"null any", "$-1\r\n", new(any), nil},
		{"list", "*3\r\n$1\r\n1\r\n_\r\n:3\r\n", new([]int), []int{1, 0, 3}},
		{"array", "*2\r\n:1\r\n:2\r\n", new([2]int), [2]int{1, 2}},
		{"empty list", "*0\r\n", new([]string), []string{}},
		{"map", "%1\r\n+a\r\n:1\r\n", new(map[string]int), map[string]int{"a": 1}},
		{"map of a flat array", "*2\r\n+a\r\n+1\r\n", new(map[string]int64), map[string]int64{"a": 1}},
		{"any", "*4\r\n:1\r\n,1.5\r\n%1\r\n+a\r\n#f\r\n-ERR x\r\n", new(any),
			[]any{int64(1), 1.5, map[string]any{"a": false}, resp.Error("ERR x")}},
		{"struct", "*10\r\n+name\r\n+a\r\n+age\r\n:36\r\n+since\r\n+2030-01-02T03:04:05Z\r\n" +
			"+pause\r\n+1000000000\r\n+nick\r\n+ada\r\n", new(user),
			user{Name: "a", Age: 36, Since: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Pause: time.Second, Nick: &nick}},
		{"structs", "*2\r\n%1\r\n+name\r\n+a\r\n%0\r\n", new([]user), []user{{Name: "a"}, {}}},
		{"reply", ":1\r\n", new(resp.Reply), resp.NewReply([]byte(":1\r\n"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, resp.NewReply([]byte(c.reply)).Scan(c.into))
			require.Equal(t, c.want, deref(c.into))
		})
	}

	u := user{Name: "kept", Age: 1}
	require.NoError(t, resp.NewReply([]byte("*2\r\n+age\r\n:2\r\n")).Scan(&u))
	require.Equal(t, user{Name: "kept", Age: 2}, u)
}

func TestScanRefusesWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		name, reply, err string
		into             any
	}{
		{"no pointer", ":1\r\n", "atomredis: Scan needs a pointer, not a int", 1},
		{"nil pointer", ":1\r\n", "atomredis: Scan needs a pointer, not a *int", (*int)(nil)},
		{"null", "_\r\n", "atomredis: the reply is null", new(int)},
		{"none", "", "atomredis: there is no reply", new(int)},
		{"none into any", "", "atomredis: there is no reply", new(any)},
		{"error", "-WRONGTYPE x\r\n", "WRONGTYPE x", new(int)},
		{"too great", ":256\r\n", `atomredis: the reply ":256\r\n" is no uint8`, new(uint8)},
		{"negative", ":-1\r\n", `atomredis: the reply ":-1\r\n" is no uint`, new(uint)},
		{"text", "+a\r\n", `atomredis: the reply "+a\r\n" is no int`, new(int)},
		{"list of text", "*1\r\n+a\r\n", `element 0: atomredis: the reply "+a\r\n" is no int`, new([]int)},
		{"array of another length", "*1\r\n:1\r\n", `atomredis: the reply "*1\r\n:1\r\n" is no [2]int`, new([2]int)},
		{"odd map", "*1\r\n+a\r\n", `atomredis: the reply "*1\r\n+a\r\n" is no map`, new(map[string]string)},
		{"struct of a string", "+a\r\n", `atomredis: the reply "+a\r\n" is no array`, new(user)},
		{"field", "*2\r\n+age\r\n+x\r\n", `field age: atomredis: the reply "+x\r\n" is no uint8`, new(user)},
		{"no tags", "*0\r\n", "atomredis: a struct { A int } cannot be scanned into: none of its fields has a tag `redis:\"name\"`", new(struct{ A int })},
		{"channel", ":1\r\n", "atomredis: a chan int cannot be scanned into", new(chan int)},
		{"malformed", "$5\r\na\r\n", "atomredis: the reply is malformed", new(string)},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.EqualError(t, resp.NewReply([]byte(c.reply)).Scan(c.into), c.err)
		})
	}
}

func TestErrorsHaveACode(t *testing.T) {
	for text, code := range map[string]string{
		"WRONGTYPE Operation": "WRONGTYPE", "ERR": "ERR", "MOVED 1 a:1": "MOVED", "-1 x": "", "no code": "", "": "", "Err x": "",
	} {
		require.Equal(t, code, resp.Error(text).Code(), text)
	}
}

// deref returns what a pointer points to.
func deref(p any) any { return reflect.ValueOf(p).Elem().Interface() }
