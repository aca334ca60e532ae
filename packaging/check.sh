#!/usr/bin/env bash
# Builds the package of this machine's system, installs it in a chroot, and runs the command of the unit. It checks that the
# server reports to the service manager, serves, and has its data after a restart, an upgrade and a removal. Then it checks an
# image with the same binary, and Prometheus's alerts. Packages of other named systems are only built. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
need=()
for tool in debootstrap buildah promtool; do
	command -v $tool >/dev/null || need+=("${tool/promtool/prometheus}")
done
if [ ${#need[@]} -gt 0 ]; then
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends "${need[@]}"
fi
promtool check rules packaging/prometheus/alerts.yml
if [ $# -gt 0 ]; then
	BUILDFLAGS='-pgo=off' packaging/build.sh "$@"
fi
# Without -trimpath the build reuses the cache of make build.
BUILDFLAGS='' packaging/build.sh linux/amd64
deb=$(echo bin/packages/*.deb)

work=$(mktemp -d)
root=$work/root
server=''
trap '[ -z "$server" ] || kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
debootstrap --variant=minbase bookworm "$root" >"$work/debootstrap.log" 2>&1 || { tail "$work/debootstrap.log"; exit 1; }
install_deb() {
	cp "$deb" "$root/atomredis.deb"
	chroot "$root" dpkg -i /atomredis.deb
}
client() { chroot "$root" atomredis cli -p 16379 "$@"; }
# begin starts the unit's command as the unit's user, and waits until it sends READY=1.
begin() {
	/usr/bin/python3 - "$root" >"$work/notified" <<'PY' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1] + "/tmp/notify")
s.settimeout(60)
import os; os.chmod(sys.argv[1] + "/tmp/notify", 0o666)
while b"READY=1" not in (m := s.recv(4096)): pass
print(m.decode())
PY
	local manager=$!
	while [ ! -S "$root/tmp/notify" ]; do sleep 0.05; done
	local command
	command=$(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/atomredis.service")
	chroot --userspec=atomredis:atomredis "$root" env NOTIFY_SOCKET=/tmp/notify $command --port 16379 --logfile /var/lib/atomredis/log &
	server=$!
	wait $manager
	rm "$root/tmp/notify"
	grep -q READY=1 "$work/notified"
}
end() {
	kill $server
	wait $server
	server=''
}

install_deb
begin
[ "$(client set greeting hello)" = OK ]
[ "$(client get greeting)" = hello ]
chroot "$root" atomredis ping -p 16379
end
echo '# changed by the operator' >>"$root/etc/atomredis/atomredis.conf"
install_deb # again, as an upgrade
grep -q 'changed by the operator' "$root/etc/atomredis/atomredis.conf"
begin
[ "$(client get greeting)" = hello ]
end
chroot "$root" dpkg --purge atomredis
[ -d "$root/var/lib/atomredis/journal" ] # the data is kept
echo "package: ok"

# This runs no container and fetches nothing: the image consists of the binary.
binary=$(echo bin/packages/atomredis_*_linux_amd64/atomredis)
mkdir bin/packages/data
buildah --storage-driver vfs bud --format docker --isolation chroot --target prebuilt --build-arg BINARY="$binary" \
	--build-arg DATA=bin/packages/data -f packaging/Dockerfile -t atomredis:check .
container=$(buildah --storage-driver vfs from atomredis:check)
[ "$(buildah --storage-driver vfs run --isolation chroot "$container" -- /usr/bin/atomredis --version | cut -d ' ' -f 1)" = atomredis ]
buildah --storage-driver vfs inspect --type image atomredis:check | grep -q '"User": "65532:65532"'
buildah --storage-driver vfs inspect --type image atomredis:check | grep -q '"Healthcheck"'
buildah --storage-driver vfs push --format docker atomredis:check docker-archive:bin/packages/atomredis-image.tar
buildah --storage-driver vfs rm "$container" >/dev/null
buildah --storage-driver vfs rmi atomredis:check >/dev/null
echo "image: ok"
