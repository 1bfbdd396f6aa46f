# Checksums by dm-integrity, for layer.sh. Its super block has no UUID: ours is written as text at byte 512, which the kernel
# keeps as it is, since its own fields end before that. The kernel's list of what lies on which device has the rest.
find_integrity() {
    for each in /sys/block/dm-*; do
        { read -r its <"$each/dm/uuid"; } 2>/dev/null || continue
        case $its in CRYPT-INTEGRITY-*) ;; *) continue ;; esac
        for below in "$each"/slaves/*; do
            [ "$(carried "/dev/$(printf %s "${below##*/}" | tr '!' /)")" != "$hex" ] || { echo "/dev/${each##*/}" && return; }
        done
    done
    return 1
}

# Nothing can be read before it was written once, with its checksum; without a journal that takes half the time.
make_integrity() {
    format='' open='' algorithm=''
    for word in $words; do
        case $word in --integrity=*) algorithm=$word ;; --sector-size=*) format=$word ;; *) open="$open $word" ;; esac
    done
    # shellcheck disable=SC2086
    note_process integritysetup format --batch-mode --no-wipe $algorithm $format $devices >&2 || return
    # shellcheck disable=SC2086
    printf %s "$uuid" | dd of="${devices# }" bs=1 seek=512 conv=notrunc,fsync 2>/dev/null || return
    open_integrity --integrity-no-journal && overwrite "/dev/mapper/$name" && undo_integrity || return
    # shellcheck disable=SC2086
    open_integrity $open
}

# shellcheck disable=SC2086
open_integrity() { integritysetup open $algorithm "$@" $devices "$name" >&2; }

overwrite() {
    dd if=/dev/zero of="$1" bs=1M count="$(blockdev --getsize64 "$1")" iflag=count_bytes oflag=direct conv=fsync 2>/dev/null
}

show_integrity() {
    section status
    integritysetup status "$name"
    section table
    dmsetup table "$name"
}

undo_integrity() {
    remove_temporary && try_again close_integrity
}

close_integrity() {
    mapping=$(find_integrity) || return 0
    dmsetup remove "$(cat "/sys/block/${mapping##*/}/dm/name")" >&2
}
