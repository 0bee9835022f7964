#!/bin/sh
# The steps of a release, played: $1 is the step, $2 the version. Version 2.4.1 goes live broken, and
# version 2.5.0 finds the signing key gone unless there is one in the folder $3.
raise() {
    printf '{"kind": "%s", "message": "%s", "details": %s}' "$1" "$2" "${3:-{\}}" >"$FAILWELL_ERROR_OUT"
    exit 1
}
case $1 in
    build | unit | lint | docs)
        sleep "${PACE:-0}"
        echo "$1 is fine"
        ;;
    deploy)
        sleep "${PACE:-0}"
        if [ "$FAILWELL_RETRY_ATTEMPT" -lt 2 ]; then
            raise external.cluster.busy "the cluster is busy with another deployment"
        fi
        echo "$2 is live"
        ;;
    check)
        sleep "${PACE:-0}"
        if [ "$2" = 2.4.1 ]; then
            raise external.live.unhealthy "$2 answers every third request with 500" '{"previous": "2.4.0"}'
        fi
        ;;
    rollback)
        sleep "${PACE:-0}"
        echo "$2 is live again"
        ;;
    sign)
        if [ "$2" = 2.5.0 ] && [ ! -e "$3/signing.key" ]; then
            raise external.signing.key_missing "there is no signing.key" '{"expired": "2026-01-31"}'
        fi
        echo "{\"artifact\": \"app-$2.tar.gz.sig\"}"
        ;;
esac
