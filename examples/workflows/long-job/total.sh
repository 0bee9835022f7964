#!/bin/sh
# Counts the entries of ledger $1.
echo "{\"entries\": $(ls "$1/entries" | wc -l)}"
