package server

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/stats"
)

func init() { command.Register([]*command.Command{hotkeysCommand}) }

// hotkeysCommand measures which keys cost the most.
var hotkeysCommand = &command.Command{Name: "hotkeys", Group: "server", Since: "8.6.0", Arity: -2,
	Summary: "Groups the commands about the use of keys", Complexity: "That of the sub-command",
	Subs: []*command.Command{
		{Name: "hotkeys|get", Group: "server", Since: "8.6.0", Arity: 2, Flags: command.Admin | command.NoScript,
			Summary: "Returns the keys that cost most", Complexity: "O(K), where K is the number of keys", Do: hotkeysGet},
		{Name: "hotkeys|help", Group: "server", Since: "8.6.1", Arity: 2, Flags: command.Loading | command.Stale,
			Summary: "Lists the subcommands", Complexity: "O(1)", Do: hotkeysHelp},
		{Name: "hotkeys|reset", Group: "server", Since: "8.6.0", Arity: 2, Flags: command.Admin | command.NoScript,
			Summary: "Forgets what was measured", Complexity: "O(1)", Do: hotkeysReset},
		{Name: "hotkeys|start", Group: "server", Since: "8.6.0", Arity: -2, Flags: command.Admin | command.NoScript,
			Summary: "Begins to measure which keys cost most",
			Syntax: "<METRICS count [CPU] [NET]> [COUNT k] [DURATION seconds] [SAMPLE ratio] " +
				"[SLOTS count slot [slot ...]]",
			Complexity: "O(1)", Do: hotkeysStart},
		{Name: "hotkeys|stop", Group: "server", Since: "8.6.0", Arity: 2, Flags: command.Admin | command.NoScript,
			Summary: "Ends the measurement and keeps its results", Complexity: "O(1)", Do: hotkeysStop},
	}}

// HotKeys is the running or the last measurement of the use of keys.
type HotKeys struct {
	mu  sync.Mutex // protects the fields below
	now *stats.HotKeys
	// system and user are the processor time in seconds when the measurement began.
	system, user float64
}

const (
	errHotRunning  command.Error = "ERR hotkey tracking session already in progress"
	errHotReset    command.Error = "ERR hotkey tracking session in progress, stop tracking first"
	errHotMetrics  command.Error = "ERR METRICS parameter is required"
	errHotCount    command.Error = "ERR METRICS count must be > 0 and <= 2"
	errHotNumber   command.Error = "ERR METRICS count does not match number of metric types provided"
	errHotNone     command.Error = "ERR METRICS no valid metrics passed. Supported: CPU|NET"
	errHotTwiceCPU command.Error = "ERR METRICS CPU defined more than once!"
	errHotTwiceNet command.Error = "ERR METRICS NET defined more than once!"
	errHotK        command.Error = "ERR COUNT must be between 1 and 64"
	errHotDuration command.Error = "ERR DURATION must be between 1 and 1000000"
	errHotSample   command.Error = "ERR SAMPLE ratio must be positive"
	errHotNoSlots  command.Error = "ERR SLOTS parameter cannot be used in non-cluster mode"
	errHotAgain    command.Error = "ERR SLOTS parameter already specified"
	errHotSlots    command.Error = "ERR SLOTS count must be between 1 and 16384"
	errHotFewSlots command.Error = "ERR not enough slot numbers provided"
	errHotSlot     command.Error = "ERR Invalid or out of range slot"
	errHotSameSlot command.Error = "ERR duplicate slot number"
)

func hotkeysStart(c *command.Ctx) {
	h := hostOf(c).HotKeys()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now != nil && h.now.Active(c.Now()) {
		c.Err(errHotRunning)
		return
	}
	o, ok := readHotKeysOptions(c)
	if !ok {
		return
	}
	h.now = stats.NewHotKeys(o, c.Now())
	h.system, h.user = hostOf(c).ProcessorTime()
	hostOf(c).MeasureKeys(h.now)
	c.W.OK()
}

// readHotKeysOptions reads the options of HOTKEYS START. If they are wrong, it writes an error and ok is false.
func readHotKeysOptions(c *command.Ctx) (o stats.HotKeysOptions, ok bool) {
	words := c.Options(2)
	if words.Left() < 2 || !words.Next() || !words.Is("metrics") {
		c.Err(errHotMetrics)
		return o, false
	}
	metrics, ok := c.IntIn(words.Arg(), 1, 2, errHotCount)
	if !ok || !readMetrics(c, &words, metrics, &o) {
		return o, false
	}
	o.Count, o.Sample = 10, 1
	for words.Next() {
		var n int64
		switch {
		case !words.More():
			c.Err(command.ErrSyntax)
			return o, false
		case words.Is("count"):
			n, ok = c.IntIn(words.Arg(), 1, 64, errHotK)
			o.Count = int(n)
		case words.Is("duration"):
			n, ok = c.IntIn(words.Arg(), 1, 1000000, errHotDuration)
			o.Duration = time.Duration(n) * time.Second
		case words.Is("sample"):
			n, ok = c.IntIn(words.Arg(), 1, math.MaxInt32, errHotSample)
			o.Sample = int(n)
		case words.Is("slots"):
			ok = readSlots(c, &words, &o)
		default:
			c.Err(command.ErrSyntax)
			return o, false
		}
		if !ok {
			return o, false
		}
	}
	return o, true
}

// readMetrics reads n metrics; unknown ones are ignored.
func readMetrics(c *command.Ctx, words *command.OptionArgs, n int64, o *stats.HotKeysOptions) bool {
	if int64(words.Left()) < n {
		c.Err(errHotNumber)
		return false
	}
	for range n {
		words.Next()
		switch {
		case words.Is("cpu") && o.CPU:
			c.Err(errHotTwiceCPU)
			return false
		case words.Is("net") && o.Net:
			c.Err(errHotTwiceNet)
			return false
		}
		o.CPU = o.CPU || words.Is("cpu")
		o.Net = o.Net || words.Is("net")
	}
	if !o.CPU && !o.Net {
		c.Err(errHotNone)
		return false
	}
	return true
}

// readSlots reads the slots whose keys are measured.
func readSlots(c *command.Ctx, words *command.OptionArgs, o *stats.HotKeysOptions) bool {
	switch {
	case !c.ClusterMode():
		c.Err(errHotNoSlots)
		return false
	case o.Slots != nil:
		c.Err(errHotAgain)
		return false
	}
	n, ok := c.IntIn(words.Arg(), 1, cluster.Slots, errHotSlots)
	if !ok {
		return false
	}
	if int64(words.Left()) < n {
		c.Err(errHotFewSlots)
		return false
	}
	for range n {
		slot, ok := c.IntIn(words.Arg(), 0, cluster.Slots-1, errHotSlot)
		if !ok {
			return false
		}
		o.Slots = append(o.Slots, int(slot))
	}
	slices.Sort(o.Slots)
	if len(slices.Compact(slices.Clone(o.Slots))) != len(o.Slots) {
		c.Err(errHotSameSlot)
		return false
	}
	return true
}

// WriteHotKeys writes a section of INFO: whether a measurement runs, and the milliseconds that it has taken.
func WriteHotKeys(b *InfoText, c *command.Ctx) {
	h := hostOf(c).HotKeys()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil {
		return
	}
	r := h.now.Report(c.Now())
	b.Flag("hotkeys-tracking-active", r.Active)
	b.Number("hotkeys-cmd-cpu-time", r.Spent.Milliseconds())
}

func hotkeysStop(c *command.Ctx) {
	h := hostOf(c).HotKeys()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil || !h.now.Stop(c.Now()) {
		c.W.Null()
		return
	}
	hostOf(c).MeasureKeys(nil)
	c.W.OK()
}

func hotkeysReset(c *command.Ctx) {
	h := hostOf(c).HotKeys()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now != nil && h.now.Active(c.Now()) {
		c.Err(errHotReset)
		return
	}
	h.now = nil
	c.W.OK()
}

// nanosPerMicro converts the measured ns into the µs of the reply.
const nanosPerMicro = 1000

// hotkeysGet replies with an array of one map. A cluster client can join the arrays of several nodes.
func hotkeysGet(c *command.Ctx) {
	h := hostOf(c).HotKeys()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil {
		c.W.Null()
		return
	}
	o, r := &h.now.Options, h.now.Report(c.Now())
	w, fields := c.W, 0
	field := func(name string) {
		w.BulkString(name)
		fields++
	}
	number := func(name string, n int64) {
		field(name)
		w.Int(n)
	}
	keys := func(name string, list []stats.HotKey, unit int64) {
		field(name)
		w.Array(2 * len(list))
		for _, k := range list {
			w.BulkString(k.Key)
			w.Int(k.Cost / unit)
		}
	}
	active := int64(0)
	if r.Active {
		active = 1
	}
	w.Array(1)
	m := w.Defer()
	number("tracking-active", active)
	number("sample-ratio", int64(o.Sample))
	field("selected-slots")
	writeSlots(c, o.Slots)
	if o.Slots != nil && o.Sample > 1 {
		number("sampled-commands-selected-slots-us", r.SampledNanos/nanosPerMicro)
	}
	if o.Slots != nil {
		number("all-commands-selected-slots-us", r.ChosenNanos/nanosPerMicro)
	}
	number("all-commands-all-slots-us", r.AllNanos/nanosPerMicro)
	if o.Slots != nil && o.Sample > 1 {
		number("net-bytes-sampled-commands-selected-slots", r.SampledBytes)
	}
	if o.Slots != nil {
		number("net-bytes-all-commands-selected-slots", r.ChosenBytes)
	}
	number("net-bytes-all-commands-all-slots", r.AllBytes)
	number("collection-start-time-unix-ms", h.now.Began)
	number("collection-duration-ms", r.DurationMS)
	if o.CPU {
		system, user := hostOf(c).ProcessorTime()
		number("total-cpu-time-user-ms", int64((user-h.user)*1000))
		number("total-cpu-time-sys-ms", int64((system-h.system)*1000))
	}
	if o.Net {
		number("total-net-bytes", r.NetBytes)
	}
	if o.CPU {
		keys("by-cpu-time-us", r.CPU, nanosPerMicro)
	}
	if o.Net {
		keys("by-net-bytes", r.Net, 1)
	}
	w.EndMap(m, fields)
}

// writeSlots writes slots, nil meaning all, as ranges; a range of one slot has one number.
func writeSlots(c *command.Ctx, slots []int) {
	if slots == nil {
		c.W.Array(1)
		c.W.Array(2)
		c.W.Int(0)
		c.W.Int(cluster.Slots - 1)
		return
	}
	m, n := c.W.Defer(), 0
	for i := 0; i < len(slots); n++ {
		first := slots[i]
		for i++; i < len(slots) && slots[i] == slots[i-1]+1; i++ {
		}
		last := slots[i-1]
		if first == last {
			c.W.Array(1)
		} else {
			c.W.Array(2)
			c.W.Int(int64(first))
		}
		c.W.Int(int64(last))
	}
	c.W.EndArray(m, n)
}

func hotkeysHelp(c *command.Ctx) {
	command.HelpReply(c,
		"HOTKEYS <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"START METRICS <count> [CPU] [NET] [COUNT <k>] [DURATION <seconds>] [SAMPLE <ratio>] [SLOTS <count> <slot> [...]]",
		"    Begin to measure which keys cost most.",
		"    * METRICS: the number of metrics, and these: time of the processor, bytes of requests and replies.",
		"    * COUNT: how many keys to tell of (default 10).",
		"    * DURATION: when to stop by itself (default never).",
		"    * SAMPLE: look at one of so many commands (default 1).",
		"    * SLOTS: only keys of these slots of a cluster (default all).",
		"STOP", "    Stop; the results stay.",
		"GET", "    Show what was measured.",
		"RESET", "    Forget what was measured.",
		"HELP", "    Print this help.")
}
