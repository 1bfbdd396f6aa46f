# Encryption by dm-crypt, for layer.sh. The kernel knows a mapping by `CRYPT-LUKS2-`, the UUID in 32 digits, and its name.
find_luks() {
    find_mapping CRYPT-LUKS2
}

find_mapping() { # prefix of the kernel's UUID
    for each in /sys/block/dm-*; do
        { read -r its <"$each/dm/uuid"; } 2>/dev/null || continue
        case $its in "$1-$hex"-*) echo "/dev/${each##*/}" && return ;; esac
    done
    return 1
}

# How long a key takes to be derived has nothing to do with reads and writes.
make_luks() {
    format='' open=''
    for word in $words; do
        case $word in --perf-* | --allow-discards) open="$open $word" ;; *) format="$format $word" ;; esac
    done
    # shellcheck disable=SC2086
    printf %s "$uuid" | note_process cryptsetup luksFormat --batch-mode --type luks2 --uuid="$uuid" --pbkdf pbkdf2 \
        --pbkdf-force-iterations 1000 --key-file=- $format $devices >&2 || return
    # shellcheck disable=SC2086
    printf %s "$uuid" | cryptsetup open --type luks2 --key-file=- $open $devices "$name" >&2
}

show_luks() {
    section status
    cryptsetup status "$name"
    section table
    dmsetup table "$name"
    ! find_mapping CRYPT-INTEGRITY >/dev/null || { section tags && dmsetup table "${name}_dif"; }
}

undo_luks() {
    remove_temporary && try_again close_luks
}

# Below it lies another mapping where it has `integrity`: it goes with this one, but not where a kill has come between.
close_luks() {
    for prefix in CRYPT-LUKS2 CRYPT-INTEGRITY; do
        while mapping=$(find_mapping "$prefix"); do
            dmsetup remove "$(cat "/sys/block/${mapping##*/}/dm/name")" >&2 || return
        done
    done
}
