# Arrays of md, for layer.sh. mdadm writes a UUID in four groups.
find_md() {
    for each in /sys/block/md*; do
        [ -e "$each/md" ] || continue
        its=$(mdadm --detail --export "/dev/${each##*/}" 2>/dev/null | sed -n 's/^MD_UUID=//p' | tr -d :)
        [ "$its" != "$hex" ] || { echo "/dev/${each##*/}" && return; }
    done
    return 1
}

# The first synchronisation is no part of what is measured: it is waited for, at the full speed of the devices.
make_md() {
    modprobe md_mod 2>/dev/null
    # shellcheck disable=SC2086
    mdadm --create "/dev/md/$name" --name="$name" --homehost=any --uuid="$uuid" --metadata=1.2 --run --quiet $words $members \
        </dev/null >&2 || return
    array=$(find_md) || return
    for device in $devices; do [ "$marked" != marked ] || drop_ext2 "$device"; done
    attributes=/sys/block/${array##*/}/md
    { echo 10000000 >"$attributes/sync_speed_min"; } 2>/dev/null
    while read -r action <"$attributes/sync_action" && [ "$action" != idle ]; do sleep 0.5 2>/dev/null || sleep 1; done 2>/dev/null
    { echo system >"$attributes/sync_speed_min"; } 2>/dev/null
    return 0
}

# Where no udev does it, the node and the link stay behind.
drop_nodes() {
    [ "${DM_DISABLE_UDEV:-}" = 1 ] || return 0
    [ "$(readlink -f "/dev/md/$name")" != "$array" ] || rm -f "/dev/md/$name"
    [ -e "/sys/block/${array##*/}" ] || rm -f "$array"
}

show_md() {
    array=$(find_md) || return
    cd "/sys/block/${array##*/}/md" || return
    for file in level raid_disks chunk_size layout degraded sync_action array_state consistency_policy metadata_version \
        component_size bitmap/location dev-*/state dev-*/slot; do
        value=
        { [ ! -r "$file" ] || read -r value <"$file"; } 2>/dev/null
        [ -z "$value" ] || printf '==> /sys/block/%s/md/%s <==\n%s\n' "${array##*/}" "$file" "$value"
    done
    section detail
    mdadm --detail "$array"
}

undo_md() {
    array=$(find_md) || return 0
    try_again stop_md && drop_nodes
}

stop_md() { mdadm --quiet --stop "$array" >&2 || ! find_md >/dev/null; }

# --- a member that is lost and comes back

# `whole`, or how many members are missing and what the array does.
whole_md() {
    array=$(find_md) || { echo gone; return; }
    attributes=/sys/block/${array##*/}/md
    read -r missing <"$attributes/degraded" && read -r action <"$attributes/sync_action" || return
    if [ "$missing $action" = '0 idle' ]; then echo whole; else echo "degraded, $missing missing, $action"; fi
}

# The directory of $member in the array; fails where it is none of it.
find_place() {
    array=$(find_md) || return
    place=$(readlink -f "$member") place=/sys/block/${array##*/}/md/dev-${place##*/}
    [ -e "$place" ]
}

# The kernel lets go of it only when what is under way has ended.
lose_md() {
    find_place || refuse "$member is no member of the array $uuid"
    mdadm --quiet --manage "$array" --fail "$member" >&2 && try_again mdadm --quiet --manage "$array" --remove "$member" >&2
}

blank_md() {
    ! find_place || refuse "$member is a member of $array now"
    [ "$(carried "$member")" = "$hex" ] || refuse "$member does not carry the UUID $uuid of the array"
    mdadm --quiet --zero-superblock "$member" >&2
}

bring_md() { # replaced|returned
    ! find_place || refuse "$member is a member of $array now"
    if [ "$1" = returned ]; then
        mdadm --quiet --manage "$array" --re-add "$member" >&2 || return
    else
        is_bare "$member" || refuse "$member is not blank"
        mdadm --quiet --manage "$array" --add "$member" >&2 || return
    fi
    find_place && attributes=/sys/block/${array##*/}/md
}

is_rebuilt_md() {
    { read -r missing <"$attributes/degraded" && read -r action <"$attributes/sync_action"; } 2>/dev/null
    [ "$missing $action" = '0 idle' ]
}
