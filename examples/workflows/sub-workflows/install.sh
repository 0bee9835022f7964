#!/bin/sh
# Installs the new version on host $1. Two hosts have something wrong with them.
raise() {
    printf '{"kind": "%s", "message": "%s", "details": {"host": "%s"}}' "$1" "$2" "$3" >"$FAILWELL_ERROR_OUT"
}
case $1 in
    full) raise external.host.disk_full "no room for the new version" "$1" ;;
    lost) raise external.host.unreachable "no route to the host" "$1" ;;
    *) echo "installed on $1" ;;
esac
