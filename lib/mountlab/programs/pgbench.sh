# pgbench.sh POSTGRES PGBENCH prepare|measure DIRECTORY OUTPUT ...
# A PostgreSQL cluster on the file system under test, and pgbench against it.
#   POSTGRES, PGBENCH  the programs; others of the server are taken from beside POSTGRES
#   DIRECTORY, OUTPUT  of the trial. Beside OUTPUT, in `kept`, the cluster stays for later trials of the run
#   prepare SCALE SEGMENT CHECKSUMS: put a cluster into DIRECTORY/data. SEGMENT: MiB of a file of the write-ahead log
#   measure SETTING... -- OPTION...: start the server with SETTING=VALUE, and run pgbench with these options
# The server refuses root: root gives it to the account postgres, or else to number 65534, which owns nothing. All reach its directory by descriptor 9:
# a socket takes no path of more than 107 bytes, and the account may not enter the directories above.
postgres=$(readlink -f "$(command -v "$1")") pgbench=$2 act=$3 directory=$4 output=$5
shift 5
bin=${postgres%/*}
longest=60 here=/proc/self/fd/9 user=mountlab server='' as_owner='' alone=''
LC_ALL=C
export LC_ALL
# The environment of the box may name other servers.
for name in $(env | sed -n 's/^\(PG[A-Z]*\)=.*/\1/p'); do unset "$name"; done
cd / || exit

complaints() { [ ! -s "$output/server.log" ] || grep -E 'FATAL|PANIC|ERROR' "$output/server.log" | tail -n 5 >&2; }

fail() {
    complaints
    printf '%s\n' "$1" >&2
    exit 1
}

for name in initdb pg_isready psql; do
    [ -x "$bin/$name" ] || fail "$name is not beside $postgres: install the server and the client of PostgreSQL in one version"
done
[ ! -x "$bin/pgbench" ] || pgbench=$bin/pgbench # another one on PATH may be a wrapper

if [ "$(id -u)" = 0 ]; then
    command -v setpriv > /dev/null || fail 'setpriv is missing, by which root starts the server as another user: install util-linux'
    owner=$(id -u postgres 2> /dev/null) || owner=65534
    as_owner="setpriv --reuid=$owner --regid=$(id -g postgres 2> /dev/null || echo 65534) --clear-groups"
    # A server that is killed leaves a segment of System V shared memory, unless its namespace goes with it.
    if unshare -i true 2> /dev/null; then alone='unshare -i'; fi
fi

# The directory of the cluster, which its owner alone may enter: the server would not start otherwise.
enter() {
    [ -d "$directory/data" ] || mkdir -m 700 "$directory/data" || exit 1
    [ -z "$as_owner" ] || chown "$owner" "$directory/data" || exit 1
    exec 9< "$directory/data"
}

ask() { "$bin/psql" -XAtq -F ' ' -h "$here" -p 5432 -U "$user" -d postgres -c "$1"; }

# Fail once that has lasted too long which began at `began`.
in_time() {
    read -r now _ < /proc/uptime
    [ $((${now%.*} - ${began%.*})) -lt "$longest" ] || fail "the server of PostgreSQL did not answer within $longest s"
}

# start SETTING...: the server, until it answers. No shared memory of it has a name outside of its directory.
start() {
    for each; do
        set -- "$@" -c "$each"
        shift
    done
    # shellcheck disable=SC2086 # words before the server
    $alone $as_owner "$postgres" -D "$here" -k "$here" -p 5432 -c listen_addresses= -c dynamic_shared_memory_type=mmap \
        "$@" > "$output/server.log" 2>&1 < /dev/null &
    server=$!
    read -r began _ < /proc/uptime
    until "$bin/pg_isready" -q -h "$here" -p 5432 -U "$user" -d postgres; do
        kill -0 "$server" 2> /dev/null || fail 'the server of PostgreSQL did not start'
        in_time
        sleep 0.02
    done
}

# With a checkpoint: what is left in memory is written, as at any orderly end.
stop() {
    kill -INT "$server"
    wait "$server" || fail 'the server of PostgreSQL did not stop in order'
    server=''
}

make_cluster() {
    enter
    set --
    [ "$checksums" = 0 ] || set -- --data-checksums
    # Since version 18 they are the default.
    if [ "$checksums" = 0 ] && "$bin/initdb" --help | grep -q -e --no-data-checksums; then set -- --no-data-checksums; fi
    # shellcheck disable=SC2086 # words before the program
    said=$($as_owner "$bin/initdb" -D "$here" -N -A trust -U "$user" --no-locale -E UTF8 --wal-segsize="$segment" "$@" 2>&1) \
        || fail "initdb failed: $said"
    start fsync=off full_page_writes=off wal_level=minimal max_wal_senders=0 autovacuum=off \
        min_wal_size="$((2 * segment))MB" max_wal_size="$((4 * segment))MB"
    said=$("$pgbench" -i -q -s "$scale" -h "$here" -p 5432 -U "$user" postgres 2>&1) || fail "pgbench -i failed: $said"
    stop
}

# The same files for each trial of the run, in the same order and each written from its beginning to its end.
prepare() {
    scale=$1 segment=$2 checksums=$3
    version=$("$postgres" --version | tr -c 'A-Za-z0-9.\n' _)
    mkdir -p "${output%/*}/kept" || exit 1
    kept=${output%/*}/kept/pgbench-$scale-$segment-$checksums-$version.tar.gz
    if [ ! -e "$kept" ]; then
        make_cluster
        { tar -C "$directory/data" -cf - . | gzip -1 > "$kept.new"; } || fail "no copy of the cluster could be kept in ${kept%/*}"
        mv "$kept.new" "$kept" || exit 1
        exec 9<&-
        rm -rf "$directory/data" "$output/server.log"
    fi
    enter
    said=$(gzip -dc "$kept" | tar -C "$directory/data" -xf - 2>&1) || fail "the cluster could not be copied: $said"
    enter
}

# counters WHEN: what the server has counted, after its other backends have reported and are gone.
counters() {
    read -r began _ < /proc/uptime
    while [ "$(ask "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")" != 0 ]; do
        kill -0 "$server" 2> /dev/null || fail 'the server of PostgreSQL has ended'
        in_time
        sleep 0.02
    done
    ask "select '$1', 'xact_commit', xact_commit from pg_stat_database where datname = 'postgres'"
    if [ "$number" -ge 180000 ]; then ask "select '$1', 'wal_sync', sum(fsyncs) from pg_stat_io where object = 'wal'"
    elif [ "$number" -ge 140000 ]; then ask "select '$1', 'wal_sync', wal_sync from pg_stat_wal"; fi
} >> "$output/server"

measure() {
    enter
    settings=''
    names="'server_version_num'"
    while [ "$1" != -- ]; do
        case $1 in
        ?*=*) settings="$settings $1" names="$names, '${1%%=*}'" ;;
        *) names="$names, '$1'" ;;
        esac
        shift
    done
    shift
    # shellcheck disable=SC2086 # settings hold no blanks
    start $settings
    ask "select 'setting', name, setting, unit from pg_settings where name in ($names)" > "$output/server" \
        || fail 'the server of PostgreSQL does not tell its settings'
    number=$(sed -n 's/^setting server_version_num \([0-9]*\).*/\1/p' "$output/server")
    counters before
    "$pgbench" -n -h "$here" -p 5432 -U "$user" "$@" postgres || {
        status=$?
        complaints
        exit "$status"
    }
    counters after
    stop
    set -- "$output"/log.*
    [ ! -e "$1" ] || awk '{ n[$3]++ } END { for (us in n) print us, n[us] }' "$@" > "$output/latencies" || exit
    rm -f "$output"/log.*
}

trap '[ -z "$server" ] || { kill -s QUIT "$server" && wait "$server"; } 2> /dev/null' EXIT
trap 'exit 143' TERM INT HUP
"$act" "$@"
