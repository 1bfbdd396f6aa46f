# stamped COMMAND...: run it, and set `stamps` around it: three readings of the wall clock and four of the time since the
# box was started, as mountlab.tools.wall_clock reads them.
stamped() {
    first=$(date +%s%N)
    read -r a _ </proc/uptime
    start=$(date +%s%N)
    read -r b _ </proc/uptime
    "$@" || exit 1
    read -r c _ </proc/uptime
    end=$(date +%s%N)
    read -r d _ </proc/uptime
    stamps="$first $start $end $a $b $c $d"
}

# timed NAME COMMAND...: run it, and print `timed NAME` with its stamps.
timed() {
    what=$1
    shift
    stamped "$@"
    echo "timed $what $stamps"
}
