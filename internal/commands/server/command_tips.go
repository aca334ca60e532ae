package server

import "strings"

// commandTips are the tips of COMMAND INFO: properties of replies, and how a cluster client should send a command.
// The server does not use them.
var commandTips = func() map[string][]string {
	tips := map[string][]string{}
	for _, g := range []struct{ tips, commands string }{
		{"nondeterministic_output",
			"client|info client|list dump hrandfield hscan lastsave migrate object|encoding object|freq object|idletime object|refcount httl hpttl pttl spop spttl srandmember " +
				"sscan sttl time ttl xadd xautoclaim xclaim " +
				"cluster|bumpepoch cluster|count-failure-reports cluster|getkeysinslot cluster|info cluster|links cluster|myshardid cluster|nodes cluster|replicas " +
				"cluster|shards cluster|slaves cluster|slots cluster|syncslots " +
				"xinfo|consumers xpending xtrim zrandmember zscan"},
		{"nondeterministic_output_order",
			"command command|docs command|info command|list function|list hgetall hkeys hvals module|list sdiff sinter smembers sunion"},
		{"nondeterministic_output request_policy:all_shards response_policy:special",
			"function|stats memory|doctor memory|malloc-stats memory|stats"},
		{"nondeterministic_output request_policy:all_nodes response_policy:special",
			"latency|doctor latency|graph latency|histogram latency|history latency|latest"},
		{"request_policy:all_nodes response_policy:agg_sum nondeterministic_output", "slowlog|len"},
		{"request_policy:all_nodes nondeterministic_output", "slowlog|get"},
		{"request_policy:all_shards response_policy:one_succeeded", "function|kill script|kill"},
		{"request_policy:all_shards response_policy:all_succeeded",
			"function|delete function|flush function|load function|restore memory|purge"},
		{"request_policy:all_nodes response_policy:all_succeeded", "slowlog|reset"},
		{"request_policy:all_nodes response_policy:all_succeeded", "acl|delrole acl|deluser acl|save acl|setrole acl|setuser client|setinfo client|setname config|resetstat config|rewrite config|set script|flush script|load"},
		{"request_policy:all_shards response_policy:all_succeeded", "flushall flushdb ping"},
		{"request_policy:all_shards response_policy:agg_sum", "dbsize"},
		{"request_policy:all_shards response_policy:agg_min", "wait waitaof"},
		{"request_policy:all_shards response_policy:agg_logical_and", "script|exists"},
		{"request_policy:all_shards nondeterministic_output_order", "keys"},
		{"request_policy:all_nodes response_policy:agg_sum", "latency|reset"},
		{"request_policy:all_shards response_policy:special nondeterministic_output", "randomkey"},
		{"nondeterministic_output request_policy:all_shards", "cluster|slot-stats"},
		{"request_policy:special", "hotkeys|reset hotkeys|start hotkeys|stop"},
		{"nondeterministic_output request_policy:special response_policy:special", "hotkeys|get"},
		{"request_policy:multi_shard", "mget"},
		{"request_policy:multi_shard response_policy:agg_sum", "del exists touch unlink"},
		{"request_policy:multi_shard response_policy:all_succeeded", "mset msetex"},
		{"nondeterministic_output request_policy:special response_policy:special", "scan"},
		{"nondeterministic_output request_policy:all_shards response_policy:special", "info"},
	} {
		for _, name := range strings.Fields(g.commands) {
			tips[name] = strings.Fields(g.tips)
		}
	}
	return tips
}()

// Tips returns the tips of COMMAND INFO for a command.
func Tips(name string) []string { return commandTips[name] }
