# One step: writes its name into the ledger, waits for the file named after it if one is asked for, prints a number.
#
#   sh step.sh LEDGER NAME [wait|guard]
ledger=$1 name=$2 how=${3:-}
echo "$name" >>"$ledger/ran"
case $how in
    wait) while [ ! -e "$ledger/$name.go" ]; do sleep 0.05; done ;;
    guard)
        if [ ! -e "$ledger/$name.go" ]; then
            printf '{"kind": "external.ledger.locked", "message": "the ledger is locked", "details": {"step": "%s"}}' \
                "$name" >"$FAILWELL_ERROR_OUT"
        fi
        ;;
esac
echo '{"length": '"${#name}"'}'
