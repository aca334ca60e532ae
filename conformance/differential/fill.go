// What the generator puts in place of a placeholder: mostly ordinary words from small pools, so that
// commands meet each other's keys, and some from the edges.

package differential

import (
	"fmt"
	"strconv"
	"strings"
)

// keyPools holds few keys per group, so that commands meet.
var keyPools = map[string][]string{
	"string":     {"str1", "str2", "str3", "str4"},
	"hash":       {"hash1", "hash2", "hash3"},
	"list":       {"list1", "list2", "list3"},
	"set":        {"set1", "set2", "set3", "set4"},
	"sorted_set": {"zset1", "zset2", "zset3", "zset4"},
	"stream":     {"stream1", "stream2", "stream3"},
}

// keyGroups fixes the order of keyPools.
var keyGroups = []string{"string", "hash", "list", "set", "sorted_set", "stream"}

// lexKeys are the sorted sets whose members all have the same score. Ranges by name are only defined there,
// so no other command writes to these keys.
var lexKeys = []string{"lex1", "lex2"}

// edgeInts are integers at which something changes.
var edgeInts = []string{"9223372036854775807", "-9223372036854775808", "9223372036854775806", "4294967296", "2147483647", "-2147483648", "65535", "32768", "-129"}

// fill makes the word for a placeholder. Anything that is not one stands for itself.
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
		return g.pick("1", "-1", "0.5", "3.25", "-2.75", "1e3", "1e-5", "0.1", "1e15", "123456.789", "0", "5.0e3", "1e300", "nan", "inf", "-inf", "1e4932")
	case "score":
		if g.chance(60) {
			return strconv.Itoa(g.rnd.IntN(20) - 5)
		}
		return g.pick("1.5", "-2.25", "0.1", "inf", "-inf", "+inf", "1e300", "-0", "1e-10", "3.0", "123456789012345", "0.30000000000000004", "nan")
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
		return g.pick("0", "0-0", "1", strconv.Itoa(1+g.rnd.IntN(g.lastID+2)), fmt.Sprintf("%d-%d", 1+g.rnd.IntN(g.lastID+2), g.rnd.IntN(3)))
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
	case "channel":
		return g.pick("ch1", "ch2", "ch3")
	case "scancursor":
		return g.pick("0", "0", "abc", "5")
	}
	return placeholder
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

// value is short most of the time; it may be binary, empty, a number, or as long as the limits at which
// Redis changes an encoding.
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
