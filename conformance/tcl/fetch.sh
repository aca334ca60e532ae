#!/usr/bin/env bash
# Prints the directory of the tests of Redis 8.6.3, after downloading Debian's source package to the cache if it is missing. Only
# the tests are unpacked, as Redis published them, and nothing is built. The system's package lists do not change.
# Usage: fetch.sh [cache directory]
set -euo pipefail
version=8.6.3
suite=experimental
cache=${1:-${XDG_CACHE_HOME:-${HOME:-${TMPDIR:-/tmp}}/.cache}/atomredis}
dir=$cache/redis-$version
if [ ! -e "$dir/complete" ]; then
	{
		mkdir -p "$dir"
		work=$(mktemp -d)
		trap 'rm -rf "$work"' EXIT
		mkdir -p "$work/sources" "$work/lists/partial" "$work/cache/archives/partial"
		# The archive named in the system's own sources, but for the source packages of another release.
		files=()
		for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list; do
			[ ! -e "$f" ] || files+=("$f")
		done
		archive=$(sed -nE -e 's/^URIs:[[:space:]]*//p' -e 's/^deb[[:space:]]+(\[[^]]*\][[:space:]]+)?([^[:space:]]+)[[:space:]].*/\2/p' "${files[@]}" |
			tr ' ' '\n' | grep -m1 -E '/debian/?$')
		cat >"$work/sources/$suite.sources" <<-END
			Types: deb-src
			URIs: $archive
			Suites: $suite
			Components: main
			Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
		END
		cd "$work"
		apt=(apt-get -q -o APT::Sandbox::User=root -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$work/sources"
			-o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache")
		"${apt[@]}" update
		"${apt[@]}" source --download-only --tar-only "redis=5:$version-1"
		tar -C "$dir" -xzf "redis_$version.orig.tar.gz" --strip-components=1 --wildcards '*/tests'
		# Where the tests look for the tools: beside the Redis named by ATOMREDIS_REDIS, or otherwise in PATH.
		mkdir -p "$dir/src"
		for tool in redis-cli redis-benchmark; do
			PATH=$(dirname "${ATOMREDIS_REDIS:-/}"):$PATH
			ln -sf "$(command -v $tool)" "$dir/src/$tool"
		done
		touch "$dir/complete"
	} >&2
fi
echo "$dir"
