# The shape of what the helper lets pass: read by helper.sh, functions only. Whatever is not named here is refused.
# Each takes words and says yes or no; none of them runs a program, opens a file or changes anything.
# shellcheck disable=SC2034 # made_on, made_with, made_as and set_on are for helper.sh

# --- single words

# A name of a run or a file system, never a path, an option or a hidden file.
plain() {
    case $1 in '' | [!A-Za-z0-9]* | *[!A-Za-z0-9._-]*) return 1 ;; esac
    [ ${#1} -le 160 ]
}

number() {
    case $1 in '' | *[!0-9]*) return 1 ;; esac
    [ ${#1} -le 18 ]
}

decimal() {
    case $1 in '' | .* | *. | *[!0-9.]* | *.*.*) return 1 ;; esac
    [ ${#1} -le 18 ]
}

# 4096, 4k, 1g, 50%
amount() { number "${1%[bskmgtBSKMGT%]}"; }

# A choice, such as `ordered`, `zlib:3`, `within_size`.
choice() {
    case $1 in '' | -* | *[!A-Za-z0-9_:.-]*) return 1 ;; esac
    [ ${#1} -le 40 ]
}

# Names of features: has_journal,^metadata_csum
features() {
    case $1 in '' | -* | *[!A-Za-z0-9_,^-]*) return 1 ;; esac
    [ ${#1} -le 400 ]
}

# How every UUID begins that Mountlab gives.
our_uuid() {
    case $1 in 6d6f756e-746c-6162-* | 6d6f756e-746c-6143-*) ;; *) return 1 ;; esac
    case ${1#6d6f756e-746c-61??-} in *[!0-9a-f-]*) return 1 ;; esac
    [ ${#1} -eq 36 ]
}

# The id of what a claim may erase, and what the guard says that a device is; both may be empty.
an_id() {
    case $1 in *[!A-Za-z0-9._:-]*) return 1 ;; esac
    [ ${#1} -le 64 ]
}

an_identity() {
    case $1 in *[!A-Za-z0-9._:=,-]*) return 1 ;; esac
    [ ${#1} -le 400 ]
}

# Machine, process and run of the one who holds the box.
an_owner() {
    case $1 in '' | *[!A-Za-z0-9._:/\ -]*) return 1 ;; esac
    [ ${#1} -le 400 ]
}

# all CHECK LIST: whether CHECK says yes to each item of LIST between commas.
all() {
    case $2 in '' | ,* | *, | *,,*) return 1 ;; esac
    [ ${#2} -le 2000 ] || return 1
    all_left=$2,
    while [ -n "$all_left" ]; do
        all_item=${all_left%%,*}
        all_left=${all_left#*,}
        "$1" "$all_item" || return 1
    done
}

# --- options of mount

# mount_options TYPE LIST. `nosuid,nodev` is added to all of them; what would take it back is not among them.
mount_options() {
    case $1 in
    ext2 | ext3 | ext4) all ext_option "$2" ;;
    xfs) all xfs_option "$2" ;;
    btrfs) all btrfs_option "$2" ;;
    f2fs) all f2fs_option "$2" ;;
    tmpfs) all tmpfs_option "$2" ;;
    hugetlbfs) all hugetlbfs_option "$2" ;;
    ramfs) all ramfs_option "$2" ;;
    overlay) all overlay_option "$2" ;;
    bind) all any_option "$2" ;;
    *) return 1 ;;
    esac
}

any_option() {
    case $1 in
    ro | rw | sync | async | dirsync | atime | noatime | diratime | nodiratime | relatime | norelatime) ;;
    strictatime | lazytime | nolazytime | exec | noexec | nosuid | nodev) ;;
    *) return 1 ;;
    esac
}

ext_option() {
    any_option "$1" && return
    case $1 in
    data=ordered | data=writeback | data=journal | errors=continue | errors=remount-ro) ;;
    barrier | barrier=[01] | nobarrier | delalloc | nodelalloc | discard | nodiscard | acl | noacl | noload | norecovery) ;;
    journal_checksum | nojournal_checksum | journal_async_commit | user_xattr | nouser_xattr | bsddf | minixdf) ;;
    auto_da_alloc | auto_da_alloc=[01] | noauto_da_alloc | dioread_lock | dioread_nolock | block_validity) ;;
    noblock_validity | init_itable | noinit_itable | i_version | grpid | nogrpid | bsdgroups | sysvgroups) ;;
    dax | dax=always | dax=never | dax=inode | oldalloc | orlov | prefetch_block_bitmaps | no_prefetch_block_bitmaps) ;;
    nombcache | no_mbcache | mb_optimize_scan=[01] | check=none | nocheck) ;;
    commit=* | inode_readahead_blks=* | stripe=* | max_batch_time=* | min_batch_time=* | init_itable=* | \
        journal_ioprio=* | max_dir_size_kb=*) number "${1#*=}" ;;
    *) return 1 ;;
    esac
}

xfs_option() {
    any_option "$1" && return
    case $1 in
    attr2 | noattr2 | discard | nodiscard | filestreams | inode32 | inode64 | ikeep | noikeep | largeio | nolargeio) ;;
    noalign | norecovery | nouuid | noquota | swalloc | wsync | barrier | nobarrier | lifetime | nolifetime) ;;
    dax | dax=always | dax=never | dax=inode) ;;
    allocsize=* | logbufs=* | logbsize=* | sunit=* | swidth=* | max_open_zones=*) amount "${1#*=}" ;;
    *) return 1 ;;
    esac
}

btrfs_option() {
    any_option "$1" && return
    case $1 in
    acl | noacl | autodefrag | noautodefrag | barrier | nobarrier | datacow | nodatacow | datasum | nodatasum) ;;
    discard | discard=sync | discard=async | nodiscard | ssd | nossd | ssd_spread | nossd_spread | treelog) ;;
    notreelog | flushoncommit | noflushoncommit | space_cache | space_cache=v[12] | nospace_cache | clear_cache) ;;
    inode_cache | noinode_cache | enospc_debug | noenospc_debug | compress | compress-force) ;;
    compress=* | compress-force=*) choice "${1#*=}" ;;
    commit=* | thread_pool=* | max_inline=* | metadata_ratio=*) amount "${1#*=}" ;;
    *) return 1 ;;
    esac
}

f2fs_option() {
    any_option "$1" && return
    case $1 in
    acl | noacl | user_xattr | nouser_xattr | discard | nodiscard | heap | no_heap | gc_merge | nogc_merge) ;;
    disable_ext_identify | inline_xattr | noinline_xattr | inline_data | noinline_data | inline_dentry) ;;
    noinline_dentry | flush_merge | noflush_merge | barrier | nobarrier | fastboot | extent_cache | noextent_cache) ;;
    age_extent_cache | data_flush | checkpoint_merge | nocheckpoint_merge | compress_chksum | compress_cache | atgc) ;;
    background_gc=on | background_gc=off | background_gc=sync | active_logs=[246] | mode=adaptive | mode=lfs) ;;
    mode=fragment:segment | mode=fragment:block | alloc_mode=default | alloc_mode=reuse | fsync_mode=posix) ;;
    fsync_mode=strict | fsync_mode=nobarrier | checkpoint=enable | checkpoint=disable | discard_unit=block) ;;
    discard_unit=segment | discard_unit=section | memory=normal | memory=low | errors=continue | errors=remount-ro) ;;
    compress_mode=fs | compress_mode=user | compress_extension=\*) ;;
    compress_algorithm=* | compress_extension=* | nocompress_extension=*) choice "${1#*=}" ;;
    inline_xattr_size=* | compress_log_size=*) number "${1#*=}" ;;
    *) return 1 ;;
    esac
}

a_mode() { case $1 in mode=[0-7][0-7][0-7] | mode=[01][0-7][0-7][0-7]) ;; *) return 1 ;; esac }

tmpfs_option() {
    any_option "$1" || a_mode "$1" && return
    case $1 in
    huge=never | huge=always | huge=within_size | huge=advise | inode32 | inode64 | noswap) ;;
    mpol=default | mpol=local | mpol=prefer | mpol=bind | mpol=interleave) ;;
    mpol='weighted interleave') ;;
    mpol=prefer:* | mpol=bind:* | mpol=interleave:* | mpol='weighted interleave:'* | mpol='prefer (many):'*)
        choice "${1#*:}"
        ;;
    size=* | nr_blocks=* | nr_inodes=*) amount "${1#*=}" ;;
    *) return 1 ;;
    esac
}

hugetlbfs_option() {
    any_option "$1" || a_mode "$1" && return
    case $1 in size=* | min_size=* | nr_inodes=* | pagesize=*) amount "${1#*=}" ;; *) return 1 ;; esac
}

# ramfs takes every word and obeys only its mode, which a sweep may want to show with the words of others.
ramfs_option() { tmpfs_option "$1" || ext_option "$1" || xfs_option "$1" || btrfs_option "$1"; }

overlay_option() {
    any_option "$1" && return
    case $1 in
    index=o[nf]* | metacopy=o[nf]* | nfs_export=o[nf]*) case ${1#*=} in on | off) ;; *) return 1 ;; esac ;;
    xino=on | xino=off | xino=auto | redirect_dir=on | redirect_dir=off | redirect_dir=nofollow | volatile) ;;
    uuid=on | uuid=off | uuid=null | uuid=auto | fsync=auto | fsync=strict | fsync=volatile) ;;
    *) return 1 ;;
    esac
}

# --- arguments of mkfs
# mke2fs_words, xfs_words, btrfs_words and f2fs_words set `made_on` to the device, `made_with` to an external journal, and `made_as` to
# what is made; whether the devices are ours is for helper.sh to see.

mke2fs_words() {
    made_on='' made_with='' made_as=ext made_forced=''
    while [ $# -gt 0 ]; do
        case $1 in
        -q | -D | -j) ;;
        -F) # given twice it takes what is mounted, too
            [ -z "$made_forced" ] || return 1
            made_forced=yes
            ;;
        -[bCgGiIJmMNoOrTteEU])
            [ $# -gt 1 ] && mke2fs_argument "$1" "$2" || return 1
            shift
            ;;
        /dev/*)
            made_on=$1
            shift
            # only a number of blocks may follow
            [ $# -eq 0 ] || { [ $# -eq 1 ] && number "$1"; }
            return
            ;;
        *) return 1 ;;
        esac
        shift
    done
    return 1
}

mke2fs_argument() {
    case $1 in
    -t) case $2 in ext2 | ext3 | ext4) ;; *) return 1 ;; esac ;;
    -U) our_uuid "$2" ;;
    -e) case $2 in continue | remount-ro) ;; *) return 1 ;; esac ;;
    -b | -C | -g | -G | -i | -I | -N | -r) amount "$2" ;;
    -m) decimal "$2" ;;
    -o | -T | -M) choice "$2" ;;
    -O)
        case ,$2, in *journal_dev*) made_as=jbd ;; esac
        features "$2"
        ;;
    -E) all mke2fs_extended "$2" ;;
    -J) all mke2fs_journal "$2" ;;
    esac
}

mke2fs_extended() {
    case $1 in
    discard | nodiscard | lazy_itable_init | lazy_journal_init | assume_storage_prezeroed | test_fs | no_copy_xattrs) ;;
    lazy_itable_init=[01] | lazy_journal_init=[01] | packed_meta_blocks=[01] | assume_storage_prezeroed=[01]) ;;
    num_backup_sb=[012] | encoding_flags=strict | encoding_flags=no-strict) ;;
    stride=* | stripe_width=* | stripe-width=* | resize=* | mmp_update_interval=* | desc_size=* | desc-size=* | \
        orphan_file_size=*) amount "${1#*=}" ;;
    encoding=*) choice "${1#*=}" ;;
    *) return 1 ;;
    esac
}

mke2fs_journal() {
    case $1 in
    size=* | location=* | fast_commit_size=*) amount "${1#*=}" ;;
    device=/dev/*) made_with=${1#device=} ;;
    *) return 1 ;;
    esac
}

xfs_words() {
    made_on='' made_with='' made_as=xfs
    while [ $# -gt 1 ]; do
        case $1 in
        -f | -q | -K) ;;
        -[bdilmns])
            xfs_group=$1
            [ $# -gt 2 ] && all xfs_item "$2" || return 1
            shift
            ;;
        *) return 1 ;;
        esac
        shift
    done
    case ${1:-} in /dev/*) made_on=$1 ;; *) return 1 ;; esac
}

xfs_item() {
    case $xfs_group:$1 in
    -l:logdev=/dev/*) made_with=${1#logdev=} && return ;;
    -m:uuid=*) our_uuid "${1#uuid=}" && return ;;
    -d:noalign | -n:version=ci | -l:internal | -l:internal=1) return ;;
    esac
    case $xfs_group:${1%%=*} in
    -b:size | -s:size | -n:size | -n:version | -n:ftype | -n:parent) ;;
    -d:agcount | -d:agsize | -d:concurrency | -d:su | -d:sw | -d:sunit | -d:swidth | -d:size | -d:sectsize) ;;
    -d:cowextsize | -d:daxinherit | -d:extszinherit | -d:projinherit) ;;
    -i:size | -i:perblock | -i:maxpct | -i:align | -i:attr | -i:sparse | -i:projid32bit | -i:nrext64 | -i:exchange) ;;
    -l:size | -l:version | -l:su | -l:sunit | -l:agnum | -l:sectsize | -l:lazy-count | -l:concurrency) ;;
    -m:crc | -m:finobt | -m:rmapbt | -m:reflink | -m:inobtcount | -m:bigtime | -m:autofsck | -m:metadir) ;;
    *) return 1 ;;
    esac
    case $1 in *=*) amount "${1#*=}" ;; *) return 1 ;; esac
}

btrfs_words() {
    made_on='' made_with='' made_as=btrfs
    while [ $# -gt 1 ]; do
        case $1 in
        -f | -q | -K | --nodiscard | -M | --mixed) ;;
        -U | -d | -m | --data | --metadata | -n | --nodesize | -s | -O | -R | --csum)
            [ $# -gt 2 ] && btrfs_argument "$1" "$2" || return 1
            shift
            ;;
        *) return 1 ;;
        esac
        shift
    done
    case ${1:-} in /dev/*) made_on=$1 ;; *) return 1 ;; esac
}

btrfs_argument() {
    case $1 in
    -U) our_uuid "$2" ;;
    -n | --nodesize | -s) amount "$2" ;;
    -O | -R) features "$2" ;;
    *) choice "$2" ;;
    esac
}

f2fs_words() {
    made_on='' made_with='' made_as=f2fs
    while [ $# -gt 1 ]; do
        case $1 in
        -f | -q | -i | -r) ;;
        -[aCeEoOstUwz])
            [ $# -gt 2 ] && f2fs_argument "$1" "$2" || return 1
            shift
            ;;
        *) return 1 ;;
        esac
        shift
    done
    case ${1:-} in /dev/*) made_on=$1 ;; *) return 1 ;; esac
}

f2fs_argument() {
    case $1 in
    -U) our_uuid "$2" ;;
    -O | -e | -E) features "$2" ;;
    -o) decimal "$2" ;;
    -C) choice "$2" ;;
    *) number "$2" ;;
    esac
}

# --- settings of the kernel

# setting_of FILE, as borrow.sh takes it, for fs:TYPE:DEVICE:NAME and queue:DEVICE:NAME. Sets `set_on` to the device; for
# btrfs, which the kernel lists by its UUID, to ''.
setting_of() {
    set_on=${1%:*}
    case $1 in
    queue:/dev/*:*)
        set_on=${set_on#queue:}
        case ${1##*:} in
        scheduler | read_ahead_kb | nr_requests | rq_affinity | nomerges | wbt_lat_usec | add_random | rotational) ;;
        max_sectors_kb | max_discard_segments | discard_max_bytes | write_cache | io_poll | io_poll_delay | iostats) ;;
        iosched/*) sysfs_words "${1##*:iosched/}" ;;
        *) return 1 ;;
        esac
        ;;
    fs:ext4:/dev/*:* | fs:xfs:/dev/*:* | fs:f2fs:/dev/*:*)
        set_on=${set_on#fs:*:}
        sysfs_path "${1##*:}"
        ;;
    fs:btrfs:*:*)
        our_uuid "${set_on#fs:btrfs:}" && set_on='' && sysfs_path "${1##*:}"
        ;;
    *) return 1 ;;
    esac
}

sysfs_words() { case $1 in '' | *[!a-z0-9_]*) return 1 ;; esac }

# What is there to hurt on purpose is not to be set.
sysfs_path() {
    case $1 in '' | /* | */ | *//* | *[!A-Za-z0-9_/]* | *trigger* | *simulate* | *errortag*) return 1 ;; esac
    [ ${#1} -le 100 ]
}

setting_value() {
    case $1 in '' | -* | ' '* | *[!A-Za-z0-9_.:\ -]*) return 1 ;; esac
    [ ${#1} -le 40 ]
}
