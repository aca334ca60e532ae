#!/usr/bin/env bash
# Runs real clients against the server at ADDRESS, and prints a line for each. Installs their dependencies: Debian's packages by
# apt-get, and those in node/package-lock.json by npm into the cache. A client that cannot be installed is reported and left out.
# Usage: run.sh ADDRESS [cache directory]
# CLIENTS="node bullmq python hiredis go redis-cli" chooses clients, LIMIT is the most seconds that each may take, JOBS and WORKERS
# set the size of BullMQ's test.
set -uo pipefail
cd "$(dirname "$0")"
address=${1:?the address of a server}
cache=${2:-${XDG_CACHE_HOME:-${HOME:-${TMPDIR:-/tmp}}/.cache}/atomredis}/clients
limit=${LIMIT:-60}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

all="node bullmq python hiredis go redis-cli"
clients=${CLIENTS:-$all}
for client in $clients; do
	[[ " $all " == *" $client "* ]] || { echo "there is no client $client, only $all" >&2; exit 2; }
done

wanted() { [[ " $clients " == *" $1 "* ]]; }

# apt installs packages if the command before -- fails.
apt() {
	local probe=()
	while [ "$1" != -- ]; do probe+=("$1"); shift; done
	shift
	"${probe[@]}" >"$work/probe" 2>&1 && return
	{ [ -e "$work/updated" ] || timeout 120 apt-get update -q; } >"$work/apt" 2>&1 && touch "$work/updated" &&
		DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -yq "$@" >"$work/apt" 2>&1 && "${probe[@]}" >"$work/probe" 2>&1
}

# node20 reports whether there is a Node.js that the clients run on.
node20() { node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' && npm --version; }

# packages puts the packages of Node.js into the cache, as listed in the lock file.
# Not npm ci: it insists on optional packages for other systems.
packages() {
	if ! cmp -s node/package-lock.json "$cache/complete"; then
		mkdir -p "$cache" && cp node/package.json node/package-lock.json "$cache" &&
			(cd "$cache" && timeout 90 npm install --fetch-retries=0 --omit=optional --ignore-scripts --no-audit --no-fund) >"$work/npm" 2>&1 && cp node/package-lock.json "$cache/complete"
	fi
}

left_out() { echo "$1: left out: $2"; }

# check runs a program, which prints what passed or what failed.
check() {
	local name=$1
	shift
	if ! timeout -k 5 "$limit" "$@" >"$work/out" 2>&1; then
		failed=1
		echo "$name: FAILED"
		tail -20 "$work/out" | sed 's/^/    /'
	else
		cat "$work/out"
	fi
}

if wanted node || wanted bullmq; then
	if ! apt node20 -- nodejs npm; then
		left_out "ioredis, node-redis, bullmq" "there is no Node.js 20 or later"
	elif ! packages; then
		left_out "ioredis, node-redis, bullmq" "npm cannot install them"
	else
		export NODE_PATH=$cache/node_modules
		if wanted node; then
			check ioredis node node/ioredis.js "$address"
			check node-redis node node/node_redis.js "$address"
		fi
		if wanted bullmq; then
			check bullmq node node/bullmq.js "$address"
		fi
	fi
fi
if wanted python; then
	# Debian's own Python, because Debian's packages are for it.
	if apt /usr/bin/python3 -I -c 'import redis' -- python3-redis; then
		check redis-py /usr/bin/python3 python/smoke.py "$address"
	else
		left_out redis-py "apt-get cannot install it"
	fi
fi
if wanted hiredis; then
	if apt cc -Wall -Wextra -O1 -o "$work/hiredis" hiredis/smoke.c -lhiredis -- gcc libc6-dev libhiredis-dev; then
		check hiredis "$work/hiredis" "$address"
	else
		left_out hiredis "it cannot be installed or compiled"
		sed 's/^/    /' "$work/probe"
	fi
fi
if wanted go; then
	check go env ATOMREDIS_CONFORMANCE_ADDR="$address" sh -c 'reply=$(go test -count=1 . 2>&1) || { echo "$reply"; exit 1; }
		go list -m -f "{{.Path}} {{.Version}}" github.com/redis/go-redis/v9 github.com/gomodule/redigo github.com/redis/rueidis'
fi
if wanted redis-cli; then
	if apt redis-cli --version -- redis-tools; then
		check redis-cli ./redis-cli/modes.sh "$address"
	else
		left_out redis-cli "apt-get cannot install it"
	fi
fi
exit $failed
