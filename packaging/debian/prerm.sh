#!/bin/sh
# An upgrade restarts the server after the new version is installed.
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now atomredis.service atomredis.socket || true
fi
