#!/bin/sh
# Creates an account for customer $1. One customer has one already.
if [ "$1" = globex ]; then
    printf '{"kind": "external.crm.duplicate", "message": "globex has an account"}' >"$FAILWELL_ERROR_OUT"
else
    printf '{"account": "%s-1", "seats": 5}\n' "$1"
fi
