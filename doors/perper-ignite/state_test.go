package perperignite_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStateOfTheCluster(t *testing.T) {
	s := opened(t)
	p, other := connect(t, s), connect(t, s)
	p.play(
		step{1052, "09 0a000000 657865637574696f6e73", ""},
		step{5000, "", "01"},
		step{5001, "02", ""},
		step{5000, "", "02"},
	)
	const readOnly = "1 Failed to perform cache operation (cluster is in read-only mode)"
	other.play(
		step{1000, prefix + keyA, null},
		step{1001, prefix + keyA + one, readOnly},
		step{1051, "09 01000000 63", readOnly},
		step{5001, "00", ""},
	)
	const inactive = "1 Can not perform the operation because the cluster is inactive"
	p.play(
		step{5000, "", "00"},
		step{1000, prefix + keyA, inactive},
		step{1050, "", inactive},
		step{3002, "05000000", "00"},
		step{5001, "03", "1 Unknown state of the cluster: 3"},
		step{5001, "", "1 malformed object"},
	)
	require.Equal(t, `"INACTIVE"`, s.MustDo(t, "PERPER.STATE").String())
	require.Equal(t, `"ACTIVE"`, s.MustDo(t, "PERPER.STATE", "active").String())
	p.play(step{5000, "", "01"}, step{1001, prefix + keyA + one, ""})
}

// mapping is the reply that a server with an id has all partitions of a group of caches.
func mapping(node, caches string) string {
	var b strings.Builder
	b.WriteString("01" + caches + "01000000 0a" + node + "00040000")
	for i := range 1024 {
		b.WriteString(hex.EncodeToString([]byte{byte(i), byte(i >> 8), 0, 0}))
	}
	return b.String()
}

func TestPartitionsOfCaches(t *testing.T) {
	s := opened(t)
	p := dial(t, s)
	p.write(unhex(t, "0e000000 01 0100 0700 0000 02 0c 01000000 04"))
	node := hex.EncodeToString(p.message()[8:])
	const a, b, c = "09 01000000 61", "09 01000000 62", "09 01000000 63"
	const version = "0300000000000000 00000000"
	p.play(
		step{1052, a, ""},
		step{1053, "00000000 0200 0000" + b + "0100 01000000", ""},                    // replicated
		step{1053, "00000000 0200 0000" + c + "9101 01000000 09 01000000 54" + a, ""}, // the field a of type T
		step{1101, "01000000 61000000", version + "01000000" + mapping(node, "01000000 61000000 00000000")},
		step{1101, "04000000 61000000 62000000 63000000 64000000", version + "02000000" +
			mapping(node, "02000000 61000000 00000000 63000000 01000000 74000000 61000000") +
			"00 02000000 62000000 64000000"},
		step{1101, "00000000", version + "00000000"},
		step{1101, "01000000", "1 malformed object"},
	)
	_, refused := p.ask(1101, append(unhex(t, "01000100"), make([]byte, 4*(1<<16+1))...))
	require.Equal(t, "1 Too many caches in a request: 65537", refused)
}

func TestSizesCountTheCopiesThatExist(t *testing.T) {
	p := connect(t, opened(t))
	const c = "09 01000000 63"
	p.play(
		step{1053, "00000000 0200 0000" + c + "0300 02000000", ""},
		step{1001, "63000000 00" + keyA + one, ""},
		step{1020, "63000000 00 01000000 00", "0100000000000000"},
		step{1020, "63000000 00 01000000 03", "0000000000000000"},
	)
}
