#!/bin/sh
# The one program that sudo lets Mountlab's user run as root on this machine. Installed as `helper`, owned by root.
# helper SECONDS RUN WORD...: what RUN and WORD may be, helper.sh says beside it. Nothing of the caller's environment,
# input or limits goes on from here.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
case $1 in
'' | 0* | *[!0-9]* | ??????*)
    echo 'refused: the first word is a time limit in seconds' >&2
    exit 1
    ;;
esac
limit=$1
shift
cd / || exit 1
exec /usr/bin/env -i LC_ALL=C PATH="$PATH" timeout -k 5 "$limit" /bin/sh /usr/local/lib/mountlab/helper.sh "$@" </dev/null
