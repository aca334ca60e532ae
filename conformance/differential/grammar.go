// The commands that the generator knows, one line each.

package differential

// grammar lists the commands by the type of key that they mostly use. A line is a weight, the command and its
// arguments: literals in capitals, placeholders in lower case (see fill), [optional] parts, (one|of) the alternatives,
// and x... for one to three times x. SET gets no deadline in the past: Redis stores the key and removes it later. GT
// and LT occur only with absolute times: with two relative ones the elapsed milliseconds would decide.
var grammar = map[string]string{
	"string": `
4 SET key val [NX|XX] [GET] [EX sec|PX ms|EXAT (4102444800|0|-1)|PXAT (4102444800123|0|-1)|KEEPTTL]
3 SET key int
3 GET key
1 SETNX key val
1 SETEX key sec val
1 PSETEX key ms val
1 GETSET key val
1 GETDEL key
2 GETEX key [EX sec|PX ms|EXAT ts|PXAT mts|PERSIST]
1 MGET key...
1 MSET key val key int
1 MSETNX key val key val
2 APPEND key val
1 STRLEN key
2 GETRANGE key index index
1 SUBSTR key index index
2 SETRANGE key smallint val
2 INCR key
1 DECR key
3 INCRBY key int
2 DECRBY key int
3 INCRBYFLOAT key float
1 LCS key key [LEN|IDX] [MINMATCHLEN smallint] [WITHMATCHLEN]`,
	"generic": `
3 DEL anykey...
1 UNLINK anykey...
2 EXISTS anykey...
1 TOUCH anykey...
2 TYPE anykey
2 EXPIRE anykey sec [NX|XX]
1 PEXPIRE anykey ms [NX|XX]
2 EXPIREAT anykey ts [NX|XX|GT|LT]
2 PEXPIREAT anykey mts [NX|XX|GT|LT] [GT]
1 TTL anykey
1 PTTL anykey
2 EXPIRETIME anykey
2 PEXPIRETIME anykey
2 PERSIST anykey
1 RENAME anykey anykey
1 RENAMENX anykey anykey
2 COPY anykey anykey [DB db] [REPLACE]
1 MOVE anykey db
1 SWAPDB db db
2 SELECT db
1 DBSIZE
1 KEYS pattern
1 RANDOMKEY
2 DUMP anykey
2 RESTORE anykey 0 payload [REPLACE]
1 RESTORE anykey ms payload [REPLACE] [IDLETIME smallint] [FREQ smallint]
1 RESTORE anykey mts payload ABSTTL [REPLACE]
1 RESTORE-ASKING anykey 0 payload
1 ACL WHOAMI
1 MODULE (LIST|LOAD member|UNLOAD member)
1 CLUSTER KEYSLOT anykey
1 CLUSTER COUNTKEYSINSLOT smallint
1 READONLY
1 READWRITE
1 ASKING
1 ACL DRYRUN default COPY anykey anykey
1 SCAN 0 COUNT 10000 [MATCH pattern] [TYPE type]
1 SCAN scancursor [MATCH pattern] [COUNT smallint]
1 ECHO val
1 PING [val]
1 WAIT 0 0
1 (REPLICAOF|SLAVEOF) (NO|A) (ONE|70000|X)
1 CLIENT SETNAME member
1 CLIENT GETNAME
1 PUBLISH channel val
1 SPUBLISH channel val
1 PUBSUB (CHANNELS pattern|NUMSUB channel...|NUMPAT|SHARDNUMSUB channel|SHARDCHANNELS)
1 FLUSHDB [ASYNC|SYNC]
1 nosuchcommand val...
1 UNWATCH`,
	"hash": `
4 HSET key field val
3 HSET key field val field int field float
1 HMSET key field val field val
1 HSETNX key field val
3 HGET key field
2 HMGET key field...
3 HDEL key field...
2 HGETALL key
1 HKEYS key
1 HVALS key
1 HLEN key
1 HEXISTS key field
1 HSTRLEN key field
3 HINCRBY key field int
2 HINCRBYFLOAT key field float
2 HRANDFIELD key [count [WITHVALUES]]
1 HSCAN key 0 COUNT 10000 [MATCH pattern]`,
	"list": `
4 LPUSH key val...
4 RPUSH key val...
1 LPUSHX key val...
1 RPUSHX key val...
2 LPOP key [count]
2 RPOP key [count]
2 LRANGE key index index
1 LLEN key
2 LINDEX key index
2 LSET key index val
2 LINSERT key (BEFORE|AFTER) val val
2 LREM key index val
1 LTRIM key index index
3 LPOS key val [RANK index] [COUNT count] [MAXLEN smallint]
1 RPOPLPUSH key key
2 LMOVE key key (LEFT|RIGHT) (LEFT|RIGHT)
2 LMPOP keys (LEFT|RIGHT) [COUNT smallint]
1 BLPOP key... timeout
1 BRPOP key... timeout
1 BLMOVE key key (LEFT|RIGHT) (LEFT|RIGHT) timeout
1 BRPOPLPUSH key key timeout
1 BLMPOP timeout keys (LEFT|RIGHT) [COUNT smallint]`,
	"set": `
4 SADD key member...
2 SADD key int int...
3 SREM key member...
2 SMEMBERS key
1 SCARD key
2 SISMEMBER key member
1 SMISMEMBER key member...
1 SMOVE key key member
1 SINTER key...
1 SUNION key...
1 SDIFF key...
1 SINTERSTORE key key...
1 SUNIONSTORE key key...
1 SDIFFSTORE key key...
1 SINTERCARD keys [LIMIT smallint]
2 SRANDMEMBER key [count]
1 SSCAN key 0 COUNT 10000 [MATCH pattern]`,
	"sorted_set": `
5 ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member
4 ZADD key score member score member score member
2 ZADD lexkey 0 member 0 member 0 val
2 ZINCRBY key score member
2 ZREM key member...
2 ZSCORE key member
1 ZMSCORE key member...
1 ZCARD key
2 ZRANK key member
2 ZREVRANK key member
2 ZCOUNT key bound bound
1 ZLEXCOUNT lexkey lexbound lexbound
3 ZRANGE key index index [REV] [WITHSCORES]
2 ZRANGE key bound bound BYSCORE [REV] [LIMIT index index] [WITHSCORES]
2 ZRANGE lexkey lexbound lexbound BYLEX [REV] [LIMIT index index] [WITHSCORES]
1 ZREVRANGE key index index [WITHSCORES]
2 ZRANGEBYSCORE key bound bound [WITHSCORES] [LIMIT index index]
2 ZREVRANGEBYSCORE key bound bound [WITHSCORES] [LIMIT index index]
1 ZRANGEBYLEX lexkey lexbound lexbound [LIMIT index index]
1 ZREVRANGEBYLEX lexkey lexbound lexbound [LIMIT index index]
1 ZRANGESTORE key key index index [REV]
1 ZRANGESTORE key key bound bound BYSCORE [REV] [LIMIT index index]
1 ZREMRANGEBYRANK key index index
1 ZREMRANGEBYSCORE key bound bound
1 ZREMRANGEBYLEX lexkey lexbound lexbound
1 ZPOPMIN key [count]
1 ZPOPMAX key [count]
1 ZMPOP keys (MIN|MAX) [COUNT smallint]
2 ZRANDMEMBER key [count [WITHSCORES]]
1 ZSCAN key 0 COUNT 10000 [MATCH pattern]
1 ZUNION zkeys [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]
1 ZINTER zkeys [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]
1 ZDIFF zkeys [WITHSCORES]
1 ZUNION 2 zkey zkey WEIGHTS weight weight [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]
1 ZUNIONSTORE key zkeys [AGGREGATE (SUM|MIN|MAX)]
1 ZINTERSTORE key 2 zkey zkey [WEIGHTS weight weight]
1 ZDIFFSTORE key zkeys
1 ZINTERCARD zkeys [LIMIT smallint]
1 BZPOPMIN key... timeout
1 BZPOPMAX key... timeout
1 BZMPOP timeout keys (MIN|MAX) [COUNT smallint]`,
	"stream": `
5 XADD key [NOMKSTREAM] [trim] newid field val
2 XADD key newid field val field val
1 XDEL key id...
1 XLEN key
3 XRANGE key idbound idbound [COUNT smallint]
2 XREVRANGE key idbound idbound [COUNT smallint]
2 XREAD [COUNT smallint] STREAMS key id
1 XREAD [COUNT smallint] [BLOCK 2] STREAMS key key id id
1 XTRIM key trim
1 XSETID key id [ENTRIESADDED smallint MAXDELETEDID id]
3 XGROUP CREATE key group (id|$) [MKSTREAM] [ENTRIESREAD smallint]
1 XGROUP SETID key group (id|$)
1 XGROUP DESTROY key group
1 XGROUP CREATECONSUMER key group consumer
1 XGROUP DELCONSUMER key group consumer
5 XREADGROUP GROUP group consumer [COUNT smallint] [NOACK] STREAMS key (>|id)
1 XREADGROUP GROUP group consumer [BLOCK 2] STREAMS key key (>|id) >
2 XACK key group id...
1 XPENDING key group
2 XPENDING key group idbound idbound smallint [consumer]
2 XCLAIM key group consumer 0 id... [IDLE 5000] [RETRYCOUNT smallint] [FORCE] [JUSTID] [LASTID id]
2 XAUTOCLAIM key group consumer 0 id [COUNT smallint] [JUSTID]
1 XINFO STREAM key [FULL [COUNT smallint]]
1 XINFO GROUPS key
1 XINFO CONSUMERS key group`,
	"sort": `
3 SORT sortkey [LIMIT index index] [ASC|DESC] [ALPHA]
1 SORT (list1|list2|set1|set2|str1|hash1) [LIMIT index index] [ASC|DESC] ALPHA
2 SORT sortkey BY sortby [LIMIT index index] [GET sortget] [GET sortget] [ASC|DESC] [ALPHA]
1 SORT_RO sortkey [BY sortby] [GET sortget] [ALPHA]
2 SORT sortkey [LIMIT index index] [GET sortget] [ASC|DESC] [ALPHA] STORE (sortlist|anykey)
1 SORT sortkey BY sortby STORE sortlist2
1 SORT_RO sortkey STORE key
3 RPUSH sortlist int...
1 RPUSH sortlist (1.5|-0|1e3|0x1F|.5) member
3 SADD sortset int member
2 SADD sortset int...
3 ZADD sortzset int int int member
1 DEL sortkey
2 SREM sortset member int
2 LPOP sortlist 3
2 SET weightkey int
1 SET weightkey (0.5|-1e3|0xA|+7|-.25)
1 SET weightkey val
2 HSET weighthash f1 int f2 val
3 OBJECT ENCODING (anykey|weightkey|weighthash|sortlist|sortset)
2 OBJECT REFCOUNT (weightkey|weighthash|sortlist)
1 OBJECT FREQ anykey
1 OBJECT IDLETIME nosuchkey`,
	"bitmap": `
4 SETBIT key bitoffset (0|1)
1 SETBIT key bitoffset val
2 GETBIT key bitoffset
2 BITCOUNT key
3 BITCOUNT key index index [BYTE|BIT]
1 BITCOUNT key int int [BYTE|BIT]
2 BITPOS key (0|1)
2 BITPOS key (0|1) index
4 BITPOS key (0|1) index index [BYTE|BIT]
1 BITPOS key (0|1) int int [BYTE|BIT]
1 BITOP NOT key key
4 BITOP (AND|OR|XOR) key key...
1 BITOP (NOT|nosuch) key key...
3 BITFIELD key (GET fieldtype fieldoffset|SET fieldtype fieldoffset fieldvalue|INCRBY fieldtype fieldoffset fieldvalue)
6 BITFIELD key [OVERFLOW (WRAP|SAT|FAIL|nosuch)] SET fieldtype fieldoffset fieldvalue [OVERFLOW (WRAP|SAT|FAIL)] INCRBY fieldtype fieldoffset fieldvalue [GET fieldtype fieldoffset]
2 BITFIELD_RO key GET fieldtype fieldoffset [GET fieldtype fieldoffset] [SET fieldtype fieldoffset fieldvalue]
2 SET key (bytes|val)
2 SETRANGE key smallint val
1 APPEND key val
2 GET key
1 DEL key`,
	"hyperloglog": `
4 PFADD key elements
3 PFADD key element...
1 PFADD key
4 PFCOUNT key
2 PFCOUNT key key...
2 PFMERGE key key...
1 PFMERGE key
2 GET key
2 PFDEBUG (ENCODING|TODENSE|nosuch) anykey
3 PFDEBUG (ENCODING|DECODE) key
1 PFDEBUG TODENSE key
1 PFDEBUG GETREG key
1 SETRANGE key (-1|0|4|8|14|16|17|18|20|30) bytes
1 COPY key key REPLACE
1 APPEND key bytes
2 DEL key`,
	"geo": `
6 GEOADD key [NX|XX] [CH] lon lat place lon lat place
1 GEOADD key lon lat place lon lat place lon lat place lon lat place
2 GEODIST key place place [unit]
2 GEOPOS key place...
2 GEOHASH key place...
1 ZREM key place
1 ZRANGE key 0 -1 WITHSCORES
1 ZADD key score place
5 GEOSEARCH key FROMLONLAT lon lat BYRADIUS radius unit [ASC|DESC] [COUNT smallint [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]
3 GEOSEARCH key FROMMEMBER place BYRADIUS radius unit [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT smallint [ANY]] [ASC|DESC]
5 GEOSEARCH key (FROMLONLAT lon lat|FROMMEMBER place) BYBOX radius radius unit [ASC|DESC] [COUNT smallint [ANY]] [WITHDIST]
1 GEOSEARCH key [FROMLONLAT lon lat] [FROMMEMBER place] [BYBOX radius radius unit] [BYRADIUS radius unit] [ANY] [COUNT smallint]
3 GEOSEARCHSTORE key key (FROMLONLAT lon lat|FROMMEMBER place) (BYRADIUS radius unit|BYBOX radius radius unit) [ASC|DESC] [COUNT smallint [ANY]] [WITHDIST]
1 GEOSEARCHSTORE distkey key (FROMLONLAT lon lat|FROMMEMBER place) (BYRADIUS radius unit|BYBOX radius radius unit) STOREDIST
3 GEORADIUS key lon lat radius unit [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT smallint [ANY]] [ASC|DESC] [STORE key] [STOREDIST distkey]
2 GEORADIUSBYMEMBER key place radius unit [WITHDIST] [COUNT smallint [ANY]] [ASC|DESC] [STORE key] [STORE key]
1 GEORADIUS_RO key lon lat radius unit [WITHCOORD] [WITHDIST] [ASC|DESC] [STORE key]
1 GEORADIUSBYMEMBER_RO key place radius unit [WITHHASH] [COUNT smallint]
1 ZRANGE distkey 0 -1 WITHSCORES
1 DEL key`,
}

// groups fixes an order of the grammar's groups, so that a seed always produces the same commands.
var groups = []string{"string", "generic", "hash", "list", "set", "sorted_set", "stream", "sort", "bitmap",
	"hyperloglog", "geo"}
