# Run dd again and again, each time as the first, until its passes took so long together by its own clock.
# $1: nanoseconds; $2: the file whose pages the kernel is to forget between two passes, '' for none; then the command.
least=$1 cold=$2 spent=0
shift 2
while :; do
    report=$("$@" 2>&1)
    status=$?
    printf '%s\n' "$report" >&2
    [ "$status" = 0 ] || exit "$status"
    # uutils up to 0.0.17 prints tenths of a second, 0.0 at worst: its rate tells the time.
    took=$(printf '%s\n' "$report" | awk 'match($0, /copied, [0-9.e+-]+/) {
        seconds = substr($0, RSTART + 8, RLENGTH - 8); rest = substr($0, RSTART + RLENGTH)
        if (seconds ~ /^[0-9]+\.[0-9]$/ && match(rest, /[0-9.]+ ?[kMGT]?B\/s/)) {
            rate = substr(rest, RSTART, RLENGTH); prefix = rate; gsub(/[0-9. ]|B\/s/, "", prefix)
            per_s = rate * 1000 ^ (prefix == "" ? 0 : index("kMGT", prefix))
            seconds = per_s ? $1 / per_s : 0
        }
        ns = 1e9 * seconds; printf "%.0f", ns + !ns }')
    [ -n "$took" ] || exit 0 # its report is read, and refused, afterwards
    spent=$((spent + took))
    [ "$spent" -lt "$least" ] || exit 0
    [ -z "$cold" ] || dd if="$cold" iflag=nocache count=0 2>/dev/null || {
        echo "dd: the pages of $cold could not be dropped for the next pass" >&2
        exit 1
    }
done
