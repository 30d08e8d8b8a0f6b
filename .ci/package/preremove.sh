#!/bin/sh
set -e
# An upgrade keeps the service; what is removed is stopped. The data stays.
case "$1" in
  remove | 0)
    if [ -d /run/systemd/system ]; then systemctl disable --now ecotone || true; fi
    ;;
esac
