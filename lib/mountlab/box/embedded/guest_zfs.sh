# Builds the kernel modules of ZFS for the kernel $1, run in the root directory that has its headers and the package
# zfs-dkms. Leaves them in /zfs.tar.
set -eu
release=$1
for source in /usr/src/zfs-*; do version=${source#*/zfs-}; done
echo "I: compiling ZFS $version for the kernel $release..." >&2
dkms build "zfs/$version" -k "$release" >/dev/null 2>/dkms.log || {
    tail -n 40 /dkms.log "/var/lib/dkms/zfs/$version/build/make.log" >&2
    exit 1
}
modules=/made/usr/lib/modules/$release/updates/dkms
mkdir -p "$modules"
find "/var/lib/dkms/zfs/$version/$release" -name '*.ko*' -exec cp {} "$modules" ';'
tar -C /made -cf /zfs.tar usr
