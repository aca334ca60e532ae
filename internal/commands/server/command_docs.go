package server

import (
	"strings"
	"sync"
)

// This file has facts that only COMMAND DOCS shows. The server does not use them.

// internalCommands are commands between servers or for the tests of Redis: their doc_flags have syscmd.
var internalCommands = []string{"bitconvert", "bitroarop", "debug", "pfdebug", "pfselftest", "replconf", "restore-asking"}

// change is an entry of a command's history: a change in a version of Redis.
type change struct{ Since, what string }

// commandHistory is the histories of commands, oldest changes first.
var commandHistory = sync.OnceValue(func() map[string][]change {
	history := map[string][]change{}
	for _, h := range []struct{ since, what, commands string }{
		{"2.0.0", "`WITHSCORES` was added", "zrangebyscore"},
		{"2.1.6", "The bounds can be exclusive", "zrevrangebyscore"},
		{"2.4.0", "Several elements at once", "lpush rpush"},
		{"2.4.0", "Several fields at once", "hdel"},
		{"2.4.0", "Several members at once", "sadd srem zadd zrem"},
		{"2.6.0", "`count` was added", "srandmember"},
		{"2.6.12", "`NX`, `XX`, `EX` and `PX` were added", "set"},
		{"2.8.0", "-2 says that there is no such key", "pttl ttl"},
		{"2.8.12", "Filters were added", "client|kill"},
		{"2.8.12", "The filter `ID` was added", "client|kill"},
		{"2.8.12", "The field `id` was added", "client|list"},
		{"3.0.0", "`COPY` and `REPLACE` were added", "migrate"},
		{"3.0.0", "`REPLACE` was added", "restore restore-asking"},
		{"3.0.2", "`NX`, `XX`, `CH` and `INCR` were added", "zadd"},
		{"3.0.3", "Several keys at once", "exists"},
		{"3.0.6", "`KEYS` was added", "migrate"},
		{"3.2.0", "`count` was added", "spop"},
		{"3.2.0", "The same name twice is no error any more", "renamenx"},
		{"3.2.0", "`TYPE` has `MASTER`", "client|kill"},
		{"3.2.2", "`SCHEDULE` was added", "bgsave"},
		{"4.0.0", "`ASYNC` was added", "flushall flushdb"},
		{"4.0.0", "Several elements at once", "lpushx rpushx"},
		{"4.0.0", "Several pairs at once", "hset"},
		{"4.0.0", "The IDs of nodes were added to the reply", "cluster|slots"},
		{"4.0.0", "The port of the bus was added", "cluster|meet"},
		{"4.0.0", "The address, port and name of the client were added to the reply", "slowlog|get"},
		{"8.10.0", "The number of arguments was added to the reply", "slowlog|get"},
		{"4.0.7", "`AUTH` was added", "migrate"},
		{"5.0.0", "`ABSTTL` was added", "restore restore-asking"},
		{"5.0.0", "`IDLETIME` and `FREQ` were added", "restore restore-asking"},
		{"5.0.0", "`TYPE` has `REPLICA`, and still `SLAVE`", "client|kill"},
		{"5.0.0", "`TYPE` was added", "client|list"},
		{"6.0.0", "A user can be named", "auth"},
		{"6.0.0", "`AUTH2` was added", "migrate"},
		{"6.0.0", "`FULL` was added", "xinfo|stream"},
		{"6.0.0", "`KEEPTTL` was added", "set"},
		{"6.0.0", "`TYPE` was added", "scan"},
		{"6.0.0", "The field `user` was added", "client|list"},
		{"6.0.0", "The timeout can be a fraction", "blpop brpop brpoplpush bzpopmax bzpopmin"},
		{"6.2.0", "`ANY` was added", "georadius georadius_ro"},
		{"6.2.0", "`ASYNC` and `SYNC` were added", "script|flush"},
		{"6.2.0", "`BYSCORE`, `BYLEX`, `REV` and `LIMIT` were added", "zrange"},
		{"6.2.0", "Channels were added", "acl|getuser acl|setuser"},
		{"6.2.0", "`count` was added", "lpop rpop"},
		{"6.2.0", "`GET`, `EXAT` and `PXAT` were added", "set"},
		{"6.2.0", "`GT` and `LT` were added", "zadd"},
		{"6.2.0", "`IDLE` and exclusive bounds were added", "xpending"},
		{"6.2.0", "`MINID` and `LIMIT` were added", "xtrim"},
		{"6.2.0", "`NOMKSTREAM`, `MINID` and `LIMIT` were added", "xadd"},
		{"6.2.0", "`NX`, `XX` and `CH` were added", "geoadd"},
		{"6.2.0", "`SYNC` was added", "flushall flushdb"},
		{"6.2.0", "`WRITE` and `ALL` were added", "client|pause"},
		{"6.2.0", "The bounds can be exclusive", "xrange xrevrange"},
		{"6.2.0", "The filter `LADDR` was added", "client|kill"},
		{"6.2.0", "The filter `ID` and the fields `laddr`, `redir`, `argv-mem` and `tot-mem` were added", "client|list"},
		{"6.2.0", "The version can be left out, to read the state of the connection", "hello"},
		{"7.0.0", "`<ms>-*` was added", "xadd"},
		{"7.0.0", "`BYTE` and `BIT` were added", "bitcount bitpos"},
		{"7.0.0", "`ENTRIESADDED` and `MAXDELETEDID` were added", "xsetid"},
		{"7.0.0", "`ENTRIESREAD` was added", "xgroup|create xgroup|setid"},
		{"7.0.0", "`GET` goes with `NX`", "set"},
		{"7.0.0", "`NOW`, `FORCE` and `ABORT` were added", "shutdown"},
		{"7.0.0", "`NX`, `XX`, `GT` and `LT` were added", "expire expireat pexpire pexpireat"},
		{"7.0.0", "All commands if none is named", "command|info"},
		{"7.0.0", "More about the network of a node was added to the reply", "cluster|slots"},
		{"7.0.0", "Permissions by key and selectors were added", "acl|setuser"},
		{"7.0.0", "Selectors were added, and patterns are shown as rules", "acl|getuser"},
		{"7.0.0", "Several parameters at once", "config|set"},
		{"7.0.0", "Several patterns at once", "config|get"},
		{"7.0.0", "Several sections at once", "info"},
		{"7.0.0", "The entries that were found deleted were added to the reply", "xautoclaim"},
		{"7.0.0", "The fields `entries-read` and `lag` were added", "xinfo|groups"},
		{"7.0.0", "The fields `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and `lag` were added", "xinfo|stream"},
		{"7.0.0", "The fields `resp`, `multi-mem`, `rbs` and `rbp` were added", "client|list"},
		{"7.0.0", "Units in capital letters", "georadius georadiusbymember geosearch geosearchstore"},
		{"7.0.3", "The field `ssub` was added", "client|list"},
		{"7.2.0", "The fields `lib-name` and `lib-ver` were added", "client|list"},
		{"7.2.0", "The field `inactive` was added", "xinfo|consumers"},
		{"7.2.0", "The field `active-time` was added", "xinfo|stream"},
		{"7.2.0", "`WITHSCORE` was added", "zrank zrevrank"},
		{"7.4.0", "`NOVALUES` was added", "hscan"},
		{"7.4.0", "The filter `MAXAGE` was added", "client|kill"},
		{"8.2.0", "`DIFF`, `DIFF1`, `ANDOR` and `ONE` were added", "bitop"},
		{"8.2.0", "`KEEPREF`, `DELREF` and `ACKED` were added", "xadd xtrim"},
		{"8.4.0", "`CLAIM` was added", "xreadgroup"},
		{"8.4.0", "`IFEQ`, `IFNE`, `IFDEQ` and `IFDNE` were added", "set"},
	} {
		for _, name := range strings.Fields(h.commands) {
			history[name] = append(history[name], change{h.since, h.what})
		}
	}
	return history
})
