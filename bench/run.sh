#!/usr/bin/env bash
# Compares atomredis with redis-server on this machine, and shows how operations grow with the size of their collections.
# Results go to bench/results/. ROUNDS and REQUESTS change the size of the run; SMOKE=1 makes it a quick check that
# everything still runs.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v redis-server >/dev/null || ! command -v redis-benchmark >/dev/null; then
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -yq redis-server redis-tools
fi
mkdir -p bench/results
if [ -n "${SMOKE:-}" ]; then
	go run ./bench/compare -rounds 1 -requests 20000 -all=false
	go run ./bench/growth -sizes 1000,10000 -ops 1000
	exit
fi
go run ./bench/compare -rounds "${ROUNDS:-5}" -requests "${REQUESTS:-1000000}" | tee bench/results/compare.txt
go run ./bench/growth | tee bench/results/growth.txt
