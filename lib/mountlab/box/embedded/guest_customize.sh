# The last step of building the virtual box, run in its root directory: how the guest starts, and the initial memory disk
# that finds its root. Takes its files from /mountlab and leaves vmlinuz and initrd there.
set -eu
cd /mountlab
release=$(ls /lib/modules)
cp "/boot/vmlinuz-$release" vmlinuz

# --- the guest's own start --------------------------------------------------------------------------------------------

install -d /etc/mountlab
install -m 755 guest_start.sh /etc/mountlab/start
install -m 600 host_key /etc/mountlab/host_key
install -m 644 authorized_keys /etc/mountlab/authorized_keys
install -m 644 guest_sshd.conf /etc/mountlab/sshd_config
echo mountlab-vm >/etc/hostname
echo '127.0.0.1 localhost mountlab-vm' >/etc/hosts
printf '::sysinit:/etc/mountlab/start\n::ctrlaltdel:/bin/busybox reboot\n' >/etc/inittab
for name in init reboot poweroff halt; do ln -sf /bin/busybox "/sbin/$name"; done
# What the building machine's apt uses, host keys that are not ours, files for a boot loader. The last loads keys for
# encrypted NVDIMMs, which takes long and fails without a TPM.
rm -rf /etc/apt/sources.list* /etc/apt/apt.conf.d/99mmdebstrap /etc/ssh/ssh_host_* /vmlinuz* /initrd.img* \
    /etc/modprobe.d/nvdimm-security.conf
find /boot -mindepth 1 -delete

# The guest runs no udevd: LVM must not wait for it.
cat >/etc/lvm/lvmlocal.conf <<'END'
activation {
    udev_sync = 0
    udev_rules = 0
}
devices {
    obtain_device_list_from_udev = 0
    external_device_info_source = "none"
}
backup {
    backup = 0
    archive = 0
}
END

# --- the initial memory disk ------------------------------------------------------------------------------------------

mkdir disk
(
    cd disk
    mkdir bin modules dev proc sys low high root
    cp /bin/busybox bin/busybox
    for name in sh mount mkdir poweroff insmod sleep switch_root; do ln -s busybox "bin/$name"; done
    install -m 755 ../guest_init.sh init
)
for module in virtio_pci virtio_blk squashfs overlay; do
    modprobe --set-version "$release" --ignore-install --show-depends "$module"
done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' >modules
while read -r module; do
    name=${module##*/}
    name=${name%.xz}
    case $module in
        *.xz) busybox xz -dc "$module" >"disk/modules/$name" ;;
        *) cp "$module" "disk/modules/$name" ;;
    esac
    echo "/modules/$name" >>disk/modules/order
done <modules
(cd disk && busybox find . | busybox cpio -o -H newc) >initrd
