// When two replies count as the same: if they are equal to the byte, except where the command leaves something open.

package differential

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// value is short for the replies that this package handles.
type value = transcript.Value

// comparison is the way in which the replies to one command are compared.
type comparison struct {
	same func(args []string, a, b value) bool
	// marker is the content of a transcript for such a reply before it is recorded.
	marker string
}

// comparisons has an entry for every command whose reply is not compared to the byte.
var comparisons = map[string]comparison{
	"SMEMBERS": {unordered, "unordered []"},
	"SUNION":   {unordered, "unordered []"},
	"SINTER":   {unordered, "unordered []"},
	"SDIFF":    {unordered, "unordered []"},
	"KEYS":     {unordered, "unordered []"},
	"HKEYS":    {unordered, "unordered []"},
	"HVALS":    {unordered, "unordered []"},
	"PUBSUB":   {unordered, "unordered []"},
	"HGETALL":  {pairs, "pairs []"},

	"TTL":         {near(2), ""},
	"PTTL":        {near(2000), ""},
	"EXPIRETIME":  {near(2), ""},
	"PEXPIRETIME": {near(2000), ""},

	"SRANDMEMBER": {sameShape, "*"},
	"HRANDFIELD":  {sameShape, "*"},
	"ZRANDMEMBER": {sameShape, "*"},
	"SPOP":        {sameShape, "*"},
	"RANDOMKEY":   {sameShape, "*"},
	"DUMP":        {sameShape, "*"}, // collections are encoded differently
	"HELLO":       {sameShape, "*"},

	"SCAN":  {scan(unordered), "*"},
	"SSCAN": {scan(unordered), "*"},
	"HSCAN": {scan(pairs), "*"},
	"ZSCAN": {scan(pairs), "*"},

	"SORT":    {sorted, "*"},
	"SORT_RO": {sorted, "*"},

	"XPENDING": {pending, ""},
	"XINFO":    {streamInfo, "*"},
}

// init breaks the cycle of a table whose entries look into the table.
func init() {
	comparisons["EVAL"] = comparison{scripted, ""}
	comparisons["EVAL_RO"] = comparison{scripted, ""}
}

// same reports whether two servers' replies to a command agree.
func same(args []string, a, b value) bool {
	if a.Equal(b) {
		return true
	}
	if len(args) == 0 {
		return false
	}
	c, ok := comparisons[strings.ToUpper(args[0])]
	return ok && c.same(args, a, b)
}

func compareValues(a, b value) int { return strings.Compare(a.String(), b.String()) }

// unordered compares the elements as a multiset.
func unordered(_ []string, a, b value) bool {
	if a.Kind != b.Kind || !a.IsAggregate() || !b.IsAggregate() {
		return false
	}
	x, y := slices.Clone(a.Elems), slices.Clone(b.Elems)
	slices.SortFunc(x, compareValues)
	slices.SortFunc(y, compareValues)
	return slices.EqualFunc(x, y, value.Equal)
}

// pairs compares a map, or a flat list of keys and values, as a multiset of pairs.
func pairs(_ []string, a, b value) bool {
	if a.Kind != b.Kind || !a.IsAggregate() || !b.IsAggregate() || len(a.Elems)%2 != 0 || len(b.Elems)%2 != 0 {
		return false
	}
	return unordered(nil, joinPairs(a), joinPairs(b))
}

func joinPairs(v value) value {
	joined := value{Kind: transcript.Array}
	for i := 0; i < len(v.Elems); i += 2 {
		joined.Elems = append(joined.Elems, value{Kind: transcript.Array, Elems: v.Elems[i : i+2]})
	}
	return joined
}

// near accepts positive numbers that differ by a little time.
func near(tolerance int64) func([]string, value, value) bool {
	return func(_ []string, a, b value) bool {
		x, err1 := strconv.ParseInt(a.Text, 10, 64)
		y, err2 := strconv.ParseInt(b.Text, 10, 64)
		return a.Kind == b.Kind && err1 == nil && err2 == nil && x >= 0 && y >= 0 && max(x-y, y-x) <= tolerance
	}
}

// sameShape accepts any content with the same types and sizes.
func sameShape(_ []string, a, b value) bool {
	if a.Kind != b.Kind || a.Null != b.Null || a.Kind == transcript.Error || len(a.Elems) != len(b.Elems) {
		return false
	}
	for i := range a.Elems {
		if !sameShape(nil, a.Elems[i], b.Elems[i]) {
			return false
		}
	}
	return true
}

// scan compares the elements of a complete pass: from cursor 0 with a COUNT of 10000, which the generator uses for
// that. Of any other pass only the form is defined.
func scan(elements func([]string, value, value) bool) func([]string, value, value) bool {
	return func(args []string, a, b value) bool {
		if len(a.Elems) != 2 || len(b.Elems) != 2 {
			return false
		}
		// The generator writes COUNT right after the cursor in a complete pass.
		count := slices.Index(args, "COUNT")
		if count > 0 && args[count-1] == "0" && count+1 < len(args) && args[count+1] == "10000" {
			return a.Elems[0].Equal(b.Elems[0]) && elements(nil, a.Elems[1], b.Elems[1])
		}
		return a.Elems[0].Kind == b.Elems[0].Kind && a.Elems[1].Kind == b.Elems[1].Kind
	}
}

// sorted compares the parts of a reply that SORT defines. It leaves open the order of a set that is not sorted, and
// that of elements with the same text to sort by.
func sorted(args []string, a, b value) bool {
	by := slices.Index(args, "BY") + 1
	switch {
	case by == 0 || by >= len(args) || slices.Contains(args, "STORE"):
		return false
	case strings.Contains(args[by], "*") && !slices.Contains(args, "ALPHA"):
		return false
	case slices.Contains(args, "LIMIT") || slices.Contains(args, "GET"):
		return a.Kind == b.Kind && len(a.Elems) == len(b.Elems)
	}
	return unordered(args, a, b)
}

// pending compares XPENDING. In its extended form the third column is an idle time.
func pending(_ []string, a, b value) bool {
	if a.Kind != b.Kind || len(a.Elems) != len(b.Elems) {
		return false
	}
	for i := range a.Elems {
		x, y := a.Elems[i], b.Elems[i]
		if len(x.Elems) != 4 || len(y.Elems) != 4 {
			if !x.Equal(y) {
				return false
			}
			continue
		}
		if !x.Elems[2].Equal(y.Elems[2]) && !near(2000)(nil, x.Elems[2], y.Elems[2]) {
			return false
		}
		if !x.Elems[0].Equal(y.Elems[0]) || !x.Elems[1].Equal(y.Elems[1]) || !x.Elems[3].Equal(y.Elems[3]) {
			return false
		}
	}
	return true
}

// streamInfo compares XINFO without the sizes of the radix tree, without the fields added in Redis 7.2 and later, and
// with times masked.
func streamInfo(_ []string, a, b value) bool { return maskInfo(a).Equal(maskInfo(b)) }

// firstTimestamp is well below the present in milliseconds and above every count.
const firstTimestamp = 1_000_000_000_000

// laterInfo are the fields of XINFO that were added after Redis 7.0.
var laterInfo = []string{"inactive", "active-time", "idmp-duration", "idmp-maxsize", "pids-tracked", "iids-tracked",
	"iids-added", "iids-duplicates", "nacked-count"}

func maskInfo(v value) value {
	if v.Kind == transcript.Integer {
		if n, err := strconv.ParseInt(v.Text, 10, 64); err == nil && n > firstTimestamp {
			v.Text = "time"
		}
	}
	for i := len(v.Elems) - 2; i > 0; i-- {
		if slices.Contains(laterInfo, v.Elems[i].Text) {
			v.Elems = slices.Delete(slices.Clone(v.Elems), i, i+2)
		}
	}
	masked := v
	masked.Elems = make([]value, len(v.Elems))
	for i, e := range v.Elems {
		masked.Elems[i] = maskInfo(e)
		if i == 0 {
			continue
		}
		switch v.Elems[i-1].Text {
		case "radix-tree-keys", "radix-tree-nodes", "idle":
			masked.Elems[i].Text = "masked"
		}
	}
	return masked
}

// firstArg is the index of the command in the arguments of an EVAL that runs one.
const firstArg = 4

// scripted compares a script that runs its arguments as a command by the rule for that command.
func scripted(args []string, a, b value) bool {
	if len(args) <= firstArg || !strings.Contains(args[1], "unpack(ARGV)") {
		return false
	}
	return same(args[firstArg:], a, b)
}

// chosenFrom checks a random choice against the full read before it: members only, distinct if the count is positive,
// and the right number of them. It ignores replies that are not lists, such as QUEUED.
func chosenFrom(full value, args []string, chosen value) bool {
	if !full.IsAggregate() || len(full.Elems) == 0 || len(args) != 3 || !chosen.IsAggregate() {
		return true
	}
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return true
	}
	left := map[string]int{}
	for _, e := range full.Elems {
		left[e.Text] = 1
	}
	for _, e := range chosen.Elems {
		n, ok := left[e.Text]
		if !ok || count > 0 && n == 0 {
			return false
		}
		left[e.Text] = 0
	}
	if count >= 0 {
		return len(chosen.Elems) == min(count, len(full.Elems))
	}
	return len(chosen.Elems) == -count
}

// known is a difference that has an explanation and is counted, but not reported.
type known struct {
	reason  string
	matches func(args []string, a, b value) bool
}

// knownDifferences is empty for Redis against Redis, and should stay as short as possible. docs/compatibility.md
// explains each.
var knownDifferences []known

// init breaks the cycle of a table whose entries look into the table.
func init() {
	knownDifferences = []known{
		{"doubles print in their shortest form, as since Redis 7.2; 7.0 prints 17 digits", shorterDoubles},
		{"ZRANK and ZREVRANK take WITHSCORE, as since Redis 7.2", withScore},
		{"timeouts that end at no time are out of range, as since Redis 7.2", noTimeout},
		{"BITCOUNT and BITPOS check their arguments although the key is missing, as since Redis 7.4", checkedWithoutKey},
		{"SCAN takes no negative cursor, as in Redis 8.2", negativeCursor},
		{"positions have all their digits, as in Redis 8.2; 7.0 prints 17 decimals", fullPositions},
		{"LREM and LPOS refuse the smallest integer, as since Redis 7.2", noOpposite},
		{"groups have other lags and more consumers, as since Redis 7.2 and 7.4", ofStreams},
		{"a read that wakes answers with all of its streams, as since Redis 7.2", allStreams},
		{"a read does not wake for a stream whose new entries have gone at once, as since Redis 7.2", nothingLeft},
		{"COMMAND GETKEYS takes commands without arguments, as since Redis 7.2", getKeysErrors},
		{"maxmemory-samples is at most 64, as since Redis 8.0", fewerSamples},
		{"the types and the query engine of Redis 8 are listed as modules", listedModules},
		{"SORT leaves a sorted set in its encoding; Redis makes it a skiplist", unsortedEncoding},
		{"small lists and sets are listpacks, as since Redis 7.2", smallCollections},
		{"OBJECT REFCOUNT counts what a transaction still holds in Redis, and integers that it shares, before 8.0", moreReferences},
		{"XSETID has a text of its own for IDs that are below a deleted entry, as since Redis 8.6", setIDText},
		{"members at the same distance come in another order in searches with COUNT", sameDistance},
		{"SORT fails for numbers behind one that is too large for a double, in Redis also in later commands", staleRange},
		{"stored distances differ in the last digit, as between C libraries, whose sines are rounded differently", lastDigit},
	}
}

// knownReason returns the reason for which a difference is known, "" if it is not.
func knownReason(args []string, a, b value) string {
	if len(args) > firstArg && strings.Contains(args[1], "unpack(ARGV)") {
		args = args[firstArg:] // the command that the script calls
	}
	for _, k := range knownDifferences {
		if k.matches(args, a, b) {
			return k.reason
		}
	}
	return ""
}

// fewerSamples accepts a lower limit of maxmemory-samples.
func fewerSamples(args []string, _, b value) bool {
	return containsWord(args, "maxmemory-samples") && b.Kind == transcript.Error &&
		strings.HasSuffix(b.Text, "argument must be between 1 and 64 inclusive")
}

// listedModules accepts modules in MODULE LIST and at the end of HELLO.
func listedModules(args []string, a, b value) bool {
	switch n := len(a.Elems); {
	case strings.EqualFold(args[0], "MODULE"):
		return len(args) == 2 && strings.EqualFold(args[1], "LIST") && n == 0 && b.IsAggregate()
	case strings.EqualFold(args[0], "HELLO"):
		return n > 0 && len(b.Elems) == n && sameShape(nil, value{Elems: a.Elems[:n-1]}, value{Elems: b.Elems[:n-1]})
	}
	return false
}

// fullPositions accepts coordinates with fewer digits.
func fullPositions(args []string, a, b value) bool {
	return strings.HasPrefix(strings.ToUpper(args[0]), "GEO") && nearly(shortest(a, false), shortest(b, false))
}

// nearly compares two replies; numbers may differ beyond 17 decimals.
func nearly(a, b value) bool {
	if a.Equal(b) {
		return true
	}
	if a.Kind != b.Kind || len(a.Elems) != len(b.Elems) {
		return false
	}
	for i := range a.Elems {
		if !nearly(a.Elems[i], b.Elems[i]) {
			return false
		}
	}
	x, errX := strconv.ParseFloat(a.Text, 64)
	y, errY := strconv.ParseFloat(b.Text, 64)
	return len(a.Elems) > 0 || errX == nil && errY == nil && math.Abs(x-y) <= 1e-16
}

// noTimeout accepts an error for a timeout that would never end.
func noTimeout(_ []string, _, b value) bool {
	return b.Kind == transcript.Error && b.Text == "ERR timeout is out of range"
}

// checkedWithoutKey accepts that the arguments of BITCOUNT and BITPOS are checked even if the key is missing.
func checkedWithoutKey(args []string, a, b value) bool {
	name := strings.ToUpper(args[0])
	return (name == "BITCOUNT" || name == "BITPOS") && a.Kind == transcript.Integer && b.Kind == transcript.Error
}

// negativeCursor accepts that a cursor does not count back from the end.
func negativeCursor(args []string, _, b value) bool {
	return strings.HasSuffix(strings.ToUpper(args[0]), "SCAN") && b.Kind == transcript.Error &&
		b.Text == "ERR invalid cursor" && slices.ContainsFunc(args, func(w string) bool { return strings.HasPrefix(w, "-") })
}

// noOpposite accepts an error for the smallest integer in LREM and LPOS.
func noOpposite(args []string, _, b value) bool {
	name := strings.ToUpper(args[0])
	return (name == "LREM" || name == "LPOS") && containsWord(args, "-9223372036854775808") && b.Kind == transcript.Error
}

// ofStreams accepts the replies of later releases about groups and consumers: consumers that got nothing, other lags,
// and errors that name the command.
func ofStreams(args []string, a, b value) bool {
	switch strings.ToUpper(args[0]) {
	case "XREAD", "XREADGROUP":
		return a.Kind == transcript.Error && b.Kind == transcript.Error && strings.HasPrefix(b.Text, "ERR Unbalanced ")
	case "XGROUP":
		return len(args) > 1 && strings.HasSuffix(strings.ToUpper(args[1]), "CONSUMER") && a.Kind == transcript.Integer &&
			b.Kind == transcript.Integer
	case "XINFO":
		return same(args, withoutIdlers(a), withoutIdlers(b))
	}
	return false
}

// allStreams accepts an XREAD that returns more streams than the one that woke it, which it may be given first or
// later.
func allStreams(args []string, a, b value) bool {
	return strings.ToUpper(args[0]) == "XREAD" && len(a.Elems) == 1 && len(b.Elems) > 1 &&
		slices.ContainsFunc(b.Elems, a.Elems[0].Equal)
}

// nothingLeft accepts an XREAD that continued to wait where Redis returned a stream without entries.
func nothingLeft(args []string, a, _ value) bool {
	return strings.ToUpper(args[0]) == "XREAD" && len(a.Elems) == 1 && len(a.Elems[0].Elems) == 2 &&
		len(a.Elems[0].Elems[1].Elems) == 0
}

// withoutIdlers removes from a reply to XINFO everything that differs between releases: lags, the numbers from which
// they follow, consumers without pending entries, and the number of consumers.
func withoutIdlers(v value) value {
	var elems []value
	for i := 0; i < len(v.Elems); i++ {
		e := v.Elems[i]
		switch paired := i+1 < len(v.Elems); {
		case paired && (e.Text == "lag" || e.Text == "entries-read" || e.Text == "consumers" &&
			v.Elems[i+1].Kind == transcript.Integer):
			i++
		case !idles(e):
			elems = append(elems, withoutIdlers(e))
		}
	}
	v.Elems = elems
	return v
}

// idles reports whether v describes a consumer without pending entries. A group has such numbers too, but it also has
// consumers.
func idles(v value) bool {
	idle := false
	for i := 0; i+1 < len(v.Elems); i += 2 {
		switch field, n := v.Elems[i].Text, v.Elems[i+1]; {
		case field == "consumers":
			return false
		case n.Kind == transcript.Integer && (field == "pending" || field == "pel-count"):
			idle = n.Text == "0"
		}
	}
	return idle
}

// shorterDoubles accepts doubles that are written with different digits but are the same number.
func shorterDoubles(args []string, a, b value) bool {
	// ZSCAN of a small sorted set prints Redis's stored form, in which a double without a fraction is an integer of any
	// length.
	integers := strings.EqualFold(args[0], "ZSCAN")
	x, y := shortest(a, integers), shortest(b, integers)
	return x.Equal(y) || same(args, x, y)
}

// shortest rewrites every text that is a double with a fraction or an exponent, and integers too if integers is set.
func shortest(v value, integers bool) value {
	if (v.Kind == transcript.Bulk || v.Kind == transcript.Double) &&
		(integers || strings.ContainsAny(v.Text, ".e") || len(v.Text) > 17) {
		if f, err := strconv.ParseFloat(v.Text, 64); err == nil {
			v.Text = strconv.FormatFloat(f, 'g', -1, 64)
		}
	}
	elems := make([]value, len(v.Elems))
	for i, e := range v.Elems {
		elems[i] = shortest(e, integers)
	}
	v.Elems = elems
	return v
}

// getKeysErrors accepts a different error about the command whose keys are requested.
func getKeysErrors(args []string, a, b value) bool {
	return strings.EqualFold(args[0], "COMMAND") && a.Kind == transcript.Error && b.Kind == transcript.Error
}

// unsortedEncoding accepts that a sorted set is still a listpack after SORT.
func unsortedEncoding(args []string, a, b value) bool {
	return len(args) == 3 && strings.EqualFold(args[0], "OBJECT") && strings.EqualFold(args[1], "ENCODING") &&
		a.Text == "skiplist" && b.Text == "listpack"
}

// smallCollections accepts another name for the encoding of a list or a set.
func smallCollections(args []string, a, b value) bool {
	return len(args) == 3 && strings.EqualFold(args[0], "OBJECT") && strings.EqualFold(args[1], "ENCODING") &&
		(a.Text == "quicklist" || a.Text == "hashtable") && b.Text == "listpack"
}

// moreReferences accepts a higher reference count in Redis, of a transaction or of a shared integer.
func moreReferences(args []string, a, b value) bool {
	return len(args) == 3 && strings.EqualFold(args[0], "OBJECT") && strings.EqualFold(args[1], "REFCOUNT") &&
		(a.Text == "2" || a.Text == "2147483647") && b.Text == "1"
}

// setIDText accepts another error for an ID below the largest deleted one.
func setIDText(args []string, a, b value) bool {
	return strings.EqualFold(args[0], "XSETID") && a.Kind == transcript.Error && b.Kind == transcript.Error
}

// staleRange accepts that only Redis finds no numbers, after a number that no double can hold.
func staleRange(args []string, a, b value) bool {
	return strings.HasPrefix(strings.ToUpper(args[0]), "SORT") && b.Kind != transcript.Error &&
		a.Kind == transcript.Error && a.Text == "ERR One or more scores can't be converted into double"
}

// sameDistance accepts another order of the results of a search with COUNT, if distances are shown: that of places at
// the same distance.
func sameDistance(args []string, a, b value) bool {
	if !strings.HasPrefix(strings.ToUpper(args[0]), "GEO") || !containsWord(args, "COUNT") || !unordered(args, a, b) {
		return false
	}
	return !containsWord(args, "WITHDIST") || slices.EqualFunc(a.Elems, b.Elems, func(x, y value) bool {
		return len(x.Elems) > 1 && len(y.Elems) > 1 && x.Elems[1].Equal(y.Elems[1])
	})
}

func containsWord(args []string, word string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return strings.EqualFold(a, word) })
}

// distKeys are the sorted sets in which distances are stored.
var distKeys = []string{"dist1", "dist2"}

// lastDigit accepts stored distances that agree in 14 digits.
func lastDigit(args []string, a, b value) bool {
	return len(args) > 1 && slices.Contains(distKeys, args[1]) && roundDistances(a).Equal(roundDistances(b))
}

func roundDistances(v value) value {
	if f, err := strconv.ParseFloat(v.Text, 64); err == nil {
		v.Text = strconv.FormatFloat(f, 'g', 14, 64)
	}
	elems := make([]value, len(v.Elems))
	for i, e := range v.Elems {
		elems[i] = roundDistances(e)
	}
	v.Elems = elems
	return v
}

func withScore(args []string, a, _ value) bool {
	return len(args) == 4 && (strings.EqualFold(args[0], "ZRANK") || strings.EqualFold(args[0], "ZREVRANK")) &&
		a.Kind == transcript.Error && strings.Contains(a.Text, "wrong number of arguments")
}
