#!/bin/sh
# Writes an announcement for $1 in the tone $2.
case $2 in
    dry) echo "To $1: version 3 is out." ;;
    *) echo "Dear $1, we are happy to bring you version 3!" ;;
esac
