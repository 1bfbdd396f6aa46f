# serve.sh MODE DIRECTORY [LIMIT OWNER]
# fio as a server, for a trial that this box drives together with others. It listens at the unix socket s in DIRECTORY,
# which is OWNER's alone, and nowhere else: a program that can talk to it has a shell of this user.
#   serve  make DIRECTORY and serve, LIMIT seconds at most, as long as standard input is open: as long as somebody over
#          there has the connection
#   wait   until it listens
#   stop   end it, and all that it has started; print a tar archive of what it leaves to know; remove DIRECTORY
directory=$2

# By the environment that they have from us: jobs of fio's have sessions of their own.
ours() { grep -lszxF -- "MOUNTLAB_SERVE=$directory" /proc/[0-9]*/environ | sed 's/[^0-9]//g'; }

end() {
    tries=40
    signal=TERM
    while found=$(ours); [ -n "$found" ] && [ "$tries" -gt 0 ]; do
        for each in $found; do kill -s "$signal" "$each" 2>/dev/null; done
        [ "$tries" -gt 30 ] || signal=KILL
        tries=$((tries - 1))
        sleep 0.05
    done
    [ -z "$found" ] || { echo "cannot be ended: $found" >&2; exit 1; }
}

# What each job of fio's may do first on this box, by `exec_prerun`; fio does not mind how that ends, so it is noted.
scripts() {
    cat > drop <<'EOT'
sync
if { echo 3 > /proc/sys/vm/drop_caches; } 2>/dev/null; then how=drop_caches
elif [ -z "$(find "$1" -type f -exec dd if={} iflag=nocache count=0 status=none \; 2>&1)" ]; then how=fadvise
else exit 1; fi
echo $how > cache
EOT
    cat > warm <<'EOT'
find "$1" -type f -exec cat {} + > /dev/null && echo filled > cache
EOT
}

# Words before the server by which the kernel ends all that it has started when it ends: a PID namespace of its own, '' where
# this box allows none. An ordinary user needs a user namespace for that, in which he stays who he is. What others unmount goes
# there too: else their disks would stay busy as long as the server serves.
container() {
    for words in 'unshare -m --propagation slave -p -f --mount-proc --kill-child' \
        'unshare -U --map-current-user -m --propagation slave -p -f --mount-proc --kill-child'; do
        $words true && printf %s "$words" && return
    done 2>/dev/null
}

case $1 in
serve)
    umask 077
    mkdir "$directory" && cd "$directory" && scripts || exit
    [ "$(id -u)" != 0 ] || chown "$4" . || exit
    # shellcheck disable=SC2046 # words, or none
    MOUNTLAB_SERVE=$directory setsid $(container) timeout -k 5 "$3" fio --server=sock:"$directory/s" > log 2>&1 < /dev/null &
    cat > /dev/null
    end
    ;;
wait)
    tries=200
    until [ -S "$directory/s" ]; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || { cat "$directory/log"; exit 1; }
        sleep 0.05
    done
    ;;
stop)
    [ -d "$directory" ] || exit 0
    cd "$directory" || exit
    ours | grep -q . && echo running > server || echo ended > server
    end
    rm -f s
    tar -cf - server log cache 2>/dev/null
    cd / && rm -rf "$directory"
    ;;
esac
