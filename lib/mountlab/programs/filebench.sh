# Runs "$@" (filebench) without address-space randomisation, under which it hangs for ever, and removes what it leaves
# when it fails or is ended: workers, a file of 180 MB in /tmp, and the semaphores that are named after that file.
before=" $(echo /tmp/filebench-shm-*) "
shared=
setarch "$(uname -m)" -R "$@" &
pid=$!
trap 'kill -s TERM "$pid" 2>/dev/null' TERM INT HUP
while [ -z "$shared" ] && kill -0 "$pid" 2>/dev/null; do
    shared=$(sed -n 's|.* \(/tmp/filebench-shm-[A-Za-z0-9]*\)$|\1|p' "/proc/$pid/maps" 2>/dev/null | head -n 1)
    [ -n "$shared" ] || sleep 0.05
done
wait "$pid"
status=$?
while kill -0 "$pid" 2>/dev/null; do # a signal ends wait, and not yet what it waits for
    wait "$pid"
    status=$?
done

# Who uses the file $1, by process number.
users_of() { grep -ls -- "$1" /proc/[0-9]*/maps | sed 's/[^0-9]//g'; }

# The file $1 and its semaphores, whose key is ftok($1, 1).
forget() {
    [ -f "$1" ] || return
    key=$(stat -c '%d %i' "$1" | { read -r device inode && echo $((1 << 24 | (device & 255) << 16 | inode & 65535)); })
    ipcrm -S "$key" 2>/dev/null
    rm -f -- "$1"
}

if [ -n "$shared" ]; then
    for worker in $(users_of "$shared"); do kill -s KILL "$worker" 2>/dev/null; done
    forget "$shared"
fi
for file in /tmp/filebench-shm-*; do # it was over before we could look
    case $before in *" $file "*) continue ;; esac
    [ -n "$(find "$file" -prune -user "$(id -u)" 2>/dev/null)" ] || continue
    [ -n "$(users_of "$file")" ] || forget "$file"
done
exit "$status"
