# Logical volumes, for layer.sh. A volume group is ours where its physical volumes carry the UUIDs that were written down: the
# commands see these devices alone. The kernel knows a volume by `LVM-` and UUIDs that LVM draws itself.
find_lvm() {
    volume=/dev/$name/data
    [ ! -e "/dev/mapper/$(name_of_group)-data" ] || volume=/dev/mapper/$(name_of_group)-data
    [ ! -b "$volume" ] || readlink -f "$volume"
    [ -b "$volume" ]
}

# As device mapper writes it.
name_of_group() { printf %s "$name" | sed 's/-/--/g'; }

make_lvm() {
    set -- $volumes
    for device in $devices; do
        # As LVM groups the digits: 6-4-4-4-4-4-6.
        grouped=$(printf %s "$1" | sed 's/^\(.\{6\}\)\(.\{4\}\)\(.\{4\}\)\(.\{4\}\)\(.\{4\}\)\(.\{4\}\)/\1-\2-\3-\4-\5-\6-/')
        shift
        lvm_with pvcreate -qq -y -ff --norestorefile --uuid "$grouped" "$device" >&2 || return
    done
    # shellcheck disable=SC2086
    lvm_with vgcreate -qq -y --setautoactivation n "$name" $devices >&2 2>/dev/null || lvm_with vgcreate -qq -y "$name" $devices >&2 || return
    options=
    for word in $words; do case $word in volumes=* | volume=*) ;; *) options="$options $word" ;; esac; done
    case $options in
    *--type=thin-pool*)
        # shellcheck disable=SC2086
        lvm_with lvcreate -qq -y -Zn --poolmetadataspare n -l '90%FREE' -n pool $options "$name" >&2 || return
        # In whole chunks: of the rest the pool gives nothing.
        size=$(lvm_with lvs --noheadings --nosuffix --units b -o lv_size,chunk_size "$name/pool" \
            | while read -r size chunk; do echo $((size / chunk * chunk)); done)
        case $words in *' volume='*) size=${words#* volume=} size=${size%% *} ;; esac
        lvm_with lvcreate -qq -y -Wn --type thin -V "${size}b" --thinpool pool -n data "$name" >&2 ;;
    *--type=snapshot*)
        lvm_with lvcreate -qq -y -Wn -Zn -l '48%FREE' -n data "$name" >&2 || return
        # shellcheck disable=SC2086
        lvm_with lvcreate -qq -y -l '100%ORIGIN' -n kept $options "$name/data" >&2 ;;
    *cache*)
        # shellcheck disable=SC2086
        lvm_with lvcreate -qq -y -Wn -Zn -l '100%PVS' -n data "$name" ${devices% *} >&2 || return
        lvm_with lvcreate -qq -y -an -Wn -Zn -l '100%PVS' -n fast "$name" "${devices##* }" >&2 || return
        # shellcheck disable=SC2086
        lvm_with lvconvert -qq -y $options --cachevol fast "$name/data" >&2 ;;
    *)
        # Checksums take their room from what lvcreate leaves.
        case $options in *--raidintegrity=*) part='90%FREE' ;; *) part='100%FREE' ;; esac
        # shellcheck disable=SC2086
        lvm_with lvcreate -qq -y -Wn -Zn -l "$part" -n data $options "$name" >&2 || return
        until_in_sync ;;
    esac
}

# The first synchronisation is no part of what is measured, nor are first checksums: each part below has its own percent.
until_in_sync() {
    while percents=$(lvm_with lvs -a --noheadings -o copy_percent "$name" 2>/dev/null); do
        case $(printf %s "$percents" | tr -d ' ' | grep -vx 100.00 | tr -d '\n') in '') return 0 ;; esac
        sleep 0.5 2>/dev/null || sleep 1
    done
}

show_lvm() {
    section lvs
    lvm_with lvs -a --noheadings --nosuffix --units b --separator '|' \
        -o lv_name,segtype,stripes,stripe_size,chunk_size,lv_size,copy_percent,raid_sync_action,data_percent,metadata_percent "$name"
    for what in table status; do
        section "$what"
        dmsetup "$what" | grep "^$(name_of_group)-"
    done
}

# Of a thin volume, whose file system the kernel freezes meanwhile. The snapshot is not active: nothing sees it but its pool,
# with which it goes. After the last one a trial may write the whole volume again, which needs metadata.
snapshot_lvm() { # NUMBER DIRECTORY
    volume=$(find_lvm) && block=$(block_of "$volume") || refuse "lvm $uuid has no volume"
    at=$(stat -c %d -- "$2") || refuse "there is no $2"
    [ "$(cat "$block/dev")" = "$((at >> 8 & 4095)):$((at & 255 | at >> 12 & 1048320))" ] || refuse "$2 is not on the volume of lvm $uuid"
    (devices='' && add_below "$block" && [ -n "$devices" ]) || refuse "$volume does not lie on devices of lvm $uuid"
    in_use=$(show_pool) || refuse "lvm $uuid is not thin"
    printf '%s\n' "$in_use" | awk '{ exit !($1 < 95 && $2 < 70) }' \
        || refuse "the pool is too full for another snapshot: data and metadata in percent: $in_use"
    lvm_with lvcreate -qq -y -s -ky -n "kept$1" "$name/data" >&2
}

show_pool() { lvm_with lvs --noheadings -o data_percent,metadata_percent "$name/pool" 2>/dev/null; }

# How many there are, and how full their pool is, in percent.
snapshots_lvm() {
    in_use=$(show_pool) || refuse "lvm $uuid is not thin"
    echo "taken $(lvm_with lvs --noheadings -o lv_name "$name" | grep -c ' kept[0-9]')"
    printf '%s\n' "$in_use" | awk '{ print "pool_percent " $1 "\nmetadata_percent " $2 }'
}

# Those that carry a UUID of the layer. After a restart another disk may have a name that was written down.
our_devices() {
    for device in $devices; do
        its=$(carried "$device")
        case " $volumes " in *" ${its:-none} "*) echo "$device" ;; esac
    done
}

# What a killed lvm has suspended would let wait for ever whatever reads, writes or unmounts. From below, by the kernel's list.
resume_lvm() {
    for device in $(our_devices); do resume_above "$(block_of "$device")"; done
}

resume_above() ( # directory of a device below /sys
    for above in "$1/holders"/dm-*; do
        { read -r its <"$above/dm/uuid"; } 2>/dev/null || continue
        case $its in LVM-*) ;; *) continue ;; esac
        [ "$(cat "$above/dm/suspended")" = 0 ] || dmsetup resume "$(cat "$above/dm/name")" >&2
        resume_above "/sys/block/${above##*/}"
    done
)

# First by LVM itself; what a kill has left half-made goes by the kernel's own list of what lies on our devices.
undo_lvm() {
    lvm_with vgchange -qq -an "$name" >/dev/null 2>&1
    try_again remove_volumes || return
    [ -e "/dev/$name/data" ] || rm -f "/dev/$name/data"
    rmdir "/dev/$name" 2>/dev/null
    return 0
}

remove_volumes() {
    left=
    for device in $(our_devices); do remove_above "$(block_of "$device")" || left=yes; done
    [ -z "$left" ]
}

# In a shell of its own for each level, which has its own variables.
remove_above() ( # directory of a device below /sys
    for above in "$1/holders"/dm-*; do
        [ -e "$above" ] || continue
        { read -r its <"$above/dm/uuid"; } 2>/dev/null || continue
        case $its in LVM-*) ;; *) exit 1 ;; esac
        remove_above "/sys/block/${above##*/}" && dmsetup remove "$(cat "$above/dm/name")" >&2 || exit
    done
)
