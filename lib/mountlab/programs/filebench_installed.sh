# Makes a script for filebench of a workload that was installed with it. $1: its name; $2: the directory for its files;
# $3: the command to be run before the measured part; $4: the seconds to run; $5: the script to make.
program=$(readlink -f "$(command -v filebench)") || exit 1
places=
for share in "${program%/*/*}/share" /usr/share /usr/local/share; do
    workloads=$share/filebench/workloads
    [ ! -f "$workloads/$1.f" ] || break
    [ ! -d "$workloads" ] || places="$places $workloads"
done
if [ ! -f "$workloads/$1.f" ]; then
    echo "filebench has no workload $1 on this box; those that it has are in${places:- no place that we know}"
    exit 1
fi
body=$(sed -e 's/#.*//' -e 's/[[:space:]]*$//' "$workloads/$1.f" | grep -v -E -e '^$' \
    -e '^[[:space:]]*set[[:space:]]+\$dir[[:space:]]*=' -e '^[[:space:]]*(run|psrun|echo|version)([[:space:]]|$)')
odd=$(printf '%s\n' "$body" | grep -E -e '/' -e '\.\.' -e '(^|[^A-Za-z_-])system([^A-Za-z_-]|$)' \
    -e 'path=($|[^$]|\$[^d]|\$d[^i]|\$di[^r]|\$dir[A-Za-z0-9_])' | head -n 3 | tr '\n' ';')
if [ -n "$odd" ]; then
    echo "filebench's own workload $1 would work outside of our directory, or run a command: $odd"
    exit 1
fi
run="run $4"
if printf '%s\n' "$body" | grep -q -E 'set +mode +quit +(firstdone|alldone)|flowop +finishon'; then run=run; fi
printf 'set $dir=%s\n%s\ncreate files\nsystem "%s"\n%s\n' "$2" "$body" "$3" "$run" >"$5"
