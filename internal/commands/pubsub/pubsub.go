// Package pubsub has the commands for publishing and subscribing; package internal/clients/pubsub delivers the
// messages.
package pubsub

import (
	"slices"

	"github.com/atomredis/atomredis/engine/glob"
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(pubsubCommands) }

var pubsubCommands = []*command.Command{
	{Name: "psubscribe", Group: "pubsub", Since: "2.0.0", Arity: -2,
		Flags: command.DenyOOM | command.PubSub | command.NoScript | command.Loading | command.Stale, WhileSubscribed: true,
		Summary: "Subscribes to the channels that match patterns", Syntax: "pattern [pattern ...]",
		Complexity: "O(N), where N is the number of patterns",
		Channels:   patternsToHear, Stateful: true, Do: psubscribe},
	{Name: "publish", Group: "pubsub", Since: "2.0.0", Arity: 3,
		Flags:   command.PubSub | command.Loading | command.Stale | command.Fast | command.MayReplicate,
		Summary: "Sends a message to the subscribers of a channel", Syntax: "channel message",
		Complexity: "O(N+M), where N is the number of the channel's subscribers and M that of all patterns",
		Channels:   channelToTell, Do: publish},
	{Name: "pubsub", Group: "pubsub", Since: "2.8.0", Arity: -2, Summary: "A container for commands about subscriptions",
		Complexity: "Depends on the sub-command", Subs: []*command.Command{
			{Name: "pubsub|channels", Group: "pubsub", Since: "2.8.0", Arity: -2,
				Flags:   command.PubSub | command.Loading | command.Stale,
				Summary: "Lists the channels that have subscribers", Syntax: "[pattern]",
				Complexity: "O(N), where N is the number of channels", Do: channels},
			{Name: "pubsub|help", Group: "pubsub", Since: "6.2.0", Arity: 2, Flags: command.Loading | command.Stale,
				Summary: "Lists the subcommands", Complexity: "O(1)", Do: help},
			{Name: "pubsub|numpat", Group: "pubsub", Since: "2.8.0", Arity: 2,
				Flags:   command.PubSub | command.Loading | command.Stale,
				Summary: "Counts the patterns that have subscribers", Complexity: "O(1)", Do: numpat},
			{Name: "pubsub|numsub", Group: "pubsub", Since: "2.8.0", Arity: -2,
				Flags:   command.PubSub | command.Loading | command.Stale,
				Summary: "Counts the subscribers of channels", Syntax: "[channel [channel ...]]",
				Complexity: "O(N), where N is the number of channels", Do: numsub},
			{Name: "pubsub|shardchannels", Group: "pubsub", Since: "7.0.0", Arity: -2,
				Flags:   command.PubSub | command.Loading | command.Stale,
				Summary: "Lists the shard channels that have subscribers", Syntax: "[pattern]",
				Complexity: "O(N), where N is the number of shard channels", Do: shardchannels},
			{Name: "pubsub|shardnumsub", Group: "pubsub", Since: "7.0.0", Arity: -2,
				Flags:   command.PubSub | command.Loading | command.Stale,
				Summary: "Counts the subscribers of shard channels", Syntax: "[shardchannel [shardchannel ...]]",
				Complexity: "O(N), where N is the number of shard channels", Do: shardnumsub},
		}},
	{Name: "punsubscribe", Group: "pubsub", Since: "2.0.0", Arity: -1,
		Flags: command.PubSub | command.NoScript | command.Loading | command.Stale, WhileSubscribed: true,
		Summary: "Unsubscribes from patterns", Syntax: "[pattern [pattern ...]]",
		Complexity: "O(N), where N is the number of patterns",
		Stateful:   true, Do: punsubscribe},
	{Name: "spublish", Group: "pubsub", Since: "7.0.0", Arity: 3,
		Flags:   command.PubSub | command.Loading | command.Stale | command.Fast | command.MayReplicate,
		Keys:    command.Keys("i1+r0/1/0[NOT_KEY]"),
		Summary: "Sends a message to the subscribers of a shard channel", Syntax: "shardchannel message",
		Complexity: "O(N), where N is the number of the channel's subscribers",
		Channels:   channelToTell, Do: spublish},
	{Name: "ssubscribe", Group: "pubsub", Since: "7.0.0", Arity: -2,
		Flags: command.DenyOOM | command.PubSub | command.NoScript | command.Loading | command.Stale, Keys: command.Keys("i1+r-1/1/0[NOT_KEY]"),
		WhileSubscribed: true,
		Summary:         "Subscribes to shard channels", Syntax: "shardchannel [shardchannel ...]",
		Complexity: "O(N), where N is the number of channels",
		Channels:   channelsToHear, Stateful: true, Do: ssubscribe},
	{Name: "subscribe", Group: "pubsub", Since: "2.0.0", Arity: -2,
		Flags: command.DenyOOM | command.PubSub | command.NoScript | command.Loading | command.Stale, WhileSubscribed: true,
		Summary: "Subscribes to channels",
		Syntax:  "channel [channel ...]", Complexity: "O(N), where N is the number of channels",
		Channels: channelsToHear, Stateful: true, Do: subscribe},
	{Name: "sunsubscribe", Group: "pubsub", Since: "7.0.0", Arity: -1,
		Flags: command.PubSub | command.NoScript | command.Loading | command.Stale, Keys: command.Keys("i1+r-1/1/0[NOT_KEY]"),
		WhileSubscribed: true,
		Summary:         "Unsubscribes from shard channels", Syntax: "[shardchannel [shardchannel ...]]",
		Complexity: "O(N), where N is the number of channels",
		Stateful:   true, Do: sunsubscribe},
	{Name: "unsubscribe", Group: "pubsub", Since: "2.0.0", Arity: -1,
		Flags: command.PubSub | command.NoScript | command.Loading | command.Stale, WhileSubscribed: true,
		Summary: "Unsubscribes from channels", Syntax: "[channel [channel ...]]",
		Complexity: "O(N), where N is the number of channels",
		Stateful:   true, Do: unsubscribe},
}

// The channels of the commands.
func channelToTell(args [][]byte) ([][]byte, bool)  { return args[1:min(2, len(args))], false }
func channelsToHear(args [][]byte) ([][]byte, bool) { return args[1:], false }
func patternsToHear(args [][]byte) ([][]byte, bool) { return args[1:], true }

// kind describes a kind of subscription for the commands.
type kind struct {
	pubsub.Kind
	subscribed, unsubscribed string // the first word of the confirmations
	total                    func(s *pubsub.Subscriptions) int
}

var (
	byChannel = kind{pubsub.Channel, "subscribe", "unsubscribe", ordinary}
	byPattern = kind{pubsub.Pattern, "psubscribe", "punsubscribe", ordinary}
	byShard   = kind{pubsub.ShardChannel, "ssubscribe", "sunsubscribe", sharded}
)

// The numbers in confirmations.
func ordinary(s *pubsub.Subscriptions) int { return s.Len(pubsub.Channel) + s.Len(pubsub.Pattern) }
func sharded(s *pubsub.Subscriptions) int  { return s.Len(pubsub.ShardChannel) }

func subscribe(c *command.Ctx)    { subscribeTo(c, byChannel) }
func psubscribe(c *command.Ctx)   { subscribeTo(c, byPattern) }
func unsubscribe(c *command.Ctx)  { unsubscribeFrom(c, byChannel) }
func punsubscribe(c *command.Ctx) { unsubscribeFrom(c, byPattern) }
func sunsubscribe(c *command.Ctx) { unsubscribeFrom(c, byShard) }

func ssubscribe(c *command.Ctx) {
	if c.NoBlock {
		c.Err("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
		return
	}
	subscribeTo(c, byShard)
}

// subscribeTo subscribes to the names in the arguments and confirms each one.
func subscribeTo(c *command.Ctx, k kind) {
	for _, name := range c.Args[1:] {
		clientOf(c).Subscriptions().Subscribe(k.Kind, string(name))
		confirm(c, k, k.subscribed, name)
	}
}

// unsubscribeFrom ends the subscriptions that the arguments name, or all of the kind.
func unsubscribeFrom(c *command.Ctx, k kind) {
	subs := clientOf(c).Subscriptions()
	if len(c.Args) > 1 {
		for _, name := range c.Args[1:] {
			subs.Unsubscribe(k.Kind, string(name))
			confirm(c, k, k.unsubscribed, name)
		}
		return
	}
	if subs.Len(k.Kind) == 0 {
		confirm(c, k, k.unsubscribed, nil)
		return
	}
	for name := range subs.Names(k.Kind) {
		subs.Unsubscribe(k.Kind, name)
		confirm(c, k, k.unsubscribed, []byte(name))
	}
}

// confirm writes one confirmation; a nil name is the null of an UNSUBSCRIBE that ended nothing.
func confirm(c *command.Ctx, k kind, word string, name []byte) {
	client := clientOf(c)
	client.WriteMessage(c, func(w *resp.Writer) {
		w.Push(3)
		w.BulkString(word)
		if name == nil {
			w.Null()
		} else {
			w.Bulk(name)
		}
		w.Int(int64(k.total(client.Subscriptions())))
	})
}

func publish(c *command.Ctx)  { send(c, false) }
func spublish(c *command.Ctx) { send(c, true) }

func send(c *command.Ctx, shard bool) {
	client := clientOf(c)
	more := !c.NoBlock && client.Repeats(c.Cmd)
	publish := client.Subscriptions().Publish
	if shard {
		publish = client.Subscriptions().PublishShard
	}
	c.W.Int(int64(publish(c.Args[1], c.Args[2], more)))
	c.Host.(Host).Published(c, shard)
}

func channels(c *command.Ctx)      { listChannels(c, pubsub.Channel) }
func shardchannels(c *command.Ctx) { listChannels(c, pubsub.ShardChannel) }

func listChannels(c *command.Ctx, kind pubsub.Kind) {
	if len(c.Args) > 3 {
		c.Err(command.Error("ERR unknown subcommand or wrong number of arguments for '" + string(c.Args[1]) +
			"'. Try PUBSUB HELP."))
		return
	}
	names := hubOf(c).Names(kind)
	if len(c.Args) == 3 {
		names = slices.DeleteFunc(names, func(name string) bool { return !glob.Match(c.Args[2], []byte(name), false) })
	}
	slices.Sort(names)
	c.W.Array(len(names))
	for _, name := range names {
		c.W.BulkString(name)
	}
}

func numpat(c *command.Ctx) { c.W.Int(int64(hubOf(c).Len(pubsub.Pattern))) }

func numsub(c *command.Ctx)      { countSubscribers(c, pubsub.Channel) }
func shardnumsub(c *command.Ctx) { countSubscribers(c, pubsub.ShardChannel) }

func countSubscribers(c *command.Ctx, kind pubsub.Kind) {
	names := c.Args[2:]
	c.W.Array(2 * len(names))
	for i, n := range hubOf(c).Counts(kind, names) {
		c.W.Bulk(names[i])
		c.W.Int(int64(n))
	}
}

func help(c *command.Ctx) {
	command.HelpReply(c,
		"PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"CHANNELS [<pattern>]", "    List the channels with subscribers, all or those that match the pattern.",
		"NUMPAT", "    Count the patterns that clients have subscribed to.",
		"NUMSUB [<channel> ...]", "    Count the subscribers of each channel; patterns do not count.",
		"SHARDCHANNELS [<pattern>]", "    List the shard channels with subscribers, all or those that match the pattern.",
		"SHARDNUMSUB [<channel> ...]", "    Count the subscribers of each shard channel.",
		"HELP", "    Print this help.")
}
