// What the generator inserts for a placeholder: mostly ordinary words from small pools, so that commands share keys,
// and some extreme ones.

package differential

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/persist/rdb"
)

// keyPools holds few keys per group, so that commands share them.
var keyPools = map[string][]string{
	"string":     {"str1", "str2", "str3", "str4"},
	"hash":       {"hash1", "hash2", "hash3"},
	"list":       {"list1", "list2", "list3"},
	"set":        {"set1", "set2", "set3", "set4"},
	"sorted_set": {"zset1", "zset2", "zset3", "zset4"},
	"stream":     {"stream1", "stream2", "stream3"},

	"bitmap":      {"bit1", "bit2", "bit3", "str1"},
	"hyperloglog": {"hll1", "hll2", "hll3"},
	"geo":         {"geo1", "geo2", "geo3"},
}

// keyGroups fixes the order of keyPools.
var keyGroups = []string{"string", "hash", "list", "set", "sorted_set", "stream", "bitmap", "hyperloglog", "geo"}

// lexKeys are the sorted sets whose members all have the same score. Ranges by name are only defined there, so no other
// command writes to these keys.
var lexKeys = []string{"lex1", "lex2"}

// edgeInts are integers at which behaviour changes.
var edgeInts = []string{"9223372036854775807", "-9223372036854775808", "9223372036854775806", "4294967296",
	"2147483647", "-2147483648", "65535", "32768", "-129"}

// payloads are values for RESTORE, in several of their encodings, and some invalid ones.
var payloads = func() (out []string) {
	for _, body := range []string{"\x00\x05hello", "\x00\xc0\x2a", "\x00\xc3\x05\x0aa\xe0\x00\x00",
		"\x01\x03\x01a\x01b\x01c", "\x02\x03\x011\x012\x013", "\x02\x02\x01a\x01b",
		"\x03\x02\x01a\x031.5\x01b\xfe", "\x05\x01\x01a\x00\x00\x00\x00\x00\x00\x02@", "\x04\x02\x02f1\x01v\x02f2\xc0\x07",
		"\x09\x07\x01\x01f\x01\x00v\xff",
		"\x0b\x0c\x02\x00\x00\x00\x02\x00\x00\x00\xfb\xff\x07\x00",
		"\x0a\x12\x12\x00\x00\x00\x0d\x00\x00\x00\x02\x00\x00\x01a\x03\x02bc\xff",
		"\x10\x0d\x0d\x00\x00\x00\x02\x00\x81f\x02\x81v\x02\xff",
		"\x11\x11\x11\x00\x00\x00\x04\x00\x81a\x02\x01\x01\x81b\x02\x02\x01\xff",
		"\x13\x00\x00\x05\x01\x00\x00\x00\x00\x07\x01\x02g1\x05\x01\x03\x00\x01\x02c1\x10\x27\x00\x00\x00\x00\x00\x00\x00",
		"\x01\x00", "\x63\x01a", "\x02\x02\x01a\x01a", ""} {
		out = append(out, string(rdb.Seal([]byte(body))))
	}
	return append(out, "junk", "")
}()

// fill makes the word for a placeholder. Any other word stands for itself.
func (g *generator) fill(placeholder string) string {
	switch placeholder {
	case "key":
		return g.key(6)
	case "anykey":
		return g.key(100)
	case "zkey":
		if g.chance(25) {
			return g.pick(keyPools["set"]...)
		}
		return g.key(6)
	case "lexkey":
		return g.pick(lexKeys...)
	case "val":
		return g.value()
	case "field":
		if g.chance(3) {
			return g.value()
		}
		return "f" + strconv.Itoa(g.rnd.IntN(12))
	case "member":
		if g.chance(6) {
			return g.value()
		}
		return "m" + strconv.Itoa(g.rnd.IntN(20))
	case "int":
		if g.chance(8) {
			return g.pick(edgeInts...)
		}
		return strconv.Itoa(g.rnd.IntN(2000) - 1000)
	case "smallint":
		return strconv.Itoa(g.rnd.IntN(12) - 1)
	case "index":
		if g.chance(3) {
			return g.pick(edgeInts...)
		}
		return strconv.Itoa(g.rnd.IntN(24) - 12)
	case "count":
		return strconv.Itoa(g.rnd.IntN(15) - 5)
	case "float":
		return g.pick("1", "-1", "0.5", "3.25", "-2.75", "1e3", "1e-5", "0.1", "1e15", "123456.789", "0", "5.0e3", "1e300",
			"nan", "inf", "-inf", "1e4932")
	case "score":
		if g.chance(60) {
			return strconv.Itoa(g.rnd.IntN(20) - 5)
		}
		return g.pick("1.5", "-2.25", "0.1", "inf", "-inf", "+inf", "1e300", "-0", "1e-10", "3.0", "123456789012345",
			"0.30000000000000004", "nan")
	case "weight":
		return g.pick("1", "2", "-1", "0", "0.5", "inf", "-inf", "1e3")
	case "bound":
		return g.pick("-inf", "+inf", "inf", "0", "5", "10", "(0", "(5", "(10", "-3", "(1.5", "1e3", "(-inf", "(inf")
	case "lexbound":
		return g.pick("-", "+", "[m1", "(m1", "[m15", "(m15", "[m5", "(m9", "[", "(")
	case "sec":
		return g.pick("1000", "5000", "100000", "100000", "0", "-1", "9223372036854775807", "-9223372036854775808")
	case "ms":
		return g.pick("1000000", "5000000", "100000000", "0", "-1", "9223372036854775807")
	case "ts":
		return g.pick("4102444800", "4102444801", "5000000000", "4102444800", "1", "0", "-1", "9223372036854775807")
	case "mts":
		return g.pick("4102444800000", "4102444800001", "5000000000000", "4102444800123", "1", "0", "-1")
	case "db":
		return g.pick("0", "0", "0", "1", "1", "2", "0", "16", "-1")
	case "timeout":
		return g.pick("0.001", "0.001", "0.002", "-1", "abc")
	case "id":
		return g.pick("0", "0-0", "1", strconv.Itoa(1+g.rnd.IntN(g.lastID+2)),
			fmt.Sprintf("%d-%d", 1+g.rnd.IntN(g.lastID+2), g.rnd.IntN(3)))
	case "newid":
		if g.chance(80) {
			g.lastID++
		}
		switch g.rnd.IntN(12) {
		case 0:
			return strconv.Itoa(g.lastID) + "-*"
		case 1:
			return "0-0"
		case 2:
			return "1-1"
		}
		return fmt.Sprintf("%d-%d", g.lastID, g.rnd.IntN(3))
	case "idbound":
		if g.chance(50) {
			return g.pick("-", "+")
		}
		return g.pick("", "", "(") + g.fill("id")
	case "group":
		return g.pick("g1", "g1", "g2")
	case "consumer":
		return g.pick("alice", "bob", "carol")
	case "pattern":
		return g.pick("*", "*1", "[hlsz]*", "?et*", "m*", "f[0-5]", "str?", "", "[^s]*", "\\*", "ch*")
	case "type":
		return g.pick("string", "list", "hash", "set", "zset", "stream", "nosuch")
	case "payload":
		return g.pick(payloads...)
	case "channel":
		return g.pick("ch1", "ch2", "ch3")
	case "sortkey":
		return g.pick("sortlist", "sortlist", "sortset", "sortzset", "sortlist2")
	case "sortby":
		return g.pick("w_*", "w_*", "h_*->f1", "h_*->f2", "nosort", "#", "w_*->", "*")
	case "sortget":
		return g.pick("#", "w_*", "h_*->f1", "h_*->f2", "h_*->nosuch", "nosuch", "w_*->f1")
	case "weightkey":
		return "w_" + g.sortElement()
	case "weighthash":
		return "h_" + g.sortElement()
	case "bytes":
		return strings.Repeat(g.pick("\x00", "\xff"), 1+g.rnd.IntN(20))
	case "bitoffset":
		if g.chance(4) {
			return g.pick("-1", "4294967296", "9223372036854775807", "abc", "#1")
		}
		return strconv.Itoa(g.rnd.IntN(200))
	case "fieldtype":
		if g.chance(4) {
			return g.pick("i0", "u0", "i65", "u64", "x8", "i", "u", "i08", "")
		}
		return g.pick("i", "u") + strconv.Itoa(1+g.rnd.IntN(63))
	case "fieldoffset":
		if g.chance(25) {
			return "#" + strconv.Itoa(g.rnd.IntN(10)-1)
		}
		return g.fill("bitoffset")
	case "fieldvalue":
		return strconv.FormatInt(int64(g.rnd.Uint64())>>g.rnd.IntN(64), 10)
	case "element":
		if g.chance(10) {
			return g.value()
		}
		return "e" + strconv.Itoa(g.rnd.IntN(5000))
	case "place":
		return "p" + strconv.Itoa(g.rnd.IntN(40))
	case "lon":
		return g.coordinate(180)
	case "lat":
		return g.coordinate(85)
	case "radius":
		return g.pick("0", "1", "100", "2500.5", "40", "7", "300", "1000", "20000", "1e7", "3e4", "-1", "abc", "inf")
	case "unit":
		return g.pick("m", "km", "km", "KM", "ft", "mi", "mi", "km", "m", "furlong")
	case "distkey":
		return g.pick(distKeys...)
	case "scancursor":
		return g.pick("0", "0", "abc", "5")
	}
	return placeholder
}

// sortElement picks a possible element of the keys that are sorted.
func (g *generator) sortElement() string {
	if g.chance(70) {
		return strconv.Itoa(g.rnd.IntN(20))
	}
	return g.fill("member")
}

// coordinate picks a longitude or latitude: one near the others, so that searches find something, or any other, or the
// limit.
func (g *generator) coordinate(limit float64) string {
	switch roll := g.rnd.IntN(100); {
	case roll < 60:
		return strconv.FormatFloat(10+5*g.rnd.Float64(), 'f', 6, 64)
	case roll < 92:
		return strconv.FormatFloat((2*g.rnd.Float64()-1)*limit, 'f', 4, 64)
	}
	return g.pick("0", "180", "-180", "85.05112878", "-85.05112878", "85.06", "-66.5", "80.1", "181", "abc", "nan")
}

// key picks a key, with the given percentage from any group's pool.
func (g *generator) key(stray int) string {
	pool, ok := keyPools[g.group]
	if !ok || g.chance(stray) {
		pool = keyPools[keyGroups[g.rnd.IntN(len(keyGroups))]]
	}
	if g.chance(1) {
		return g.pick("", "\x00\xff\r\n", "k"+strings.Repeat("e", 200), "missing")
	}
	return g.pick(pool...)
}

// value is usually short; it may be binary, empty, a number, or as long as the limits at which Redis changes an
// encoding.
func (g *generator) value() string {
	switch roll := g.rnd.IntN(100); {
	case roll < 40:
		return "v" + strconv.Itoa(g.rnd.IntN(10))
	case roll < 65:
		return g.fill("int")
	case roll < 72:
		return g.fill("float")
	case roll < 76:
		return ""
	case roll < 84:
		return g.pick("\x00", "\xff\xfe", "a\r\nb", "\"q'", " 1", "01", "-0", "+5", "\x80\x81\x82")
	case roll < 95:
		return g.pick("hello", "world", "foo bar", "OK", "nil")
	}
	n := []int{44, 45, 63, 64, 65, 127, 128, 129, 511, 512, 513}[g.rnd.IntN(11)]
	return strings.Repeat(g.pick("x", "y"), n)
}
