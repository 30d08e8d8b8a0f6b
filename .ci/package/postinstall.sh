#!/bin/sh
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
  systemd-sysusers ecotone.conf
elif ! getent passwd ecotone >/dev/null; then
  useradd --system --home-dir /var/lib/ecotone --shell /usr/sbin/nologin ecotone
fi
chown root:ecotone /etc/ecotone/ecotone.yaml
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  echo "ecotone is installed and not started: systemctl enable --now ecotone"
fi
