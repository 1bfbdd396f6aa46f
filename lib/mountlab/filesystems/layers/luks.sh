# Encryption by dm-crypt, for layer.sh. The kernel knows a mapping by `CRYPT-LUKS2-`, the UUID in 32 digits, and its name.
find_luks() {
    for each in /sys/block/dm-*; do
        { read -r its <"$each/dm/uuid"; } 2>/dev/null || continue
        case $its in CRYPT-LUKS2-"$hex"-*) echo "/dev/${each##*/}" && return ;; esac
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
    printf %s "$uuid" | cryptsetup luksFormat --batch-mode --type luks2 --uuid="$uuid" --pbkdf pbkdf2 \
        --pbkdf-force-iterations 1000 --key-file=- $format $devices >&2 || return
    # shellcheck disable=SC2086
    printf %s "$uuid" | cryptsetup open --type luks2 --key-file=- $open $devices "$name" >&2
}

show_luks() {
    section status
    cryptsetup status "$name"
    section table
    dmsetup table "$name"
}

undo_luks() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        mapping=$(find_luks) || return 0
        read -r called <"/sys/block/${mapping##*/}/dm/name"
        cryptsetup close "$called" >&2 && return
        sleep 0.3 2>/dev/null || sleep 1
    done
    return 1
}
