#!/bin/sh
# systemd's tools create the user and the data directory; without them this script does.
set -e
[ "$1" = configure ] || exit 0
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers atomredis.conf
elif ! getent passwd atomredis >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/atomredis --no-create-home --shell /usr/sbin/nologin atomredis
fi
mkdir -p /var/lib/atomredis
chown atomredis:atomredis /var/lib/atomredis
chmod 0700 /var/lib/atomredis
chown root:atomredis /etc/atomredis/atomredis.conf
chmod 0640 /etc/atomredis/atomredis.conf
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ -z "$2" ]; then
		systemctl enable --now atomredis.service
	else
		systemctl try-restart atomredis.service
	fi
fi
