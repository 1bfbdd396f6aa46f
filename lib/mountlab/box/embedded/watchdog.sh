# Outlives us, to end what we started for a box and to remove its files when we are killed outright.
# $1: the private directory, which the command lines of our processes name; $2: where sshd wants a directory of its own, or
# ''. Standard input: the pids to end, one a line; then 'done' when we have cleaned up ourselves, or nothing any more.
trap '' HUP INT TERM

pids=
while read -r line; do
    [ "$line" != "done" ] || exit 0
    pids="$pids $line"
done

# A number may be another process's by now.
ours() { tr '\0' ' ' <"/proc/$1/cmdline" | grep -qF -- "$directory"; }
directory=$1
# The parent may have ended before it reported its last process.
# shellcheck disable=SC2013 # names of files without blanks
for each in $(grep -lszF -- "$directory" /proc/[0-9]*/cmdline); do
    each=${each#/proc/} each=${each%/cmdline}
    [ "$each" = "$$" ] || pids="$pids $each"
done
for pid in $pids; do
    if ours "$pid"; then kill "$pid"; fi 2>/dev/null
done
for pid in $pids; do
    tries=50
    while [ "$tries" -gt 0 ] && ours "$pid"; do tries=$((tries - 1)); sleep 0.1; done 2>/dev/null
    if ours "$pid"; then kill -9 "$pid"; fi 2>/dev/null
done
rm -rf -- "$directory"

tries=20
while [ -n "$2" ] && [ "$tries" -gt 0 ] && [ -e "$2/.mountlab" ]; do
    # Alone, so that no other Mountlab has just seen the directory there and starts its sshd (loopback.py).
    (
        flock 9 2>/dev/null
        if ! grep -qs '^[0-9]* (sshd.*) [^ZX] ' /proc/[0-9]*/stat; then rm -f -- "$2/.mountlab"; rmdir -- "$2"; fi
    ) 9<"${2%/*}"
    tries=$((tries - 1)); sleep 0.1
done
