#!/usr/bin/env bash
# The modes of redis-cli, and the requests of graphical tools. Deletes all data of the server.
# Usage: modes.sh ADDRESS
set -euo pipefail
address=$1
cli=(redis-cli -h "${address%:*}" -p "${address##*:}")
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT

# has fails unless the text on its input contains all words.
has() {
	local what=$1 text
	text=$(cat)
	shift
	for word; do
		if [[ $text != *"$word"* ]]; then
			printf '%s: no "%s" in:\n%s\n' "$what" "$word" "$text"
			exit 1
		fi
	done
}

# watch runs a mode that does not end by itself, for some seconds.
watch() {
	local seconds=$1
	shift
	timeout "$seconds" stdbuf -oL "${cli[@]}" "$@" || true
}

"${cli[@]}" FLUSHALL >/dev/null
{
	for i in $(seq 1000); do echo "SET string:$i $i"; done
	for i in $(seq 300); do
		printf '%s\n' "RPUSH list $i" "HSET hash f$i v" "ZADD zset $i m$i" "SADD set $i" "XADD stream * f $i"
	done
} | "${cli[@]}" --pipe | has --pipe "errors: 0, replies: 2500"

[ "$("${cli[@]}" --scan --pattern 'string:*' | sort -u | wc -l)" = 1000 ] || { echo "--scan"; exit 1; }
"${cli[@]}" --bigkeys | has --bigkeys "Sampled 1005 keys" '"list"'"' has 300 items" '"stream"'"' has 300 entries" "1000 strings with"
"${cli[@]}" --memkeys | has --memkeys "Sampled 1005 keys" "1000 strings with" "1 zsets with"
policy=$("${cli[@]}" CONFIG GET maxmemory-policy | tail -1)
"${cli[@]}" CONFIG SET maxmemory-policy allkeys-lfu >/dev/null
for _ in $(seq 300); do echo "GET string:7"; done | "${cli[@]}" >/dev/null
"${cli[@]}" --hotkeys | has --hotkeys 'keyname: "string:7"'
"${cli[@]}" CONFIG SET maxmemory-policy "$policy" >/dev/null

printf '#!lua name=smoke\nredis.register_function("smoke", function() return 1 end)' | "${cli[@]}" -x FUNCTION LOAD REPLACE >/dev/null
timeout 30 "${cli[@]}" --rdb "$work/all.rdb" 2>&1 | has --rdb "Transfer finished with success"
timeout 30 "${cli[@]}" --functions-rdb "$work/functions.rdb" 2>&1 | has --functions-rdb "Transfer finished with success"
if command -v redis-check-rdb >/dev/null; then
	redis-check-rdb "$work/all.rdb" | has redis-check-rdb "RDB looks OK" "1005 keys read"
	redis-check-rdb "$work/functions.rdb" | has redis-check-rdb "RDB looks OK" " 0 keys read"
fi
"${cli[@]}" FUNCTION DELETE smoke >/dev/null

stdbuf -oL "${cli[@]}" --replica >"$work/replica" 2>&1 &
replica=$!
for _ in $(seq 100); do
	"${cli[@]}" SET from master >/dev/null
	if grep -q '"SET","from","master"' "$work/replica"; then break; fi
	sleep 0.1
done
kill $replica
has --replica "SYNC done" '"SET","from","master"' <"$work/replica"
watch 2 --stat -i 1 | has --stat "keys" "clients" "1006"
watch 3 --lru-test 1000 | has --lru-test "Gets/sec"
watch 3 --latency -i 1 | has --latency "0 "
watch 2 --latency-dist -i 1 | has --latency-dist "From 0 to 100%"
# A server may have no debugger; then nothing is executed.
echo "redis.call('SET', 'debugged', 1)" >"$work/script.lua"
printf 'c\n' | "${cli[@]}" --ldb --eval "$work/script.lua" 2>&1 | has --ldb "session"
[ "$("${cli[@]}" EXISTS debugged)" = 0 ] || { echo "--ldb: the script was executed for good"; exit 1; }
"${cli[@]}" -3 --json HGETALL hash | has --json '"f300":"v"'

"${cli[@]}" SET key value >/dev/null
while IFS= read -r probe; do
	if [ -n "$probe" ] && ! eval "${cli[*]}" -e "$probe" >"$work/reply" 2>&1; then
		echo "$probe: $(head -1 "$work/reply")"
		exit 1
	fi
done <<'PROBES'
INFO
INFO everything
MODULE LIST
CLIENT LIST
CLIENT INFO
CLIENT ID
CLIENT SETNAME tool
CLIENT TRACKINGINFO
CLIENT NO-EVICT ON
MEMORY USAGE key SAMPLES 0
MEMORY STATS
MEMORY DOCTOR
SLOWLOG GET 50
SLOWLOG LEN
CONFIG GET '*'
CONFIG GET maxmemory-policy save
COMMAND
COMMAND DOCS
COMMAND COUNT
COMMAND LIST
COMMAND GETKEYSANDFLAGS SET a b
ACL WHOAMI
ACL LIST
ACL GETUSER default
ACL CAT
ACL LOG
DBSIZE
SCAN 0 MATCH '*' COUNT 500 TYPE string
SCAN 0 TYPE ReJSON-RL
OBJECT ENCODING key
OBJECT IDLETIME key
OBJECT REFCOUNT key
TYPE key
PTTL key
DUMP key
XINFO STREAM stream
XINFO GROUPS stream
TIME
LASTSAVE
ROLE
LATENCY LATEST
LATENCY DOCTOR
LATENCY HISTOGRAM
PUBSUB CHANNELS
PUBSUB NUMPAT
PUBSUB SHARDCHANNELS
FUNCTION LIST
FUNCTION STATS
HELLO 3
WAIT 0 0
PROBES
"${cli[@]}" FLUSHALL >/dev/null
redis-cli --version | sed 's/ (.*//; s/$/: modes and probes of tools/'
