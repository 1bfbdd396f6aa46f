# Runs the tool of a diagnostic trial below strace (mountlab.sweep.profiled), in its place: as the same user, in the same
# directory and the same namespaces. $1: the directory of the trial's output; $2: the directory under test; $3: the calls that
# are recorded; then the command. `filter`, put in front, is the text of program_calls.sh. Where strace cannot trace,
# `unprofiled` says why, and nothing is measured.
out=$1 directory=$2 calls=$3
shift 3
quoted() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }
if ! said=$(strace -f -o /dev/null true 2>&1); then
    printf '%s\n' "$said" | tail -c 300 | tr '\n' ' ' > "$out/unprofiled"
    exit 1
fi
# Calls that are not recorded then cost nothing (strace 5.3, Linux 4.8).
quick=''
! strace --seccomp-bpf -f -o /dev/null true > /dev/null 2>&1 || quick=--seccomp-bpf
# shellcheck disable=SC2086,SC2154 # a word or none; put in front
exec strace $quick -q -f -ttt -T -y -s 0 -e "trace=$calls" -e 'abbrev=!io_submit,io_getevents' -o "|out=$(quoted "$out") directory=$(quoted "$directory")
$filter" "$@"
