package perperignite_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/atomredistest"
	objects "github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

// The kinds of transactions, as a client sends them: concurrency and isolation.
const (
	optimisticCommitted    = "00 00"
	optimisticRepeatable   = "00 01"
	optimisticSerializable = "00 02"
	pessimisticCommitted   = "01 00"
	pessimisticRepeatable  = "01 01"
	pessimisticSerial      = "01 02"
)

const (
	noTimeout = "0000000000000000"
	label     = "09 01000000 4c"
	commitIt  = "01"
	rollBack  = "00"
)

// inTx is the prefix of an operation in the first transaction of a connection.
const inTx = executions + "02 01000000"

// withCache starts a server with a cache.
func withCache(t testing.TB) *atomredistest.Server {
	s := opened(t)
	s.MustDo(t, "PERPER.CREATE", "executions")
	return s
}

func TestTransactionsChangeNothingBeforeTheirCommit(t *testing.T) {
	for _, kind := range []string{optimisticCommitted, optimisticRepeatable, optimisticSerializable, pessimisticCommitted,
		pessimisticRepeatable, pessimisticSerial} {
		s := withCache(t)
		p, other := connect(t, s), connect(t, s)
		s.MustDo(t, "PERPER.PUT", "executions", "5", "int(1)")
		p.play(
			step{4000, kind + noTimeout + label, "01000000"},
			step{1000, inTx + keyA, null},
			step{1001, inTx + keyA + one, ""},
			step{1000, inTx + keyA, one},
			step{1002, inTx + keyA + two, "00"},
			step{1002, inTx + "08 00" + two, "01"},
			step{1003, inTx + "03000000" + keyA + keyB + "08 01", "02000000" + keyA + one + keyB + one},
			step{1004, inTx + "01000000" + "08 01" + thing, ""},
			step{1005, inTx + "08 01" + two, wrapped},
			step{1006, inTx + "08 01" + one, two},
			step{1006, inTx + "03 07000000" + one, null},
			step{1007, inTx + "08 01", one},
			step{1007, inTx + "08 01", null},
			step{1008, inTx + keyA + two, one},
			step{1008, inTx + "03 08000000" + two, null},
			step{1009, inTx + keyA + two, "01"},
			step{1009, inTx + "03 07000000" + two, "00"},
			step{1010, inTx + keyA + one + two, "00"},
			step{1010, inTx + keyA + two + one, "01"},
			step{1011, inTx + "08 00", "01"},
			step{1012, inTx + "02000000" + keyA + "08 01", "00"},
			step{1012, inTx + "02000000" + keyA + "08 00", "01"},
			step{1016, inTx + "08 00", "01"},
			step{1016, inTx + "08 00", "00"},
			step{1017, inTx + keyA + two, "00"},
			step{1017, inTx + keyB + one, "01"},
			step{1018, inTx + "01000000 03 08000000", ""},
			step{1001, executions + "06 feffffffffffffff ffffffffffffffff feffffffffffffff 01000000 03 09000000" + one, ""},
			step{1020, inTx + "00000000", "0100000000000000"}, // not part of the transaction, as in Ignite
			step{1019, inTx, "1 Removing all keys is not supported in a transaction [id=1, label=L]"},
		)
		other.play(step{1000, prefix + keyA, null}, step{1000, prefix + keyB, one})
		p.play(step{4001, "01000000" + commitIt, ""}, step{1000, prefix + keyB, null}, step{1000, prefix + "03 09000000", one})
		other.play(step{1003, prefix + "04000000" + keyA + keyB + "08 00 08 01", "01000000" + keyA + one},
			step{1020, prefix + "00000000", "0200000000000000"})

		p.play(
			step{4000, kind + noTimeout + null, "02000000"},
			step{1001, executions + "02 02000000" + keyA + two, ""},
			step{4001, "02000000" + rollBack, ""},
			step{1000, prefix + keyA, one},
			step{4001, "02000000" + commitIt, "1021 Transaction with id 2 not found"},
			step{1000, executions + "02 02000000" + keyA, "1021 Transaction with id 2 not found"},
		)
	}
}

func TestTransactionsOfWrongArguments(t *testing.T) {
	p := connect(t, withCache(t))
	const unknown = "1 The transaction has an unknown concurrency or isolation, or a negative timeout"
	p.play(
		step{4000, "02 00" + noTimeout + null, unknown},
		step{4000, "00 03" + noTimeout + null, unknown},
		step{4000, "00 00 ffffffffffffffff" + null, unknown},
		step{4000, "00 00" + noTimeout, "1 malformed object"},
		step{4001, "01000000", "1 malformed object"},
		step{4000, pessimisticRepeatable + noTimeout + label, "01000000"},
		step{1001, inTx + keyA + null, "1 BADOBJECT keys and values cannot be null"},
		step{1001, inTx + keyA, "1 malformed object"},
		step{1000, executions + "02", "1 malformed object"},
		step{1001, "05000000 02 01000000" + keyA + one, "1000 Cache does not exist [cacheId=5]"},
		step{1001, inTx + keyA + one, ""},
		step{4001, "01000000" + commitIt, ""},
	)
	_, tooLong := p.ask(4000, objects.AppendString(unhex(t, optimisticCommitted+noTimeout), strings.Repeat("x", 1025)))
	require.Equal(t, "1 The label of the transaction is too long", tooLong)
}

func TestOptimisticTransactionsFailIfAKeyThatTheyReadHasChanged(t *testing.T) {
	s := withCache(t)
	other := connect(t, s)
	const conflict = "1 Failed to prepare transaction, read/write conflict or lock conflict [id=1, label=L]"
	for kind, want := range map[string]string{optimisticSerializable: conflict, optimisticRepeatable: "", optimisticCommitted: ""} {
		p := connect(t, s)
		s.MustDo(t, "PERPER.PUT", "executions", "a", "int(1)")
		p.play(step{4000, kind + noTimeout + label, "01000000"}, step{1000, inTx + keyA, one}, step{1000, inTx + keyB, null})
		other.play(step{1001, prefix + keyA + two, ""})
		seen := one
		if kind == optimisticCommitted {
			seen = two
		}
		p.play(step{1000, inTx + keyA, seen}, step{1001, inTx + "08 01" + one, ""}, step{4001, "01000000" + commitIt, want})
		has := "01"
		if want != "" {
			has = "00"
		}
		p.play(step{1011, prefix + "08 01", has}, step{1014, prefix + "08 01", ""})
	}
}

func TestPessimisticTransactionsFailIfOthersWriteWhatTheyHaveLocked(t *testing.T) {
	s := withCache(t)
	p := connect(t, s)
	p.play(step{4000, pessimisticRepeatable + noTimeout + label, "01000000"}, step{1000, inTx + keyA, null},
		step{1001, inTx + keyB + one, ""})
	s.MustDo(t, "PERPER.PUT", "executions", "a", "int(1)")
	p.play(step{4001, "01000000" + commitIt,
		"1 Failed to commit the transaction, a key that it has locked was changed by another client [id=1, label=L]"},
		step{1000, prefix + keyB, null})
}

// answers reads the replies to n requests, in any order, and returns their bodies or errors by request.
func (p *peer) answers(n int) map[uint64]string {
	all := map[uint64]string{}
	for range n {
		b := p.message()
		id := binary.LittleEndian.Uint64(b)
		if binary.LittleEndian.Uint16(b[8:]) == 0 {
			all[id] = string(b[10:])
			continue
		}
		all[id], _ = objects.AsString(b[14:])
	}
	return all
}

// A request that waits for a lock delays no other request of its connection.
func TestPessimisticTransactionsWaitForLocks(t *testing.T) {
	for how, end := range map[string]func(p *peer){
		"commit":     func(p *peer) { p.play(step{4001, "01000000" + commitIt, ""}) },
		"rollback":   func(p *peer) { p.play(step{4001, "01000000" + rollBack, ""}) },
		"disconnect": func(p *peer) { p.conn.Close() },
	} {
		s := withCache(t)
		p, other := connect(t, s), connect(t, s)
		p.play(step{4000, pessimisticCommitted + noTimeout + null, "01000000"},
			step{1004, inTx + "02000000" + keyA + one + keyB + one, ""})
		other.play(step{4000, pessimisticRepeatable + noTimeout + label, "01000000"})
		other.send(1003, unhex(t, inTx+"03000000 08 00"+keyA+keyB)) // request 2
		other.send(1000, unhex(t, prefix+keyA))
		require.Equal(t, map[uint64]string{3: string(unhex(t, null))}, other.answers(1), how)
		other.play(step{1001, inTx + keyA + two, "1 An earlier request of the transaction waits for a lock [id=1, label=L]"})
		end(p)
		want := "00000000"
		if how == "commit" {
			want = "02000000" + keyA + one + keyB + one
		}
		require.Equal(t, map[uint64]string{2: string(unhex(t, want))}, other.answers(1), how)
		other.play(step{1001, inTx + keyA + two, ""}, step{4001, "01000000" + commitIt, ""}, step{1000, prefix + keyA, two})
	}
}

func TestTransactionsEndWhileTheyWait(t *testing.T) {
	s := withCache(t)
	p, other := connect(t, s), connect(t, s)
	p.play(step{4000, pessimisticCommitted + noTimeout + null, "01000000"}, step{1001, inTx + keyA + one, ""})
	other.play(step{4000, pessimisticCommitted + noTimeout + label, "01000000"})
	other.send(1001, unhex(t, inTx+keyA+two))
	other.send(4001, unhex(t, "01000000"+rollBack))
	require.Equal(t, map[uint64]string{3: "",
		2: "The transaction has ended while a request waited for a lock [id=1, label=L]"}, other.answers(2))
	other.play(step{4000, pessimisticCommitted + noTimeout + label, "02000000"})
	other.send(1001, unhex(t, executions+"02 02000000"+keyA+two))
	other.conn.Close()
	p.play(step{4001, "01000000" + commitIt, ""}, step{1000, prefix + keyA, one},
		step{4000, pessimisticCommitted + noTimeout + null, "02000000"},
		step{1001, executions + "02 02000000" + keyA + two, ""}, step{4001, "02000000" + commitIt, ""})
}

// Transactions that wait for each other end by their timeouts.
func TestTransactionsTimeOut(t *testing.T) {
	s := withCache(t)
	p, other := connect(t, s), connect(t, s)
	const timedOut = "Cache transaction timed out, and was rolled back [id=1, label=L]"
	p.play(step{4000, pessimisticCommitted + noTimeout + null, "01000000"}, step{1001, inTx + keyA + one, ""})
	other.play(step{4000, pessimisticCommitted + "0a00000000000000" + label, "01000000"})
	other.send(1004, unhex(t, inTx+"02000000"+keyB+one+keyA+one))
	require.Equal(t, map[uint64]string{2: timedOut}, other.answers(1))
	other.play(step{1000, inTx + keyA, "1 " + timedOut}, step{4001, "01000000" + commitIt, "1 " + timedOut},
		step{4001, "01000000" + commitIt, "1021 Transaction with id 1 not found"})
	p.play(step{1001, inTx + keyB + two, ""}, step{4001, "01000000" + commitIt, ""}, step{1000, prefix + keyB, two})
}

func TestLimitsOfTransactions(t *testing.T) {
	s := withCache(t)
	p := connect(t, s)
	for range 128 {
		_, refused := p.ask(4000, unhex(t, pessimisticCommitted+noTimeout+label))
		require.Empty(t, refused)
	}
	p.play(step{4000, pessimisticCommitted + noTimeout + null, "1020 Too many open transactions: 128"})
	info := func() string { return s.MustDo(t, "INFO", "door_perper_ignite").String() }
	require.Contains(t, info(), "transactions_open:128")

	value := objects.AppendString(nil, strings.Repeat("x", 8<<20))
	const large = "1 The transactions of the connection are too large [id=1, label=L]"
	refused := ""
	for i := 0; refused == "" && i < 10; i++ {
		_, refused = p.ask(1001, append(unhex(t, inTx+"08 01"), value...)) // the same key: it counts once
	}
	require.Empty(t, refused)
	for i := 0; refused == "" && i < 10; i++ {
		_, refused = p.ask(1001, append(append(unhex(t, inTx), long(int64(i))...), value...))
	}
	require.Equal(t, large, refused)
	p.play(step{4001, "01000000" + commitIt, large}, step{4001, "02000000" + commitIt, ""})
	require.Contains(t, info(), "transactions_open:126")
	p.conn.Close()
	require.Eventually(t, func() bool { return strings.Contains(info(), "transactions_open:0") }, deadline, time.Millisecond)
}

func TestTransactionsInAClusterThatIsNotActive(t *testing.T) {
	s := withCache(t)
	p := connect(t, s)
	const readOnly = "1 Failed to perform cache operation (cluster is in read-only mode)"
	p.play(step{4000, pessimisticCommitted + noTimeout + null, "01000000"}, step{1001, inTx + keyA + one, ""},
		step{5001, "02", ""}, step{4001, "01000000" + commitIt, readOnly},
		step{4000, optimisticSerializable + noTimeout + null, "02000000"}, step{1000, executions + "02 02000000" + keyA, null},
		step{1001, executions + "02 02000000" + keyA + one, readOnly}, step{4001, "02000000" + commitIt, ""},
		step{5001, "00", ""}, step{4000, pessimisticCommitted + noTimeout + null,
			"1 Can not perform the operation because the cluster is inactive"})
}
