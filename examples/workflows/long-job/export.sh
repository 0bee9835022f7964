#!/bin/sh
# Exports part $2 into ledger $1, once for each idempotency key.
mkdir -p "$1/entries"
entry=$1/entries/$(echo "$FAILWELL_IDEMPOTENCY_KEY" | tr '/' '_')
if [ -e "$entry" ]; then
    echo "$2 was there before" >>"$1/log"
    exit 0
fi
echo "$2" >"$entry.new" && mv "$entry.new" "$entry"
echo "$2" >>"$1/log"
# For trying it out: the part after which the host is to die hangs while there is a file `hang`.
while [ -e "$1/hang-$2" ]; do sleep 0.05; done
