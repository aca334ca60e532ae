#!/usr/bin/env bash
# Compares atomredis with redis-server on this machine, in memory and durable, and shows how operations grow with the size of
# their collections. Results go to bench/results/. ROUNDS and REQUESTS change the size of the run; SMOKE=1 makes it a quick check that
# everything still runs.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v redis-server >/dev/null || ! command -v redis-benchmark >/dev/null; then
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -yq redis-server redis-tools
fi
mkdir -p bench/results
if [ -n "${SMOKE:-}" ]; then
	go run ./bench/compare -rounds 1 -requests 20000
	go run ./bench/compare -rounds 1 -requests 20000 -r 10000 -appendfsync always
	go run ./bench/checkpoint -rounds 1 -keys 20000 -rate 5000 -quiet 1s
	go run ./bench/restart -rounds 1 -keys 20000 -tail 5000
	go run ./bench/amplification -rounds 1 -fields 1000 -wait 1s
	go run ./bench/growth -sizes 1000,10000 -ops 1000
	exit
fi
go run ./bench/compare -all -rounds "${ROUNDS:-5}" -requests "${REQUESTS:-1000000}" | tee bench/results/compare.txt
for policy in everysec always; do
	for keys in 100000 5000000; do
		go run ./bench/compare -appendfsync $policy -r $keys -rounds "${ROUNDS:-5}" -requests "${REQUESTS:-1000000}" |
			tee "bench/results/compare-$policy-$keys.txt"
	done
done
go run ./bench/checkpoint -rounds "${ROUNDS:-5}" | tee bench/results/checkpoint.txt
go run ./bench/restart -rounds "${ROUNDS:-5}" | tee bench/results/restart.txt
go run ./bench/amplification | tee bench/results/amplification.txt
go run ./bench/growth | tee bench/results/growth.txt
