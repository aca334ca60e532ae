#!/usr/bin/env bash
# Builds packages and tarballs into bin/packages, for the named systems or for all.
# BUILDFLAGS (-trimpath) are flags of go build. Usage: build.sh [linux/amd64 linux/arm64 darwin/arm64 windows/amd64]
set -euo pipefail
cd "$(dirname "$0")/.."
out=bin/packages
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0
version=$(sed -n 's/.*Number *= *"\(.*\)".*/\1/p' internal/version/version.go)
rm -rf "$out"
mkdir -p "$out/share/man"
export CGO_ENABLED=0
flags="${BUILDFLAGS--trimpath} -tags grpcnotrace" # see make build

# Files that are the same for all systems, written by the binary of this one.
go build $flags -o "$out/share/atomredis" ./cmd/atomredis
"$out/share/atomredis" man "$out/share/man"
gzip -9n "$out"/share/man/*
"$out/share/atomredis" completion bash >"$out/share/atomredis.bash"
"$out/share/atomredis" completion zsh >"$out/share/_atomredis"
"$out/share/atomredis" completion fish >"$out/share/atomredis.fish"

[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/arm64 windows/amd64
for system in "$@"; do
	os=${system%/*} arch=${system#*/} name=atomredis_${version}_${system/\//_}
	mkdir "$out/$name"
	binary=$out/$name/atomredis
	[ "$os" != windows ] || binary=$binary.exe
	GOOS=$os GOARCH=$arch go build $flags -ldflags "-s -w" -o "$binary" ./cmd/atomredis
	# The modules in the binary with versions and checksums.
	go version -m "$binary" >"$out/$name.sbom.txt"
	cp LICENSE README.md packaging/atomredis.conf "$out/$name.sbom.txt" "$out/$name/"
	cp -r "$out/share/man" "$out/$name/man"
	tar --owner=0 --group=0 --sort=name -C "$out" -czf "$out/$name.tar.gz" "$name"
	if [ "$os" = linux ]; then
		ARCH=$arch VERSION=$version BINARY=$binary GOFLAGS=-mod=mod \
			go run "$nfpm" package -f packaging/nfpm.yaml -p deb -t "$out/"
	fi
done
(cd "$out" && find . -maxdepth 1 -name '*.tar.gz' -o -name '*.deb' | sort | sed 's,^\./,,' | xargs sha256sum >SHA256SUMS)
ls -l "$out"
