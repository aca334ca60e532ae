#!/usr/bin/env bash
# Compares atomredis with redis-server on this machine; bench/README.md describes the measurements and their settings. Results go
# to bench/results/.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v redis-server >/dev/null || ! command -v redis-benchmark >/dev/null; then
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -yq redis-server redis-tools
fi
mkdir -p bench/results
server=${SERVER:-bin/atomredis}

if [ -n "${SMOKE:-}" ]; then
	go run ./bench/compare -server "$server" -name smoke -rounds 1 -time 20ms -keys 1000
	go run ./bench/compare -server "$server" -name smoke -rounds 1 -time 20ms -keys 1000 -durability always -zipf 1.1 -workload set,hset,xadd
	go run ./bench/compare -server "$server" -all 3000
	go run ./bench/memory -server "$server" -scale 0.002 -wait 10ms
	go run ./bench/checkpoint -server "$server" -rounds 1 -keys 20000 -rate 5000 -quiet 1s
	go run ./bench/restart -rounds 1 -keys 20000 -tail 5000
	go run ./bench/amplification -rounds 1 -fields 1000 -wait 1s
	go run ./bench/growth -sizes 1000,10000 -ops 1000
	go run ./bench/doors -server "$server" -rounds 1 -time 20ms -keys 300
	go run ./bench/group -server "$server" -rounds 1 -time 20ms -keys 300
	go run ./bench/types -server "$server" -rounds 1 -time 20ms -keys 300 -samples 3000 -items 3000 -vectors 300
	go run ./bench/search -server "$server" -rounds 1 -time 20ms -documents 2000 -vectors 300
	exit
fi

name=compare
compare=(-server "$server")
if [ -n "${FULL:-}" ]; then
	name=full
	compare+=(-full)
fi
compare+=(-name "${NAME:-$name}")
for variable in WORKLOAD ROUNDS OPEN TIME DURABILITY PIPELINE CONNS SIZE KEYS ZIPF; do
	if [ -n "${!variable:-}" ]; then
		compare+=("-${variable,,}" "${!variable}")
	fi
done
if [ "${WORKLOAD:-}" != search ]; then
	go run ./bench/compare "${compare[@]}"
fi
if [ -z "${WORKLOAD:-}" ]; then
	go run ./bench/doors -server "$server" -rounds "${ROUNDS:-5}"
	go run ./bench/group -server "$server" -rounds "${ROUNDS:-3}"
	go run ./bench/types -server "$server" -rounds "${ROUNDS:-5}"
fi
if [ -z "${WORKLOAD:-}" ] || [ "$WORKLOAD" = search ]; then
	go run ./bench/search -server "$server" -rounds "${ROUNDS:-5}" -reference "${REFERENCE:-}" -module "${MODULE:-}"
fi

if [ -n "${FULL:-}" ]; then
	go run ./bench/compare -server "$server" -all 100000 | tee bench/results/redis-benchmark.txt
	go run ./bench/memory -server "$server" | tee bench/results/memory.txt
	go run ./bench/checkpoint -server "$server" -rounds "${ROUNDS:-5}" | tee bench/results/checkpoint.txt
	go run ./bench/restart -rounds "${ROUNDS:-5}" | tee bench/results/restart.txt
	go run ./bench/amplification | tee bench/results/amplification.txt
	go run ./bench/growth | tee bench/results/growth.txt
fi
