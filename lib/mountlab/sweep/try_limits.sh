# Needs limits.sh
# Set limits of a neighbour in a cgroup without processes, on the device that they are for, and remove it. Prints
#     cgroups | what is mounted
#     set | LIMIT, or refused | LIMIT | why | what to do; nothing of one that only a mount can show
# with tabs between.
# $1: where cgroups are mounted; $2: type of the file system; $3: its device, a path; '' for none; loop for any loop device
# that is free; unknown for one that only the mount makes: then limits of I/O are left out; or a directory, whose mount has
# both, and which a run may still have to make; $4: the scheduler that the device gets with its mount, '' for that which it
# has; $5: yes for direct I/O, else ''; then each limit and its value.
# shellcheck disable=SC2034 # for limits.sh
cgroups=$1 fstype=$2 devices=$3 scheduler=$4 direct_io=$5
shift 5
# `box clean` knows the name: it removes one that a killed shell left, after a minute.
# shellcheck disable=SC2034 # for limits.sh
own_name=mountlab-limits.t0.$$ group='' more='' enter=''
trap 'for each in $group $more; do rmdir "$each"; done 2>/dev/null' EXIT
trap 'exit 143' TERM INT HUP
trap '' PIPE

describe() {
    awk 'FILENAME == "/proc/cgroups" { known[$1]; next }
        $3 == "cgroup" { n = split($4, words, ","); for (i = 1; i <= n; i++) if (words[i] in known) v1 = v1 " " words[i] }
        $3 == "cgroup2" { v2 = v2 " " $2 }
        END { print (v1 ? v1 : " none") "|" v2 }' /proc/cgroups /proc/mounts | {
        IFS='|' read -r v1 v2
        printf 'cgroups\tv1:%s' "$v1"
        for point in $v2; do
            on=$(cat "$point/cgroup.subtree_control")
            printf '; v2 in %s: %s (enabled: %s)' "$point" "$(cat "$point/cgroup.controllers")" "${on:-none}"
        done
        echo
    }
} 2>/dev/null

free_loops() {
    for each in /sys/block/loop*; do
        [ ! -e "$each/dev" ] || [ -e "$each/loop" ] || echo "/dev/${each##*/}"
    done
}

# On one of the devices.
set_on_one() {
    for device in ${devices:-none}; do
        set_limit "$@"
        status=$?
        [ "$status" != 0 ] || return 0
    done
    return "$status"
}

describe
case $devices in
loop) devices=$(free_loops) devices=${devices:-unknown} ;;
/*)
    if [ ! -b "$devices" ]; then
        while [ ! -d "$devices/" ]; do devices=${devices%/*}; done
        find_mount "$devices/"
        devices=$device
    fi
    ;;
esac
while [ $# -gt 0 ]; do
    case $devices:$1 in
    unknown:io_*) ;;
    *)
        set_on_one "$1" "$2"
        case $? in
        0) printf 'set\t%s\n' "$1" ;;
        1) printf 'refused\t%s\t%s\t%s\n' "$1" "$(printf %s "$why" | tr '\n\t' '  ')" "$mend" ;;
        esac
        ;;
    esac
    shift 2
done
exit 0
