# Run "$@". Prints in sections, as mountlab.filesystems.evidence reads them, how long it took and what the kernel logged meanwhile;
# what the command itself says goes to standard error.
# Sets $1 to the nanoseconds of the wall clock. The date of BusyBox knows whole seconds only, but its shell (1.34 and later)
# knows microseconds. Where neither tells, $1 is empty, and how long it took is left out.
clock() {
    now=$(date +%s%N)
    # shellcheck disable=SC3028 # empty in a shell without it
    case $now in *[!0-9]*)
        now=${EPOCHREALTIME:-}
        now=${now%.*}${now#*.}${now:+000}
        ;;
    esac
    eval "$1=\$now"
}
last=$(dmesg 2>/dev/null | tail -n 1)
export last
clock started
"$@" >&2 </dev/null
status=$?
clock ended
[ -z "$started" ] || printf '==> elapsed_ns <==\n%s\n' $((ended - started))
echo '==> kernel <=='
# Of a log that has turned over meanwhile, the end.
dmesg 2>/dev/null | awk '{ line[NR] = $0 } $0 == ENVIRON["last"] { n = NR }
    END { for (i = (NR - n > 100 ? NR - 99 : n + 1); i <= NR; i++) print line[i] }'
exit $status
