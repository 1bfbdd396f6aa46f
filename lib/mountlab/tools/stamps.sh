# Run "$@" after its name, and print `timed NAME` with the readings of the clock that wall_clock.py knows.
timed() {
    what=$1
    shift
    first=$(date +%s%N)
    read -r a _ < /proc/uptime
    start=$(date +%s%N)
    read -r b _ < /proc/uptime
    "$@" || exit 1
    read -r c _ < /proc/uptime
    end=$(date +%s%N)
    read -r d _ < /proc/uptime
    echo "timed $what $first $start $end $a $b $c $d"
}
