#!/bin/sh
# An upgrade restarts the server when the new one is there.
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now atomredis.service atomredis.socket || true
fi
