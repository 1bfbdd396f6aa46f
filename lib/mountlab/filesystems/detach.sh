# Needs ownership.sh
# detach.sh DEVICE FILE: undo `losetup --find FILE`, which named DEVICE.
detach_loop "$1" "$2"
