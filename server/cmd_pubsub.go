package server

import (
	"slices"
	"strings"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine/glob"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(pubsubCommands) }

var pubsubCommands = []*command.Command{
	{Name: "psubscribe", Group: "pubsub", Since: "2.0.0", Arity: -2,
		Flags: command.PubSub | command.NoScript | command.Loading | command.Stale, WhileSubscribed: true,
		Summary: "Subscribes to the channels that match patterns", Syntax: "pattern [pattern ...]",
		Complexity: "O(N), where N is the number of patterns",
		Channels:   patternsToHear, Stateful: true, Do: cmdPsubscribe},
	{Name: "publish", Group: "pubsub", Since: "2.0.0", Arity: 3,
		Flags:   command.PubSub | command.Loading | command.Stale | command.Fast | command.MayReplicate,
		Summary: "Sends a message to the subscribers of a channel", Syntax: "channel message",
		Complexity: "O(N+M), where N is the number of the channel's subscribers and M that of all patterns",
		Channels:   channelToTell, Do: cmdPublish},
	{Name: "pubsub", Group: "pubsub", Since: "2.8.0", Arity: -2, Summary: "A container for commands about subscriptions",
		Complexity: "Depends on the sub-command", Subs: []*command.Command{
			{Name: "pubsub|channels", Group: "pubsub", Since: "2.8.0", Arity: -2,
				Flags:   command.PubSub | command.Loading | command.Stale,
				Summary: "Lists the channels that have subscribers", Syntax: "[pattern]",
				Complexity: "O(N), where N is the number of channels", Do: cmdPubsubChannels},
			{Name: "pubsub|help", Group: "pubsub", Since: "6.2.0", Arity: 2, Flags: command.Loading | command.Stale,
				Summary: "Lists the subcommands", Complexity: "O(1)", Do: cmdPubsubHelp},
			{Name: "pubsub|numpat", Group: "pubsub", Since: "2.8.0", Arity: 2,
				Flags:   command.PubSub | command.Loading | command.Stale,
				Summary: "Counts the patterns that have subscribers", Complexity: "O(1)", Do: cmdPubsubNumpat},
			{Name: "pubsub|numsub", Group: "pubsub", Since: "2.8.0", Arity: -2,
				Flags:   command.PubSub | command.Loading | command.Stale,
				Summary: "Counts the subscribers of channels", Syntax: "[channel [channel ...]]",
				Complexity: "O(N), where N is the number of channels", Do: cmdPubsubNumsub},
			{Name: "pubsub|shardchannels", Group: "pubsub", Since: "7.0.0", Arity: -2,
				Flags:   command.PubSub | command.Loading | command.Stale,
				Summary: "Lists the shard channels that have subscribers", Syntax: "[pattern]",
				Complexity: "O(N), where N is the number of shard channels", Do: cmdPubsubShardchannels},
			{Name: "pubsub|shardnumsub", Group: "pubsub", Since: "7.0.0", Arity: -2,
				Flags:   command.PubSub | command.Loading | command.Stale,
				Summary: "Counts the subscribers of shard channels", Syntax: "[shardchannel [shardchannel ...]]",
				Complexity: "O(N), where N is the number of shard channels", Do: cmdPubsubShardnumsub},
		}},
	{Name: "punsubscribe", Group: "pubsub", Since: "2.0.0", Arity: -1,
		Flags: command.PubSub | command.NoScript | command.Loading | command.Stale, WhileSubscribed: true,
		Summary: "Unsubscribes from patterns", Syntax: "[pattern [pattern ...]]",
		Complexity: "O(N), where N is the number of patterns",
		Stateful:   true, Do: cmdPunsubscribe},
	{Name: "spublish", Group: "pubsub", Since: "7.0.0", Arity: 3,
		Flags:   command.PubSub | command.Loading | command.Stale | command.Fast | command.MayReplicate,
		Keys:    command.Keys("i1+r0/1/0[NOT_KEY]"),
		Summary: "Sends a message to the subscribers of a shard channel", Syntax: "shardchannel message",
		Complexity: "O(N), where N is the number of the channel's subscribers",
		Channels:   channelToTell, Do: cmdSpublish},
	{Name: "ssubscribe", Group: "pubsub", Since: "7.0.0", Arity: -2,
		Flags: command.PubSub | command.NoScript | command.Loading | command.Stale, Keys: command.Keys("i1+r-1/1/0[NOT_KEY]"),
		WhileSubscribed: true,
		Summary:         "Subscribes to shard channels", Syntax: "shardchannel [shardchannel ...]",
		Complexity: "O(N), where N is the number of channels",
		Channels:   channelsToHear, Stateful: true, Do: cmdSsubscribe},
	{Name: "subscribe", Group: "pubsub", Since: "2.0.0", Arity: -2,
		Flags: command.PubSub | command.NoScript | command.Loading | command.Stale, WhileSubscribed: true,
		Summary: "Subscribes to channels",
		Syntax:  "channel [channel ...]", Complexity: "O(N), where N is the number of channels",
		Channels: channelsToHear, Stateful: true, Do: cmdSubscribe},
	{Name: "sunsubscribe", Group: "pubsub", Since: "7.0.0", Arity: -1,
		Flags: command.PubSub | command.NoScript | command.Loading | command.Stale, Keys: command.Keys("i1+r-1/1/0[NOT_KEY]"),
		WhileSubscribed: true,
		Summary:         "Unsubscribes from shard channels", Syntax: "[shardchannel [shardchannel ...]]",
		Complexity: "O(N), where N is the number of channels",
		Stateful:   true, Do: cmdSunsubscribe},
	{Name: "unsubscribe", Group: "pubsub", Since: "2.0.0", Arity: -1,
		Flags: command.PubSub | command.NoScript | command.Loading | command.Stale, WhileSubscribed: true,
		Summary: "Unsubscribes from channels", Syntax: "[channel [channel ...]]",
		Complexity: "O(N), where N is the number of channels",
		Stateful:   true, Do: cmdUnsubscribe},
}

// The channels of the commands.
func channelToTell(args [][]byte) ([][]byte, bool)  { return args[1:min(2, len(args))], false }
func channelsToHear(args [][]byte) ([][]byte, bool) { return args[1:], false }
func patternsToHear(args [][]byte) ([][]byte, bool) { return args[1:], true }

func cmdSubscribe(c *command.Ctx)    { subscribe(c, byChannel) }
func cmdPsubscribe(c *command.Ctx)   { subscribe(c, byPattern) }
func cmdUnsubscribe(c *command.Ctx)  { unsubscribe(c, byChannel) }
func cmdPunsubscribe(c *command.Ctx) { unsubscribe(c, byPattern) }
func cmdSunsubscribe(c *command.Ctx) { unsubscribe(c, byShard) }

func cmdSsubscribe(c *command.Ctx) {
	if c.NoBlock {
		c.Err("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
		return
	}
	subscribe(c, byShard)
}

// subscribe subscribes to the names in the arguments and confirms each.
func subscribe(c *command.Ctx, kind *subscriptionKind) {
	for _, name := range c.Args[1:] {
		serverOf(c).pubsub.subscribe(sessionOf(c), kind, string(name))
		confirm(c, kind, kind.subscribed, name)
	}
}

// unsubscribe ends the subscriptions that the arguments name, or all of the kind.
func unsubscribe(c *command.Ctx, kind *subscriptionKind) {
	if len(c.Args) > 1 {
		for _, name := range c.Args[1:] {
			serverOf(c).pubsub.unsubscribe(sessionOf(c), kind, string(name))
			confirm(c, kind, kind.unsubscribed, name)
		}
		return
	}
	mine := *kind.of(&sessionOf(c).subs)
	if len(mine) == 0 {
		confirm(c, kind, kind.unsubscribed, nil)
		return
	}
	for name := range mine {
		serverOf(c).pubsub.unsubscribe(sessionOf(c), kind, name)
		confirm(c, kind, kind.unsubscribed, []byte(name))
	}
}

// confirm writes one confirmation; a nil name is the null of an UNSUBSCRIBE that ended nothing. It is a message,
// which CLIENT REPLY does not keep back.
func confirm(c *command.Ctx, kind *subscriptionKind, word string, name []byte) {
	s := sessionOf(c)
	w := c.W
	if s.replies != replyOn {
		w = &resp.Writer{Buf: s.origin.later, Proto: w.Proto}
		defer func() { s.origin.later = w.Buf }()
	}
	w.Push(3)
	w.BulkString(word)
	if name == nil {
		w.Null()
	} else {
		w.Bulk(name)
	}
	w.Int(int64(kind.total(&s.subs)))
}

func cmdPublish(c *command.Ctx) {
	c.W.Int(int64(serverOf(c).pubsub.publish(sessionOf(c), c.Args[1], c.Args[2], morePublishing(c))))
}

func cmdSpublish(c *command.Ctx) {
	c.W.Int(int64(serverOf(c).pubsub.publishShard(sessionOf(c), c.Args[1], c.Args[2], morePublishing(c))))
}

func cmdPubsubChannels(c *command.Ctx)      { listChannels(c, byChannel) }
func cmdPubsubShardchannels(c *command.Ctx) { listChannels(c, byShard) }

func listChannels(c *command.Ctx, kind *subscriptionKind) {
	if len(c.Args) > 3 {
		c.Err(command.Error("ERR unknown subcommand or wrong number of arguments for '" + string(c.Args[1]) +
			"'. Try PUBSUB HELP."))
		return
	}
	h := &serverOf(c).pubsub
	var names []string
	h.mu.Lock()
	for name := range *kind.in(h) {
		if len(c.Args) == 2 || glob.Match(c.Args[2], []byte(name), false) {
			names = append(names, name)
		}
	}
	h.mu.Unlock()
	slices.SortFunc(names, strings.Compare)
	c.W.Array(len(names))
	for _, name := range names {
		c.W.BulkString(name)
	}
}

func cmdPubsubNumpat(c *command.Ctx) {
	h := &serverOf(c).pubsub
	h.mu.Lock()
	n := len(h.patterns)
	h.mu.Unlock()
	c.W.Int(int64(n))
}

func cmdPubsubNumsub(c *command.Ctx)      { countSubscribers(c, byChannel) }
func cmdPubsubShardnumsub(c *command.Ctx) { countSubscribers(c, byShard) }

func countSubscribers(c *command.Ctx, kind *subscriptionKind) {
	h := &serverOf(c).pubsub
	h.mu.Lock()
	defer h.mu.Unlock()
	c.W.Array(2 * (len(c.Args) - 2))
	for _, name := range c.Args[2:] {
		c.W.Bulk(name)
		c.W.Int(int64(len((*kind.in(h))[string(name)].list())))
	}
}

func cmdPubsubHelp(c *command.Ctx) {
	command.HelpReply(c,
		"PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"CHANNELS [<pattern>]", "    List the channels with subscribers, all or those that match the pattern.",
		"NUMPAT", "    Count the patterns that clients have subscribed to.",
		"NUMSUB [<channel> ...]", "    Count the subscribers of each channel; patterns do not count.",
		"SHARDCHANNELS [<pattern>]", "    List the shard channels with subscribers, all or those that match the pattern.",
		"SHARDNUMSUB [<channel> ...]", "    Count the subscribers of each shard channel.",
		"HELP", "    Print this help.")
}
