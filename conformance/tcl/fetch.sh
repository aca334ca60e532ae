#!/usr/bin/env bash
# Prints the directory of the tests of Redis 7.0.15, after fetching Debian's source package to the cache if it is not there yet. Only the
# source's tests are unpacked, as Redis published them. Nothing of the system's package lists is changed.
# Usage: fetch.sh [cache directory]
set -euo pipefail
version=7.0.15
cache=${1:-${XDG_CACHE_HOME:-${HOME:-${TMPDIR:-/tmp}}/.cache}/atomredis}
dir=$cache/redis-$version
if [ ! -e "$dir/complete" ]; then
	{
		mkdir -p "$dir"
		work=$(mktemp -d)
		trap 'rm -rf "$work"' EXIT
		# The system's package sources, asked for source packages.
		mkdir -p "$work/sources" "$work/lists/partial" "$work/cache/archives/partial"
		for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list; do
			if [ -e "$f" ]; then
				sed -e 's/^Types:.*/Types: deb-src/' -e 's/^deb /deb-src /' "$f" >"$work/sources/$(basename "$f")"
			fi
		done
		cd "$work"
		apt=(apt-get -q -o APT::Sandbox::User=root -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$work/sources"
			-o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache")
		"${apt[@]}" update
		"${apt[@]}" source --download-only --tar-only redis
		tar -C "$dir" -xzf "redis_$version.orig.tar.gz" --strip-components=1 --wildcards '*/tests'
		# Where the tests look for the tools.
		mkdir -p "$dir/src"
		for tool in redis-cli redis-benchmark; do
			ln -sf "$(command -v $tool)" "$dir/src/$tool"
		done
		touch "$dir/complete"
	} >&2
fi
echo "$dir"
