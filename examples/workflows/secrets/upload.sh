#!/bin/sh
# A careless script: it prints the token that it was given, and tells it in its error.
case $UPLOAD_TOKEN in
    expired-*)
        printf '{"kind": "external.store.token_refused", "message": "%s is refused"}' "$UPLOAD_TOKEN" \
            >"$FAILWELL_ERROR_OUT"
        ;;
    *) echo "uploaded with $UPLOAD_TOKEN, ${#UPLOAD_TOKEN} characters" ;;
esac
