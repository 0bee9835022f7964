#!/bin/sh
# Fails $1 times, then answers. FAILWELL_RETRY_ATTEMPT counts the attempts from 0.
if [ "$FAILWELL_RETRY_ATTEMPT" -lt "$1" ]; then
    echo "attempt $FAILWELL_RETRY_ATTEMPT: 503" >&2
    printf '{"kind": "external.quotes.busy", "message": "the quote service is busy"}' >"$FAILWELL_ERROR_OUT"
    exit 1
fi
echo '{"price": 42.0}'
