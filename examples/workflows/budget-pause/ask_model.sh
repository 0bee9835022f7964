#!/bin/sh
# Stands for a call of a model: it costs $1 USD and answers $2.
printf '{"cost_usd": %s, "input_tokens": 1200, "output_tokens": 300, "model": "example-large"}' "$1" \
    >"$FAILWELL_USAGE_OUT"
echo "$2"
