#!/usr/bin/env bash
# Checks bin/atomredis against a live Redis: replays the transcripts on Redis, and compares random commands, with one and with
# sixteen shards, and random calls of Lua's libraries. Then runs the protocols of atom and pressure and ten thousand blocked clients
# at full size, the console in a browser, clients of several languages (selected by CLIENTS), and units of Redis's own test suite
# (selected by TCL, which may be all).
# Usage: run.sh [number of random commands]
set -euo pipefail
cd "$(dirname "$0")/.."
n=${1:-1000000}
seed=${SEED:-$RANDOM}

if ! command -v redis-server >/dev/null || ! command -v redis-cli >/dev/null; then
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -yq redis-server redis-tools
fi
ATOMREDIS_ORACLE=1 go test -count=1 ./conformance

work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
# Three ports that are probably free; the run ends below if a server does not get its port.
base=$((20000 + RANDOM % 10000))
redis=$base one=$((base + 1)) sixteen=$((base + 2))
redis-server --port $redis --bind 127.0.0.1 --save "" --appendonly no --dir "$work" >"$work/redis.log" &
pids+=($!)
bin/atomredis --port $one --bind 127.0.0.1 --shards 1 --maxclients 20000 --save "" --appendonly no >"$work/one.log" &
pids+=($!)
bin/atomredis --port $sixteen --bind 127.0.0.1 --shards 16 --maxclients 20000 --save "" --appendonly no >"$work/sixteen.log" &
pids+=($!)
for port in $redis $one $sixteen; do
	for _ in $(seq 100); do redis-cli -p $port ping >/dev/null 2>&1 && break; sleep 0.1; done
done
for pid in "${pids[@]}"; do
	kill -0 "$pid" || { cat "$work"/*.log; exit 1; }
done

go run ./conformance/differential/cmd -a 127.0.0.1:$redis -b 127.0.0.1:$one -n "$n" -seed "$seed" -dir "$work"
go run ./conformance/differential/cmd -a 127.0.0.1:$redis -b 127.0.0.1:$sixteen -n $((n / 2)) -seed $((seed + 1000000)) -dir "$work"
go run ./conformance/scripts/cmd -a 127.0.0.1:$redis -b 127.0.0.1:$one -n $((n / 5)) -seed "$seed"
go run ./conformance/acl/cmd -a 127.0.0.1:$redis -b 127.0.0.1:$one -users 200 -n 2000 -seed "$seed"

export ATOMREDIS_BLOCKED_CLIENTS=${BLOCKED:-10000} ATOMREDIS_PRESSURE_MESSAGES=${MESSAGES:-51000}
export ATOMREDIS_PRESSURE_MIXED=${MIXED:-200000} ATOMREDIS_PRESSURE_KILLS=${KILLS:-200} ATOMREDIS_PRESSURE_CRASHES=${CRASHES:-20}
# With one shard and with sixteen, or as set by SHARDS.
for shards in ${SHARDS:-one sixteen}; do
	ATOMREDIS_CONFORMANCE_ADDR=127.0.0.1:${!shards} go test -count=1 -timeout 20m ./conformance/protocols
done

# The console in a browser; the test reports if there is none.
ATOMREDIS_BROWSER=1 go test -count=1 -v -timeout 5m ./conformance/console | grep -v '^=== '

# Clients of several languages and BullMQ: those named by CLIENTS, by default all that can be installed; none with CLIENTS=none.
if [ "${CLIENTS:-}" != none ]; then
	conformance/clients/run.sh 127.0.0.1:$one
fi

# Redis's own tests: all units with TCL=all, none with TCL=none.
units=(unit/scripting unit/functions unit/multi unit/protocol unit/keyspace unit/expire unit/pubsub unit/tracking unit/other unit/pause
	unit/introspection unit/introspection-2 unit/slowlog unit/sort unit/bitops unit/bitfield unit/type/string unit/type/incr unit/type/list
	unit/type/hash unit/type/set unit/type/zset unit/type/stream-cgroups)
case ${TCL:-} in
all) units=() ;;
none) exit ;;
?*) read -ra units <<<"$TCL" ;;
esac
if ! command -v tclsh >/dev/null; then
	DEBIAN_FRONTEND=noninteractive apt-get install -yq tcl
fi
if ! suite=$(conformance/tcl/fetch.sh); then
	echo "the package source of Redis cannot be had: its own tests are not run"
	exit
fi
go run ./conformance/tcl -suite "$suite" -server bin/atomredis -floors conformance/tcl/floors.txt "${units[@]}"
