# Needs ownership.sh
# Roots are the directories of a box below which runs have theirs: for mounts, and for output.
#   open.sh look ROOT ROOT             refuse where a root is none for Mountlab, or holds what it did not make; changes nothing
#   open.sh open RUN_DIR OUT_DIR OWNER the same, then lock both roots for OWNER (mountlab.box.lock) and make the run's directories
#                                      Says `private: ROOT: WHY` where the mount root cannot be shared (share_root).
#   open.sh close RUN_DIR OUT_DIR OWNER end the lease, remove what the run has made, and give back the locks
# A refusal: standard error begins with `refused: `; a line `next: ` says what to do (mountlab.box.roots reads both). What is
# not ours and lies in the run's own directory stays, and is named: `kept: PATH`, one a line, on standard output.
refuse() {
    printf 'refused: %s\n' "$1" >&2
    [ -z "${2:-}" ] || printf 'next: %s\n' "$2" >&2
    exit 1
}

shown() { printf '%s' "$1" | tr '\n\t' '??'; }

# --- look

foreign() {
    case $act in
    remove) printf 'kept: %s\n' "$(shown "$1")" ;;
    look)
        count=$((count + 1))
        [ "$count" -gt 3 ] || names="$names${names:+, }$(shown "${1#"$root"/}")" ;;
    esac
}

stuck() { [ -n "$blocked" ] || blocked=$1; }

a_run() {
    walk_run "$1"
    # What a run keeps elsewhere on the box belongs to it.
    [ -f "$1/elsewhere" ] || return 0
    while IFS= read -r place; do
        case $place in "$1"/*) ;; */mountlab-*) ! marked_directory "$place" || walk_own "$place" ;; esac
    done < "$1/elsewhere"
}

check_root() { # ROOT OTHER
    root=$1 act=look count=0 names=''
    [ ! -L "$1" ] || refuse "$1 is a symbolic link to $(readlink -- "$1")" "write $(readlink -f -- "$1") itself, or another directory"
    [ -e "$1" ] || return 0
    [ -d "$1" ] || refuse "$1 is not a directory" "write another directory"
    [ -O "$1" ] || refuse "$1 belongs to $(stat -c %U -- "$1"), and Mountlab works there as $(id -un)" \
        "write a directory that does not exist yet, or give this one to $(id -un)"
    [ ! -L "$1/.mountlab" ] || refuse "$1/.mountlab is a symbolic link" "remove it, or write another directory"
    if plain_file "$1/.mountlab"; then walk_root "$1" "$2"; else
        for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
            there "$entry" || continue
            case $2 in "$entry" | "$entry"/*) continue ;; esac
            [ "${entry##*/}" != lost+found ] || ! is_mount_point "$1" || continue
            foreign "$entry"
        done
    fi
    [ "$count" -le 3 ] || names="$names and $((count - 3)) more"
    [ "$count" = 0 ] || refuse "$1 holds what Mountlab did not make: $names" \
        "move that elsewhere, or write a directory for Mountlab alone"
}

# --- open

make_root() {
    ! plain_file "$1/.mountlab" || return 0
    # Only where it is missing: `mkdir -p` of uutils 0.0.17 changes the mode of a directory that is there.
    [ -d "${1%/*}" ] || mkdir -p -- "${1%/*}" || return
    origin=found
    ! mkdir -- "$1" 2>/dev/null || origin=made
    echo "$origin" > "$1/.mountlab"
}

# Both always in the same order: of two runs that want the same roots one gets them. An outer one comes before the inner.
in_order() { printf '%s\n' "$1" "$2" | LC_ALL=C sort -u; }

claim() {
    if (set -C && : > "$1/lock") 2>/dev/null; then
        { printf '%s\n' "$2" > "$1/lock"; } 2>/dev/null && return
        rm -f "$1/lock"
        refuse "$1/lock cannot be written" "see whether the disk is full (df)"
    fi
    [ "$(cat "$1/lock" 2>/dev/null)" = "$2" ] || refuse "$1 is in use by $(cat "$1/lock" 2>/dev/null || echo another run)"
}

# While the lock keeps others out, the bind of the root is undone.
give_back() { [ "$(cat "$1/lock" 2>/dev/null)" != "$2" ] || { unbind_root "$1"; rm -f "$1/lock"; }; }

# Where root $1 lies on a mount that is not shared, bind it to itself and share that (root_bind). Where that cannot be
# done the run goes on without, and says why.
share_root() {
    [ "$(id -u)" = 0 ] && [ -z "$(root_bind "$1")" ] || return 0
    read -r boot < /proc/sys/kernel/random/boot_id
    on=$(mount_of "$1")
    ! awk -v on="$on" '$1 == on { for (i = 7; i <= NF && $i != "-"; i++) if ($i ~ /^shared:/) found = 1 }
        END { exit !found }' /proc/self/mountinfo || return 0
    below=$(mounts_below "$1" | while IFS= read -r point; do [ "$(decode "$point")" = "$1" ] || echo "$point"; done)
    if [ -n "$below" ]; then said="$(shown "$below") is mounted below it"
    elif [ -z "$on" ]; then said="the kernel does not say which mount it lies on"; else
        echo "bound $boot $on" >> "$1/.mountlab"
        said=$(mount --bind "$1" "$1" 2>&1 && mount --make-shared "$1" 2>&1) && return
        unbind_root "$1"
    fi
    printf 'private: %s: %s\n' "$1" "$(shown "$said")"
}

# This can be asked for again, where the connection was lost meanwhile.
make_run() {
    if mkdir -- "$1" 2>/dev/null; then printf 'run %s\n' "${1##*/}" > "$1/.mountlab"; else is_run "$1"; fi \
        || refuse "$1 is there already, or cannot be made" "see what it is; Mountlab does not use it"
}

open_run() { # RUN_DIR OUT_DIR OWNER
    # In shells of their own, so that a refusal gives back what was taken before it.
    in_order "${1%/*}" "${2%/*}" | while IFS= read -r each; do
        make_root "$each" && claim "$each" "$3" || exit
    done || { leave "$1" "$2" "$3"; exit 1; }
    share_root "${1%/*}"
    (make_run "$1" && make_run "$2" && make_images "$1" && may_hold "$2") && return
    close_run "$1" "$2" "$3" > /dev/null
    exit 1
}

make_images() { [ -d "$1/img" ] || { mkdir -- "$1/img" && echo images > "$1/img/.mountlab"; }; }

# As long as it is there, the lease may be held (lease.sh).
may_hold() { [ -e "$1/alive" ] || : > "$1/alive"; }

# --- close

# What watches over the lease goes with the run, with what it waits in, and with what still listens on a connection that
# was lost: by its environment, since numbers of processes are used again. Again and again, since it may just be starting
# something; without `alive` nothing new begins.
end_lease() {
    rm -f -- "$1/alive"
    tries=40
    while found=$(grep -lszxF -- "MOUNTLAB_LEASE=${1##*/}" /proc/[0-9]*/environ 2>/dev/null); [ -n "$found" ]; do
        for each in $found; do
            each=${each#/proc/}
            kill "${each%/environ}" 2>/dev/null
        done
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 0
        sleep 0.05 2>/dev/null || sleep 1
    done
}

# Can be done again, and by a second run at the same time.
close_one() {
    is_run "$1" || return 0
    act=remove blocked=''
    walk_run "$1"
    [ -z "$blocked" ] || { echo "refused: $1 cannot be removed: $blocked" >&2; return 1; }
}

# Whether no other run has this root by now.
is_mine() { [ ! -e "$1/lock" ] || [ "$(cat "$1/lock" 2>/dev/null)" = "$2" ]; }

close_run() { # RUN_DIR OUT_DIR OWNER
    closed=0
    ! is_mine "${2%/*}" "$3" || end_lease "$2"
    ! is_mine "${1%/*}" "$3" || close_one "$1" || closed=1
    [ "$1" = "$2" ] || ! is_mine "${2%/*}" "$3" || close_one "$2" || closed=1
    leave "$1" "$2" "$3"
    return "$closed"
}

# Give back both locks, and the roots with them. One of these may lie in the other.
leave() {
    for each in "${1%/*}" "${2%/*}"; do give_back "$each" "$3"; done
    for each in "${1%/*}" "${2%/*}" "${1%/*}"; do [ ! -d "$each" ] || drop_root "$each"; done
}

umask 022
case $1 in
look) check_root "$2" "$3" && check_root "$3" "$2" ;;
open) check_root "${2%/*}" "${3%/*}" && check_root "${3%/*}" "${2%/*}" && open_run "$2" "$3" "$4" ;;
close)
    close_run "$2" "$3" "$4"
    status=$?
    # A lock that a power cut brings back would keep the next run out.
    place=${2%/*}
    [ -e "$place" ] || place=${place%/*}
    sync -f "$place" 2>/dev/null || sync
    exit "$status" ;;
esac
