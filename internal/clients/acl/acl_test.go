package acl

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// fakeTable is a small command table.
type fakeTable []Command

func (t fakeTable) All() []Command { return t }

func (t fakeTable) Command(name string) (Command, bool) {
	for _, cmd := range t {
		if cmd.Name == lower(name) {
			return cmd, true
		}
		for _, sub := range cmd.Subs {
			if sub.Name == lower(name) {
				return sub, true
			}
		}
	}
	return Command{}, false
}

func (t fakeTable) Categories() []string { return []string{"read", "write", "admin", "slow"} }

const (
	read = 1 << iota
	write
	admin
	slow
)

func testRules() Rules {
	sub := func(index int, name string, categories uint32) Command {
		return Command{Index: index, Name: "config|" + name, Categories: categories, Sub: true}
	}
	return Rules{Commands: fakeTable{
		{Index: 0, Name: "config", Categories: slow,
			Subs: []Command{sub(1, "get", read|admin|slow), sub(2, "help", slow), sub(3, "set", admin|slow)}},
		{Index: 4, Name: "del", Categories: write},
		{Index: 5, Name: "get", Categories: read},
		{Index: 6, Name: "keys", Categories: read | slow},
		{Index: 7, Name: "mget", Categories: read},
		{Index: 8, Name: "publish"},
		{Index: 9, Name: "select"},
		{Index: 10, Name: "set", Categories: write},
		{Index: 200, Name: "custom"},
	}}
}

func (r Rules) must(t require.TestingT, rules ...string) *User {
	merged, unmatched := Merge(rules)
	require.Negative(t, unmatched)
	u, err := r.Apply(r.New("u"), merged...)
	require.NoError(t, err)
	return u
}

// allowed are the names of the commands that the user may execute with no argument.
func (r Rules) allowed(u *User) (names []string) {
	for _, top := range r.Commands.All() {
		for _, cmd := range append([]Command{top}, top.Subs...) {
			if u.Check(&Call{Command: cmd.Index, Args: [][]byte{[]byte(cmd.Name)}}).Reason == Allowed {
				names = append(names, cmd.Name)
			}
		}
	}
	return names
}

func TestRulesForCommandsApplyInOrder(t *testing.T) {
	r := testRules()
	for rules, want := range map[string]string{
		"":                              "",
		"+get":                          "get",
		"+get -get":                     "",
		"+@read":                        "config|get get keys mget",
		"+@read -mget":                  "config|get get keys",
		"+@all -@slow":                  "del get mget publish select set custom",
		"+@slow":                        "config config|get config|help config|set keys",
		"+config -config|set":           "config config|get config|help",
		"+CONFIG|Set":                   "config|set",
		"-@all +@all -@admin -@write":   "config config|help get keys mget publish select custom",
		"allcommands nocommands +keys":  "keys",
		"+@read -@all +@admin -@read":   "config|set",
		"+select|0 +get":                "get",
		"(+get) +del":                   "del get",
		"(+get) (+set) clearselectors":  "",
		"+@read reset +set":             "set",
		"(+@all) (+get) clearselectors": "",
	} {
		require.Equal(t, want, strings.Join(r.allowed(r.must(t, strings.Fields(rules)...)), " "), rules)
	}
}

func TestACommandThatIsAddedLaterIsAllowedToThoseWhoMayDoAll(t *testing.T) {
	r := testRules()
	later := &Call{Command: 1000, Args: [][]byte{[]byte("later")}}
	for rules, want := range map[string]Reason{"+@all": Allowed, "+@all -get": Allowed, "+@read +@write": DeniedCommand,
		"+@all -@all +get": DeniedCommand} {
		require.Equal(t, want, r.must(t, strings.Fields(rules)...).Check(later).Reason, rules)
	}
}

func TestSelectorsAreTriedOneByOne(t *testing.T) {
	r := testRules()
	u := r.must(t, "+get", "~a", "(%R~b +mget)", "(%W~b +set &c)")
	key := func(name string, access Access, at int) Key { return Key{[]byte(name), access, at} }
	for _, test := range []struct {
		command int
		keys    []Key
		channel string
		want    Reason
		object  string
	}{
		{5, []Key{key("a", Read, 1)}, "", Allowed, ""},
		{5, []Key{key("b", Read, 1)}, "", DeniedKey, "b"},
		{7, []Key{key("b", Read, 1)}, "", Allowed, ""},
		{7, []Key{key("b", Read|Write, 1)}, "", DeniedKey, "b"},
		{7, []Key{key("b", Read, 1), key("a", Read, 2)}, "", DeniedKey, "a"},
		{10, []Key{key("b", Write, 1)}, "c", Allowed, ""},
		{10, []Key{key("b", Write, 1)}, "d", DeniedChannel, "d"},
		{4, []Key{key("b", Write, 1)}, "", DeniedCommand, ""},
	} {
		c := &Call{Command: test.command, Keys: test.keys}
		if test.channel != "" {
			c.Channels = [][]byte{[]byte(test.channel)}
		}
		v := u.Check(c)
		require.Equal(t, test.want, v.Reason, test)
		require.Equal(t, test.object, string(v.Object), test)
	}
}

func TestReadingUnknownKeysTakesASelectorThatAllowsTheCommandToo(t *testing.T) {
	r := testRules()
	c := &Call{Command: 5, Keys: []Key{{[]byte("k"), Read, 1}}, Unknown: Read}
	for rules, want := range map[string]bool{
		"+get ~*":           true,
		"+get %R~*":         true,
		"+get %W~* ~k":      false,
		"+get ~k":           false,
		"+get ~k (~*)":      false,
		"~k (+get allkeys)": true,
		"+@all ~* &*":       true,
	} {
		require.Equal(t, want, r.must(t, strings.Fields(rules)...).Check(c).Reason == Allowed, rules)
	}
}

func TestOnlyWhoMayDoEverythingIsUnrestricted(t *testing.T) {
	r := testRules()
	require.True(t, r.Default().Unrestricted())
	for rules, want := range map[string]bool{
		"+@all ~* &*":           true,
		"+@all ~* &* -get":      false,
		"+@all ~* &* -get +get": true,
		"+@all ~*":              false,
		"+@all &*":              false,
		"~* &*":                 false,
		"-@all (+@all ~* &*)":   true,
		"+@all (~* &*)":         false,
	} {
		require.Equal(t, want, r.must(t, strings.Fields(rules)...).Unrestricted(), rules)
	}
}

func TestPasswords(t *testing.T) {
	r := testRules()
	admits := func(u *User, password string) bool { return u.Admits(sha256.Sum256([]byte(password))) }
	u := r.must(t, "on", ">a", ">b")
	require.True(t, admits(u, "a"))
	require.True(t, admits(u, "b"))
	require.False(t, admits(u, "c"))
	require.False(t, admits(u, ""))
	u, err := r.Apply(u, "<a", "#"+r.must(t, ">c").Passwords()[0])
	require.NoError(t, err)
	require.False(t, admits(u, "a"))
	require.True(t, admits(u, "c"))
	for rule, want := range map[string]bool{"off": false, "nopass": true, "resetpass": false, "reset": false} {
		u, err := r.Apply(u, rule)
		require.NoError(t, err)
		require.Equal(t, want, admits(u, "c"), rule)
	}
}

func TestApplyLeavesTheOldUserAlone(t *testing.T) {
	r := testRules()
	u := r.must(t, "on", "+get", "+select|0", "~a", "&b", ">c", "(+set ~d)")
	before := r.Describe(u)
	_, err := r.Apply(u, "off", "-get", "+mget", "+select|1", "%W~a", "~e", "&f", ">g", "<c", "(+get)", "clearselectors")
	require.NoError(t, err)
	require.Equal(t, before, r.Describe(u))
}

func TestErrorsTellTheRule(t *testing.T) {
	r := testRules()
	_, err := r.Apply(r.New("u"), "+get", "(+nope)", "on")
	var e *RuleError
	require.ErrorAs(t, err, &e)
	require.Equal(t, "(+nope)", e.Rule)
	require.ErrorIs(t, err, errUnknown)
}

func TestMerge(t *testing.T) {
	for _, test := range []struct {
		in, out   string
		unmatched int
	}{
		{"a,b", "a,b", -1},
		{"(a,b),c", "(a b),c", -1},
		{"(a),(b", "(a)", 1},
		{"(a,(b,c)", "(b c)", -1},
		{"x,(,+a,)", "x,( +a )", -1},
		{")", ")", -1},
	} {
		rules, unmatched := Merge(strings.Split(test.in, ","))
		require.Equal(t, test.unmatched, unmatched, test.in)
		require.Equal(t, test.out, strings.Join(rules, ","), test.in)
	}
}

func TestDescriptionsKeepTheOrderOfTheRules(t *testing.T) {
	r := testRules()
	for rules, want := range map[string]string{
		"+get +mget +keys":                            "-@all +get +mget +keys",
		"+get -@write +@read -get":                    "-@all -@write +@read -get",
		"-@admin +@all":                               "+@all",
		"+@all -del +set -@Write +DEL":                "+@all +set -@write +del",
		"+@read +@all -get nocommands +keys":          "-@all +keys",
		"+config|get +config|set +config":             "-@all +config",
		"+config +config|get -config|set":             "-@all +config +config|get -config|set",
		"+@all -select +select|0 +select|1 +SELECT|0": "+@all -select +select|1 +select|0",
		"+@all +select|0 -select":                     "+@all -select",
		"+@all +keys -@admin -get":                    "+@all +keys -@admin -get",
	} {
		require.Equal(t, "off sanitize-payload resetchannels "+want, r.Describe(r.must(t, strings.Fields(rules)...)), rules)
	}
}

func TestFilesAreReadAsTheyAreWritten(t *testing.T) {
	r := testRules()
	users := []*User{r.must(t, "on", ">x", "~a", `("~b\"c)" +get)`), r.Default()}
	var file strings.Builder
	for _, u := range users {
		fmt.Fprintf(&file, "user %s %s\r\n\n", u.Name(), r.Describe(u))
	}
	got, roles, problems := r.ParseFile("f", []byte(file.String()))
	require.Empty(t, problems)
	require.Empty(t, roles)
	require.Len(t, got, 2)
	for i := range users {
		require.Equal(t, users[i].Name(), got[i].Name())
		require.Equal(t, r.Describe(users[i]), r.Describe(got[i]))
	}
	_, _, problems = r.ParseFile("f", []byte("user a on\nnope\nuser\nuser a off\nuser b +get (+set\nuser c nope +nope\nuser d\x01 on\nuser e\vf"))
	require.Equal(t, "f:2 should start with user keyword followed by the username. f:3 should start with user keyword followed by the username. "+
		"WARNING: Duplicate user 'a' found on line 4. f:5: Unmatched parenthesis in selector definition.f:6: Syntax error. "+
		"f:6: Error in applying operation '+nope': Unknown command or category name in ACL. 'f:8: username 'e\vf' contains invalid characters. ", problems)
}

func TestLogCountsWhatIsTheSame(t *testing.T) {
	var l Log
	add := func(reason Reason, object string, at int64) {
		l.Add(Entry{Reason: reason, Context: "toplevel", Object: object, User: "u", Time: at, Client: fmt.Sprint(at)}, 12)
	}
	show := func() (out string) {
		for _, e := range l.Newest(100) {
			out += fmt.Sprintf("%d %v %s %d %d-%d %s,", e.ID, e.Reason, e.Object, e.Count, e.Created, e.Time, e.Client)
		}
		return out
	}
	add(DeniedKey, "a", 1)
	add(DeniedCommand, "a", 2)
	add(DeniedKey, "a", 60_001)
	require.Equal(t, "0 key a 2 1-60001 60001,1 command a 1 2-2 2,", show())
	add(DeniedKey, "a", 120_002) // too late
	require.Equal(t, "2 key a 1 120002-120002 120002,0 key a 2 1-60001 60001,1 command a 1 2-2 2,", show())
	for i := range 9 {
		add(DeniedKey, fmt.Sprint(i), 120_003)
	}
	require.Len(t, l.Newest(100), 12)
	add(DeniedKey, "a", 120_004) // ten entries back
	require.Equal(t, int64(2), l.Newest(1)[0].Count)
	require.Len(t, l.Newest(100), 12)
	add(DeniedKey, "new", 120_005)
	require.Len(t, l.Newest(100), 12)
	require.NotContains(t, show(), "command a")
	l.Add(Entry{}, 0)
	require.Empty(t, l.Newest(100))
	l.Reset()
	add(DeniedKey, "a", 120_006)
	require.Contains(t, show(), "14 key a 1 ", "numbers go on")
}

// checkRoundTrip checks that the description of a user makes the same user again, from a file and from arguments.
func checkRoundTrip(t require.TestingT, r Rules, u *User) {
	text := r.Describe(u)
	rules, unmatched := Merge(strings.Split(text, " "))
	require.Negative(t, unmatched, text)
	again, err := r.Apply(r.New("u"), rules...)
	require.NoError(t, err, text)
	require.Equal(t, text, r.Describe(again))
	require.Equal(t, r.allowed(u), r.allowed(again), text)
	require.Equal(t, u.Unrestricted(), again.Unrestricted(), text)
	file := "user u " + text
	for name, role := range r.Roles {
		file += "\nrole " + name + " " + r.Describe(role)
	}
	fromFile, _, problems := r.ParseFile("f", []byte(file))
	require.Empty(t, problems, text)
	require.Equal(t, text, r.Describe(fromFile[0]))
}

// ruleWords are what random rules are made of.
var ruleWords = []string{"on", "off", "nopass", "resetpass", "reset", "allkeys", "resetkeys", "allchannels",
	"resetchannels", "allcommands", "nocommands",
	"clearselectors", "sanitize-payload", "skip-sanitize-payload", "+@all", "-@all", "+@read", "-@read", "+@write",
	"-@write", "+@admin", "-@admin",
	"+@slow", "-@slow", "+get", "-get", "+set", "-set", "+keys", "-keys", "+config", "-config", "+config|get",
	"-config|get", "+config|set", "-config|set",
	"+select|0", "+select|a", "+get|\"", "+select", "-select", "+custom", "-custom", "~*", "~a", "~b*", "%R~a", "%W~a",
	"%RW~*", "%R~*", "%W~*", "~", "&*", "&a",
	"&b*", "&", "role=a", "ROLE=b,a,b", "role=a,", "resetroles", ">p", "<p", ">q", "~)", "~a\"b", "~'", "&(", "~\\", "&x)", "%W~\"q\""}

// withRoles returns rules with the roles a and b.
func withRoles(t require.TestingT) Rules {
	r := testRules()
	for name, rules := range map[string][]string{"a": {"+get", "~a", "(+set ~b*)"}, "b": {"+@read", "-keys", "%R~x", "&a"}} {
		role, err := r.Apply(r.NewRole(name), rules...)
		require.NoError(t, err)
		if r.Roles == nil {
			r.Roles = map[string]*User{}
		}
		r.Roles[name] = role
	}
	return r
}

func TestADescriptionMakesTheSameUserAgain(t *testing.T) {
	r := withRoles(t)
	testseed.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom(ruleWords)
		u := r.New("u")
		for range rapid.IntRange(0, 20).Draw(t, "rules") {
			rule := word.Draw(t, "rule")
			if rapid.IntRange(0, 4).Draw(t, "selector") == 0 {
				var words []string
				for _, w := range rapid.SliceOfN(word, 0, 8).Draw(t, "words") {
					words = append(words, quoteInSelector(w))
				}
				rule = "(" + strings.Join(words, " ") + ")"
			}
			if next, err := r.Apply(u, rule); err == nil {
				u = next
			}
		}
		checkRoundTrip(t, r, u)
	})
}

// FuzzRules applies any rules: nothing may panic, and the description of what comes out makes the same user again.
func FuzzRules(f *testing.F) {
	for _, word := range ruleWords {
		f.Add(word)
	}
	f.Add("on nopass ~a (+get ~b) (%R~c +@read -get) &x +select|0")
	f.Add("(+get \"~a b\" '~c') #ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff")
	f.Add("#" + strings.Repeat("0", 66))
	r := withRoles(f)
	f.Fuzz(func(t *testing.T, text string) {
		rules, _ := Merge(strings.Split(text, " "))
		u := r.New("u")
		for _, rule := range rules {
			next, err := r.Apply(u, rule)
			if err == nil {
				u = next
				continue
			}
			var e *RuleError
			require.True(t, errors.As(err, &e))
		}
		checkRoundTrip(t, r, u)
		r.ParseFile("f", []byte(text))
	})
}
