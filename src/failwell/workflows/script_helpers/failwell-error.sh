# Raises a typed error from a shell script that failwell runs. Source it, then call:
#
#   failwell_error KIND MESSAGE [DETAILS_JSON]
#
# for example
#
#   failwell_error external.git.drift "the branch moved" '{"branch": "main"}'
#
# It writes the error and returns; how the script ends is its own affair. Works in any POSIX shell.
# Details are checked and need python3; without details nothing but the shell is needed.

# The body is a subshell: no variable of the script is touched, and nothing in here can end it.
failwell_error() (
    set +eu
    path=${FAILWELL_ERROR_OUT:-$CONDUCTOR_ERROR_OUT}
    if [ -z "$path" ]; then
        echo "failwell_error: FAILWELL_ERROR_OUT is not set: run this script as a step of \`failwell run\`" >&2
        exit 1
    fi
    if [ $# -lt 2 ] || [ $# -gt 3 ] || [ -z "$1" ] || [ -z "$2" ]; then
        echo "failwell_error: usage: failwell_error KIND MESSAGE [DETAILS_JSON]" >&2
        exit 2
    fi
    draft=$path.$$.tmp
    umask 077

    if command -v python3 >/dev/null 2>&1; then
        python3 -I -S -c '
import json, os, sys

def refuse(reason):
    sys.exit("failwell_error: DETAILS_JSON " + reason + "; nothing was written")

def whole(text):
    return os.fsencode(text).decode("utf-8", "replace")

def constant(word):
    refuse("holds " + word + ", which is not JSON")

draft, path, kind, message = sys.argv[1:5]
error = {"failwell_error": True, "kind": whole(kind), "message": whole(message)}
if len(sys.argv) > 5:
    try:
        error["details"] = json.loads(whole(sys.argv[5]), parse_constant=constant)
    except ValueError as problem:
        refuse("is not valid JSON: " + str(problem))
    if not isinstance(error["details"], dict):
        refuse("is not an object")
with open(draft, "w", encoding="utf-8") as file:
    json.dump(error, file)
os.replace(draft, path)
' "$draft" "$path" "$@"
        exit
    fi

    if [ $# -eq 3 ]; then
        echo "failwell_error: DETAILS_JSON needs python3, which was not found; nothing was written" >&2
        exit 3
    fi

    # $1 as the inside of a JSON string, left in $escaped.
    escape() {
        rest=$1
        escaped=
        while [ -n "$rest" ]; do
            tail=${rest#?}
            first=${rest%"$tail"}
            rest=$tail
            case $first in
                '"') escaped=$escaped'\"' ;;
                '\') escaped=$escaped'\\' ;;
                [[:cntrl:]]) escaped=$escaped$(printf '\\u%04x' "'$first") ;;
                *) escaped=$escaped$first ;;
            esac
        done
    }
    escape "$1"
    kind=$escaped
    escape "$2"
    printf '{"failwell_error": true, "kind": "%s", "message": "%s"}' "$kind" "$escaped" >"$draft" &&
        mv -f "$draft" "$path"
)
