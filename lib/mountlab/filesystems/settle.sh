# Needs device.sh claim_record.sh
# settle.sh DEVICE EXPECTED
# Record that a use of a scratch device by Mountlab is over: what is written to it from now on is written by others.
#   DEVICE and EXPECTED: as for guard.sh
# Reads the device only. Always succeeds: where the end cannot be recorded (the device is still in use, or holds what
# Mountlab did not put there) the record keeps saying that it is used, and the next guard goes by the super block alone.
refuse() {
    printf 'the end of the use is not recorded: %s\n' "$1" >&2
    exit 0
}

find_device "$1"
find_identity "$1" "$2"
read_record && [ "$state" = using ] || exit 0
check_exclusive
find_signatures
listed_uuid "$id" || refuse "$device holds ${type:-nothing} ${id:-without an id}, which Mountlab did not put there"
record_content used "$writes"
