package atomredis_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
)

// handle adds a command that must be accepted.
func handle(t testing.TB, db *atomredis.DB, cmd atomredis.Command) {
	t.Helper()
	require.NoError(t, db.Handle(cmd))
}

// transfer moves an amount from one account to another if there is enough.
var transfer = atomredis.Command{Name: "Bank.Transfer", Arity: 4, FirstKey: 1, LastKey: 2, Summary: "Moves money",
	Syntax: "key key amount",
	Do: func(c *atomredis.Ctx) (any, error) {
		from, err := c.Call("GET", c.Args[1])
		if err != nil {
			return nil, err
		}
		var amount int64
		if _, err := fmt.Sscan(string(c.Args[3]), &amount); err != nil {
			return nil, fmt.Errorf("bad amount: %w", err)
		}
		if balance, err := from.Int(); err != nil || balance < amount {
			return nil, atomredis.Error("POOR not enough money")
		}
		if _, err := c.Call("DECRBY", c.Args[1], amount); err != nil {
			return nil, err
		}
		return c.Call("INCRBY", c.Args[2], amount)
	}}

func TestCustomCommandsAreAtomic(t *testing.T) {
	db := open(t, atomredis.Options{Config: map[string]string{"shards": "16"}})
	handle(t, db, transfer)
	const accounts, workers, steps = 4, 4, 200
	sum := atomredis.Args{"MGET"}
	for i := range accounts {
		do(t, db, "SET", fmt.Sprint("account:", i), 100)
		sum = append(sum, fmt.Sprint("account:", i))
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range steps {
				from, to := (w+i)%accounts, (w*3+i*7+1)%accounts
				_, err := db.Do(t.Context(), "bank.transfer", fmt.Sprint("account:", from), fmt.Sprint("account:", to), i%30)
				if err != nil && err != atomredis.Error("POOR not enough money") {
					t.Error(err)
				}
			}
		})
	}
	for range 100 {
		values, err := do(t, db, sum...).Slice()
		require.NoError(t, err)
		total := int64(0)
		for _, v := range values {
			n, err := v.Int()
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, int64(0))
			total += n
		}
		require.EqualValues(t, 100*accounts, total)
	}
	wg.Wait()
}

func TestCustomCommandsAreInTheCommandTable(t *testing.T) {
	db := open(t, atomredis.Options{})
	count, err := do(t, db, "COMMAND", "COUNT").Int()
	require.NoError(t, err)
	handle(t, db, transfer)
	handle(t, db, atomredis.Command{Name: "a:first", Flags: atomredis.ReadOnly | atomredis.Fast,
		Do: func(*atomredis.Ctx) (any, error) { return 1, nil }})

	n, err := do(t, db, "COMMAND", "COUNT").Int()
	require.NoError(t, err)
	require.Equal(t, count+2, n)
	all, err := do(t, db, "COMMAND").Slice()
	require.NoError(t, err)
	require.Len(t, all, int(n))
	client := dialled(t, db)
	infos := client.Command(t.Context()).Val()
	for _, info := range infos {
		info.CommandPolicy = nil // go-redis derives it from the rest
	}
	require.Equal(t, &redis.CommandInfo{Name: "bank.transfer", Arity: 4, Flags: []string{"write"},
		ACLFlags:    []string{"@write", "@slow"},
		FirstKeyPos: 1, LastKeyPos: 2, StepCount: 1}, infos["bank.transfer"])
	require.Equal(t, &redis.CommandInfo{Name: "a:first", Arity: -1, Flags: []string{"readonly", "fast"},
		ACLFlags: []string{"@read", "@fast"},
		ReadOnly: true}, infos["a:first"])
	names, err := do(t, db, "COMMAND", "LIST").Texts()
	require.NoError(t, err)
	require.Equal(t, "a:first", names[0])
	require.Contains(t, names, "bank.transfer")
	keys, err := do(t, db, "COMMAND", "GETKEYS", "BANK.TRANSFER", "x", "y", "1").Texts()
	require.NoError(t, err)
	require.Equal(t, []string{"x", "y"}, keys)
	docs, err := do(t, db, "COMMAND", "DOCS", "bank.transfer").Map()
	require.NoError(t, err)
	doc, err := docs["bank.transfer"].Map()
	require.NoError(t, err)
	require.Equal(t, "Moves money", text(t, doc["summary"]))
	require.Equal(t, "module", text(t, doc["group"]))
	arguments, err := doc["arguments"].Slice()
	require.NoError(t, err)
	require.Len(t, arguments, 3)

	_, err = db.Do(t.Context(), "BANK.TRANSFER", "x")
	require.Equal(t, atomredis.Error("ERR wrong number of arguments for 'bank.transfer' command"), err)
	_, err = db.Do(t.Context(), "bank.transfer", "x", "y", 1)
	require.Equal(t, atomredis.Error("POOR not enough money"), err)
	do(t, db, "A:FIRST", "anything")
	stats := text(t, do(t, db, "INFO", "commandstats"))
	require.Regexp(t, `cmdstat_a:first:calls=1,`, stats)
	require.Regexp(t, `cmdstat_bank.transfer:calls=1,.*rejected_calls=1,failed_calls=1`, stats)
	require.Regexp(t, `cmdstat_get:calls=1,`, stats, "what it calls is counted too")
}

// dialled returns a client with an in-memory connection.
func dialled(t testing.TB, db *atomredis.DB) *redis.Client {
	c := redis.NewClient(&redis.Options{Protocol: 2,
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return db.Dial(ctx) }})
	t.Cleanup(func() { c.Close() })
	return c
}

func TestCustomCommandsRunInScriptsAndTransactions(t *testing.T) {
	db := open(t, atomredis.Options{Config: map[string]string{"shards": "16"}})
	handle(t, db, transfer)
	handle(t, db, atomredis.Command{Name: "peek", Arity: 2, FirstKey: 1, Flags: atomredis.ReadOnly,
		Do: func(c *atomredis.Ctx) (any, error) {
			return c.Call("GET", c.Args[1])
		}})
	for name, flag := range map[string]atomredis.CommandFlags{"not.script": atomredis.NoScript,
		"not.multi": atomredis.NoMulti} {
		handle(t, db, atomredis.Command{Name: name, Flags: flag,
			Do: func(*atomredis.Ctx) (any, error) { return atomredis.Status("OK"), nil }})
		require.Equal(t, "OK", text(t, do(t, db, name)))
	}
	do(t, db, "MSET", "a", 10, "b", 0)
	require.Equal(t, "7", text(t, do(t, db, "EVAL",
		"redis.call('bank.transfer', 'a', 'b', 7); return redis.call('peek', 'b')", 0)))
	require.Equal(t, "7", text(t, do(t, db, "EVAL_RO", "return redis.call('peek', KEYS[1])", 1, "b")))
	_, err := db.Do(t.Context(), "EVAL_RO", "return redis.call('bank.transfer', 'a', 'b', 1)", 0)
	require.ErrorContains(t, err, "Write commands are not allowed from read-only scripts")
	_, err = db.Do(t.Context(), "EVAL", "return redis.call('bank.transfer', 'a', 'b', 100)", 0)
	require.ErrorContains(t, err, "POOR not enough money")
	_, err = db.Do(t.Context(), "EVAL", "return redis.call('not.script')", 0)
	require.ErrorContains(t, err, "not allowed from script")

	var moved, peeked *atomredis.Reply
	require.NoError(t, db.Tx(t.Context(), func(tx *atomredis.Tx) error {
		tx.Do("INCR", "a")
		moved, peeked = tx.Do("bank.transfer", "a", "c", 4), tx.Do("peek", "a")
		return nil
	}))
	require.Equal(t, "4", text(t, *moved))
	require.Equal(t, "0", text(t, *peeked))
	err = db.Tx(t.Context(), func(tx *atomredis.Tx) error {
		tx.Do("not.multi")
		return nil
	})
	require.ErrorContains(t, err, "not allowed inside a transaction")
}

func TestCustomCommandsAreRefusedToWhoMustNotUseThem(t *testing.T) {
	db := open(t, atomredis.Options{})
	do(t, db, "ACL", "SETUSER", "teller", "on", ">secret", "~account:*", "+@all")
	handle(t, db, transfer) // after the user
	do(t, db, "ACL", "SETUSER", "teller", "-bank.transfer")
	do(t, db, "ACL", "SETUSER", "clerk", "on", ">secret", "~account:*", "+@read", "+@write", "+eval", "+multi", "+exec")
	do(t, db, "MSET", "account:a", 10, "account:b", 0, "vault", 1000)
	as := func(user string) *redis.Client {
		c := redis.NewClient(&redis.Options{Username: user, Password: "secret", MaxRetries: -1, DisableIdentity: true,
			Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return db.Dial(ctx) }})
		t.Cleanup(func() { c.Close() })
		return c
	}
	const key = "No permissions to access a key"
	// refused checks that every way in which the user transfers money fails.
	refused := func(c *redis.Client, from, to, want string) {
		t.Helper()
		require.EqualError(t, c.Do(t.Context(), "bank.transfer", from, to, 1).Err(), "NOPERM "+want)
		_, err := c.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Do(t.Context(), "Bank.Transfer", from, to, 1)
			p.IncrBy(t.Context(), "account:a", 100)
			return nil
		})
		require.ErrorContains(t, err, "EXECABORT")
		script := "return redis.call('bank.transfer', ARGV[1], ARGV[2], 1)"
		err = c.Eval(t.Context(), script, nil, from, to).Err()
		require.ErrorContains(t, err, "ERR ACL failure in script: "+want)
		values, err := do(t, db, "MGET", "account:a", "account:b", "vault").Texts()
		require.NoError(t, err)
		require.Equal(t, []string{"10", "0", "1000"}, values)
	}
	for _, name := range []string{"teller", "clerk"} { // commands of the program have no category
		refused(as(name), "account:a", "account:b", "User "+name+" has no permissions to run the 'bank.transfer' command")
		do(t, db, "ACL", "SETUSER", name, "+bank.transfer")
		c := as(name)
		refused(c, "vault", "account:b", key)
		refused(c, "account:a", "vault", key)
		require.EqualValues(t, 4, c.Do(t.Context(), "bank.transfer", "account:a", "account:b", 4).Val())
		require.EqualValues(t, 10, c.Eval(t.Context(), "return redis.call('bank.transfer', KEYS[2], KEYS[1], 4)",
			[]string{"account:a", "account:b"}).Val())
	}
	transferred, err := do(t, db, "ACL", "DRYRUN", "clerk", "bank.transfer", "account:a", "vault", 1).Text()
	require.NoError(t, err)
	require.Contains(t, transferred, "no permissions to access the 'vault' key")

	// A transaction that was queued in time is refused when it is executed.
	c := as("clerk").Conn()
	defer c.Close()
	require.NoError(t, c.Do(t.Context(), "MULTI").Err())
	require.EqualValues(t, "QUEUED", c.Do(t.Context(), "bank.transfer", "account:a", "account:b", 1).Val())
	do(t, db, "ACL", "SETUSER", "clerk", "-bank.transfer")
	require.ErrorContains(t, c.Do(t.Context(), "EXEC").Err(), "NOPERM ACLs rules changed")
	require.Equal(t, "10", text(t, do(t, db, "GET", "account:a")))
}

func TestCustomCommandsUseWhatTheyDeclare(t *testing.T) {
	db := open(t, atomredis.Options{})
	var call atomredis.Args // made by the handlers
	try := func(c *atomredis.Ctx) (any, error) { return c.Call(call...) }
	handle(t, db, atomredis.Command{Name: "keyed", Arity: -2, FirstKey: 1, LastKey: -1, Do: try})
	handle(t, db, atomredis.Command{Name: "paired", Arity: -3, FirstKey: 1, LastKey: -1, KeyStep: 2, Do: try})
	handle(t, db, atomredis.Command{Name: "whole", Do: try})
	handle(t, db, atomredis.Command{Name: "wide", Arity: -2, FirstKey: 1, Flags: atomredis.WholeKeyspace, Do: try})
	handle(t, db, atomredis.Command{Name: "reader", Flags: atomredis.ReadOnly, Do: try})
	for _, c := range []struct{ custom, calls, want string }{
		{"keyed a b", "MSET a 1 b 2", ""},
		{"keyed a b", "MSET a 1 c 2", "ERR 'keyed' does not declare the key 'c'"},
		{"keyed a b", "RENAME b c", "ERR 'keyed' does not declare the key 'c'"},
		{"keyed a b", "DBSIZE", "ERR 'dbsize' needs the whole keyspace, and 'keyed' declares keys"},
		{"keyed a b", "ECHO c", ""},
		{"keyed a b", "whole", "ERR 'whole' needs the whole keyspace, and 'keyed' declares keys"},
		{"keyed a b", "keyed a", "ERR custom commands call each other too deeply"},
		{"paired a b c d", "MSET a 1 c 2", ""},
		{"paired a b c d", "GET b", "ERR 'paired' does not declare the key 'b'"},
		{"whole", "RENAME a c", ""},
		{"whole", "DBSIZE", ""},
		{"wide a", "RENAME c a", ""},
		{"reader", "EXISTS a", ""},
		{"reader", "SET a 1", "ERR 'set' writes, and 'reader' is declared to be read-only"},
		{"reader", "PUBLISH a 1", "ERR 'publish' writes, and 'reader' is declared to be read-only"},
		{"whole", "NOSUCH a", "ERR unknown command 'NOSUCH', with args beginning with: 'a' "},
		{"whole", "GET", "ERR wrong number of arguments for 'get' command"},
		{"whole", "CONFIG", "ERR wrong number of arguments for 'config' command"},
		{"whole", "BLPOP none 0", ""},
		{"whole", "WAIT 1 0", ""},
		{"whole", "MULTI", "ERR 'multi' cannot be called by a custom command"},
		{"whole", "EVAL x 0", "ERR 'eval' cannot be called by a custom command"},
		{"whole", "SUBSCRIBE a", "ERR 'subscribe' cannot be called by a custom command"},
		{"whole", "LPUSH a 1", "WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"whole", "SELECT 5", ""},
		{"whole", "SELECT 99", "ERR DB index is out of range"},
	} {
		call = nil
		for _, word := range strings.Fields(c.calls) {
			call = append(call, word)
		}
		var args atomredis.Args
		for _, word := range strings.Fields(c.custom) {
			args = append(args, word)
		}
		_, err := db.Do(t.Context(), args...)
		if c.want == "" {
			require.NoError(t, err, "%v", c)
		} else {
			require.Equal(t, atomredis.Error(c.want), err, "%v", c)
		}
	}
	require.Equal(t, "1", text(t, do(t, db, "GET", "a")), "in database 0: what a command selects it selects for itself")

	call = nil
	_, err := db.Do(t.Context(), "whole")
	require.ErrorContains(t, err, "no name")
	call = atomredis.Args{"SET", "a", make([]byte, 2<<20)}
	do(t, db, "CONFIG", "SET", "proto-max-bulk-len", "1mb")
	_, err = db.Do(t.Context(), "whole")
	require.ErrorContains(t, err, "proto-max-bulk-len")
}

func TestResultsOfCustomCommandsBecomeReplies(t *testing.T) {
	db := open(t, atomredis.Options{})
	var result func(c *atomredis.Ctx) (any, error)
	handle(t, db, atomredis.Command{Name: "x", Do: func(c *atomredis.Ctx) (any, error) { return result(c) }})
	value := func(v any) func(*atomredis.Ctx) (any, error) {
		return func(*atomredis.Ctx) (any, error) { return v, nil }
	}
	calls := func(args ...any) func(*atomredis.Ctx) (any, error) {
		return func(c *atomredis.Ctx) (any, error) { return c.Call(args...) }
	}
	endless := []any{nil}
	endless[0] = endless
	do(t, db, "SET", "s", "text")
	do(t, db, "HSET", "h", "f", "v")
	do(t, db, "SADD", "set", "m")
	do(t, db, "ZADD", "z", 1.5, "m")
	for _, c := range []struct {
		name         string
		result       func(c *atomredis.Ctx) (any, error)
		resp2, resp3 string // ~ stands for a line break; resp3 is empty if it is the same
	}{
		{"nil", value(nil), "$-1~", "_~"},
		{"string", value("a\r\nb"), "$4~a~b~", ""},
		{"bytes", value([]byte("\x00")), "$1~\x00~", ""},
		{"status", value(atomredis.Status("O\nK")), "+O K~", ""},
		{"int", value(int64(math.MinInt64)), ":-9223372036854775808~", ""},
		{"integers", value([]any{int8(1), int16(2), int32(3), int64(4), uint8(5), uint16(6), uint32(7)}),
			"*7~:1~:2~:3~:4~:5~:6~:7~", ""},
		{"float", value(0.1), "$3~0.1~", ",0.1~"},
		{"float32", value(float32(1.5)), "$3~1.5~", ",1.5~"},
		{"bool", value([]any{true, false}), "*2~:1~:0~", "*2~#t~#f~"},
		{"texts", value([]string{"a", ""}), "*2~$1~a~$0~~", ""},
		{"map", value(map[string]any{"b": 1, "a": []any{nil}}), "*4~$1~a~*1~$-1~$1~b~:1~", "%2~$1~a~*1~_~$1~b~:1~"},
		{"map of texts", value(map[string]string{"k": "v"}), "*2~$1~k~$1~v~", "%1~$1~k~$1~v~"},
		{"error", func(*atomredis.Ctx) (any, error) { return "lost", errors.New("a\nb") }, "-ERR a b~", ""},
		{"Error", func(*atomredis.Ctx) (any, error) { return nil, atomredis.Error("MINE is") }, "-MINE is~", ""},
		{"error as value", value([]any{"a", errors.New("x"), atomredis.Error("Y z")}), "*3~$1~a~-ERR x~-Y z~", ""},
		{"reply", calls("GET", "s"), "$4~text~", ""},
		{"null reply", calls("GET", "none"), "$-1~", "_~"},
		{"map reply", calls("HGETALL", "h"), "*2~$1~f~$1~v~", "%1~$1~f~$1~v~"},
		{"set reply", calls("SMEMBERS", "set"), "*1~$1~m~", "~1~$1~m~"},
		{"float reply", calls("ZSCORE", "z", "m"), "$3~1.5~", ",1.5~"},
		{"status reply", calls("SET", "s", "text"), "+OK~", ""},
		{"error reply", calls("LPUSH", "s", 1), "-WRONGTYPE Operation against a key holding the wrong kind of value~", ""},
		{"replies", func(c *atomredis.Ctx) (any, error) {
			a, _ := c.Call("GET", "s")
			b, _ := c.Call("LPUSH", "s", 1)
			d, _ := c.Call("HGETALL", "h")
			return []atomredis.Reply{a, b, d}, nil
		}, "*3~$4~text~-WRONGTYPE Operation against a key holding the wrong kind of value~*2~$1~f~$1~v~",
			"*3~$4~text~-WRONGTYPE Operation against a key holding the wrong kind of value~%1~$1~f~$1~v~"},
		{"no reply", value(atomredis.Reply{}), "-ERR atomredis: there is no reply~", ""},
		{"what is no reply", value([]any{1, struct{}{}}),
			"-ERR the command returned a struct {}, none of whose fields has a tag `redis:\"name\"`~", ""},
		{"endless", value(endless), "-ERR the value is nested too deeply~", ""},
		{"function", value(func() {}), "-ERR the command returned a func(), which cannot be a reply~", ""},
		{"uint64", value([]uint64{1, 1<<63 - 1, 1 << 63}), "*3~:1~:9223372036854775807~$19~9223372036854775808~",
			"*3~:1~:9223372036854775807~(9223372036854775808~"},
		{"uint and uintptr", value([]any{uint(7), uintptr(8)}), "*2~:7~:8~", ""},
		{"ints", value([]int{1, -2}), "*2~:1~:-2~", ""},
		{"array", value([2]bool{true, false}), "*2~:1~:0~", "*2~#t~#f~"},
		{"nested slices", value([][]string{{"a"}, nil}), "*2~*1~$1~a~*0~", ""},
		{"array of bytes", value([2]byte{'a', 'b'}), "$2~ab~", ""},
		{"named types", value([]any{kindOfText("t"), kindOfNumber(1), kindOfBytes("b")}), "*3~$1~t~:1~$1~b~", ""},
		{"pointers", value([]*int{new(int), nil}), "*2~:0~$-1~", "*2~:0~_~"},
		{"map of integers", value(map[int]string{10: "b", 9: "a"}), "*4~:9~$1~a~:10~$1~b~", "%2~:9~$1~a~:10~$1~b~"},
		{"map of named keys", value(map[kindOfText][]int{"k": {1}}), "*2~$1~k~*1~:1~", "%1~$1~k~*1~:1~"},
		{"empty map and slice", value([]any{map[string]int(nil), []int(nil)}), "*2~*0~*0~", "*2~%0~*0~"},
		{"struct", value(tagged{Name: "Ada", Born: 1815}), "*4~$4~name~$3~Ada~$4~born~:1815~",
			"%2~$4~name~$3~Ada~$4~born~:1815~"},
		{"structs", value([]*tagged{{Name: "a", Died: 1}, nil}), "*2~*6~$4~name~$1~a~$4~born~:0~$4~died~:1~$-1~",
			"*2~%3~$4~name~$1~a~$4~born~:0~$4~died~:1~_~"},
		{"time", value([]any{time.Unix(0, 0).UTC(), time.Second}), "*2~$20~1970-01-01T00:00:00Z~:1000000000~", ""},
		{"marshaler", value(marshaler("x")), "$11~marshaled x~", ""},
		{"bad marshaler", value(marshaler("")), "-ERR nothing to marshal~", ""},
		{"text marshaler", value(big.NewInt(-5)), "$2~-5~", ""},
		{"pointer to a reply", func(c *atomredis.Ctx) (any, error) { r, err := c.Call("GET", "s"); return &r, err },
			"$4~text~", ""},
		{"errors among others", value([]any{errors.New("e"), []error{nil}}), "*2~-ERR e~*1~$-1~", "*2~-ERR e~*1~_~"},
	} {
		for proto, want := range map[string]string{"2": c.resp2, "3": c.resp3} {
			if want == "" {
				want = c.resp2
			}
			result = c.result
			conn, err := db.Dial(t.Context())
			require.NoError(t, err)
			require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
			fmt.Fprintf(conn, "HELLO %s\r\nECHO #\r\nX\r\nECHO #\r\n", proto)
			r := bufio.NewReader(conn)
			mark := "$1\r\n#\r\n"
			readTo(t, r, mark)
			require.Equal(t, strings.ReplaceAll(want, "~", "\r\n"), strings.ReplaceAll(readTo(t, r, mark), "~", "\r\n"),
				"%s in RESP%s", c.name, proto)
			conn.Close()
		}
	}
}

type (
	kindOfText   string
	kindOfNumber uint8
	kindOfBytes  []byte
)

// A handler that uses its DB would wait for itself, so it gets an error. Other clients and other servers are not
// affected.
func TestHandlersMustNotUseTheirDB(t *testing.T) {
	db := open(t, atomredis.Options{})
	other := open(t, atomredis.Options{})
	ctx := t.Context()
	var use func(db *atomredis.DB) error
	handler := atomredis.Command{Name: "use", Do: func(*atomredis.Ctx) (any, error) {
		err := use(db)
		if errors.Is(err, atomredis.ErrInHandler) {
			return "refused", nil
		}
		return "not refused", err
	}}
	require.NoError(t, db.Handle(handler))
	require.NoError(t, other.Handle(atomredis.Command{Name: "back",
		Do: func(*atomredis.Ctx) (any, error) { return "back", use(db) }}))
	numbered, err := db.Database(1)
	require.NoError(t, err)
	for name, call := range map[string]func(db *atomredis.DB) error{
		"Do":         func(db *atomredis.DB) error { _, err := db.Do(ctx, "PING"); return err },
		"a database": func(*atomredis.DB) error { _, err := numbered.Do(ctx, "PING"); return err },
		"DoMany":     func(db *atomredis.DB) error { _, err := db.DoMany(ctx, atomredis.Args{"PING"}); return err },
		"Tx":         func(db *atomredis.DB) error { return db.Tx(ctx, func(*atomredis.Tx) error { return nil }) },
		"Subscribe": func(db *atomredis.DB) error {
			for _, err := range db.Subscribe(ctx, "c") {
				return err
			}
			return nil
		},
		"Snapshot": func(db *atomredis.DB) error { return db.Snapshot(io.Discard) },
		"Restore":  func(db *atomredis.DB) error { return db.Restore(strings.NewReader("")) },
		"Close":    func(db *atomredis.DB) error { return db.Close() },
		"deep": func(db *atomredis.DB) error {
			return deep(300, func() error { _, err := db.Do(ctx, "PING"); return err })
		},
		"by way of other": func(*atomredis.DB) error {
			use = func(db *atomredis.DB) error { _, err := db.Do(ctx, "PING"); return err }
			_, err := other.Do(ctx, "BACK")
			if err != nil && strings.Contains(err.Error(), atomredis.ErrInHandler.Error()) {
				return atomredis.ErrInHandler // the result of other's handler
			}
			return err
		},
	} {
		use = call
		require.Equal(t, `"refused"`, do(t, db, "USE").String(), name)
		use = call
		require.Equal(t, `"refused"`, do(t, db, "EVAL", "return redis.call('use')", 0).String(), name)
	}

	use = func(*atomredis.DB) error { _, err := other.Do(ctx, "SET", "k", "v"); return err }
	require.Equal(t, `"not refused"`, do(t, db, "USE").String())
	require.Equal(t, `"v"`, do(t, other, "GET", "k").String())

	// Other clients still wait until the handler has ended.
	started, finish := make(chan struct{}), make(chan struct{})
	use = func(*atomredis.DB) error { close(started); <-finish; return nil }
	done := make(chan error, 2)
	go func() { _, err := db.Do(ctx, "USE"); done <- err }()
	<-started
	go func() { _, err := db.Do(ctx, "SET", "k", "v"); done <- err }()
	close(finish)
	require.NoError(t, <-done)
	require.NoError(t, <-done)
}

// deep calls f below n other calls.
func deep(n int, f func() error) error {
	if n == 0 {
		return f()
	}
	return deep(n-1, f)
}

// readTo reads up to a mark, and returns the bytes before it.
func readTo(t *testing.T, r io.ByteReader, mark string) string {
	var got []byte
	for !strings.HasSuffix(string(got), mark) {
		b, err := r.ReadByte()
		require.NoError(t, err, "%q", got)
		got = append(got, b)
	}
	return strings.TrimSuffix(string(got), mark)
}

func TestPanicsOfHandlersHarmNobody(t *testing.T) {
	var log strings.Builder
	db := open(t, atomredis.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var kept *atomredis.Ctx
	handle(t, db, atomredis.Command{Name: "bug", Do: func(c *atomredis.Ctx) (any, error) {
		kept = c
		c.Call("SELECT", 3)
		c.Call("SET", "k", "v")
		panic("a bug")
	}})
	_, err := db.Do(t.Context(), "BUG")
	require.Equal(t, atomredis.Error("ERR internal error"), err)
	require.Contains(t, log.String(), "a bug")
	require.Equal(t, "0", text(t, do(t, db, "DBSIZE")))
	three, err := db.Database(3)
	require.NoError(t, err)
	require.Equal(t, "v", text(t, do(t, three, "GET", "k")), "what was done stays done")
	_, err = kept.Call("SET", "k", "w")
	require.ErrorContains(t, err, "only while it runs")
}

func TestCustomCommandsServeBlockedClients(t *testing.T) {
	db := open(t, atomredis.Options{})
	handle(t, db, atomredis.Command{Name: "enqueue", Arity: 3, FirstKey: 1, Do: func(c *atomredis.Ctx) (any, error) {
		return c.Call("RPUSH", c.Args[1], c.Args[2])
	}})
	served := make(chan []string)
	go func() {
		r, _ := db.Do(t.Context(), "BLPOP", "q", 0)
		words, _ := r.Texts()
		served <- words
	}()
	do(t, db, "ENQUEUE", "q", "x")
	require.Equal(t, []string{"q", "x"}, <-served)
}

func TestWhatCustomCommandsWriteSurvives(t *testing.T) {
	o := atomredis.Options{Dir: t.TempDir(), Config: map[string]string{"appendfsync": "always", "shards": "4"}}
	db, err := atomredis.Open(o)
	require.NoError(t, err)
	calls := 0
	handle(t, db, atomredis.Command{Name: "stamp", Arity: -1, Do: func(c *atomredis.Ctx) (any, error) {
		calls++
		for _, args := range []atomredis.Args{{"INCR", "n"}, {"SET", "at", c.Now().UnixNano()}, {"SPOP", "s", 2},
			{"SELECT", 2}, {"RPUSH", "l", calls}} {
			if _, err := c.Call(args...); err != nil {
				return nil, err
			}
		}
		if len(c.Args) > 1 {
			panic("half-way")
		}
		return nil, nil
	}})
	do(t, db, "SADD", "s", 1, 2, 3, 4, 5, 6, 7, 8)
	do(t, db, "STAMP")
	do(t, db, "EVAL", "redis.call('stamp')", 0)
	_, err = db.Do(t.Context(), "STAMP", "and panic")
	require.ErrorContains(t, err, "internal error")
	at, left := text(t, do(t, db, "GET", "at")), do(t, db, "SMEMBERS", "s")
	require.NoError(t, db.Close())

	db = open(t, o) // without the command
	require.Equal(t, "3", text(t, do(t, db, "GET", "n")))
	require.Equal(t, at, text(t, do(t, db, "GET", "at")))
	before, err := left.Texts()
	require.NoError(t, err)
	after, err := do(t, db, "SMEMBERS", "s").Texts()
	require.NoError(t, err)
	require.ElementsMatch(t, before, after)
	two, err := db.Database(2)
	require.NoError(t, err)
	list, err := do(t, two, "LRANGE", "l", 0, -1).Texts()
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "3"}, list)
	require.Equal(t, 3, calls)
}

func TestHandleRefusesWhatContradictsItself(t *testing.T) {
	db := open(t, atomredis.Options{})
	ok := func(*atomredis.Ctx) (any, error) { return nil, nil }
	for want, cmd := range map[string]atomredis.Command{
		"has no Do":                  {Name: "x"},
		"has not 1 to 32 characters": {Do: ok},
		"32 characters":              {Name: strings.Repeat("x", 33), Do: ok},
		"characters other than":      {Name: "config|get", Do: ok},
		"other than letters":         {Name: "a b", Do: ok},
		"digits and . : _ -":         {Name: "é", Do: ok},
		"HTTP":                       {Name: "Post", Do: ok},
		`a command "get" already`:    {Name: "GET", Do: ok},
		`"config" already`:           {Name: "config", Do: ok},
		"need a FirstKey":            {Name: "x", LastKey: 1, Do: ok},
		"cannot be negative":         {Name: "x", FirstKey: -1, Do: ok},
		"that Arity demands":         {Name: "x", Arity: -1, FirstKey: 1, Do: ok},
		"less than the 3":            {Name: "x", Arity: -3, FirstKey: 1, LastKey: 3, Do: ok},
		"precedes":                   {Name: "x", Arity: 4, FirstKey: 2, LastKey: 1, Do: ok},
		"syntax of x":                {Name: "x", Syntax: "[key", Do: ok},
	} {
		require.ErrorContains(t, db.Handle(cmd), want)
	}
	for i := range 256 {
		handle(t, db, atomredis.Command{Name: fmt.Sprint("x", i), Do: ok})
		require.ErrorContains(t, db.Handle(atomredis.Command{Name: fmt.Sprint("X", i), Do: ok}), "already")
	}
	require.ErrorContains(t, db.Handle(atomredis.Command{Name: "onemore", Do: ok}), "256 custom commands")
	do(t, db, "x255")
	require.Contains(t, text(t, do(t, db, "INFO", "commandstats")), "cmdstat_x255:calls=1,")
}

func TestCommandsAreAddedWhileOthersRun(t *testing.T) {
	db := open(t, atomredis.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				db.Do(ctx, "INCR", "n")
				db.Do(ctx, "COMMAND", "COUNT")
				db.Do(ctx, "x50")
			}
		})
	}
	for i := range 100 {
		name := fmt.Sprint("x", i)
		handle(t, db, atomredis.Command{Name: name, Do: func(*atomredis.Ctx) (any, error) { return name, nil }})
		require.Equal(t, name, text(t, do(t, db, name)))
	}
	cancel()
	wg.Wait()
}

func BenchmarkCustomCommand(b *testing.B) {
	db := open(b, atomredis.Options{})
	handle(b, db, atomredis.Command{Name: "peek", Arity: 2, FirstKey: 1, Flags: atomredis.ReadOnly,
		Do: func(c *atomredis.Ctx) (any, error) {
			return c.Call("GET", c.Args[1])
		}})
	do(b, db, "SET", "k", "v")
	b.ReportAllocs()
	for b.Loop() {
		do(b, db, "PEEK", "k")
	}
}
