# Run by filebench between the making of its files and the measured run. $1: cold, or anything else; $2: the directory
# of the files. What was written is flushed, the cache is what was asked for, and the counters begin to count.
cd "$(dirname "$0")" || exit 1
sync
if [ "$1" = cold ] && ! { echo 3 >/proc/sys/vm/drop_caches; } 2>/dev/null; then
    find "$2" -type f -exec dd if={} iflag=nocache count=0 status=none \;
fi
tail -v -n +1 /proc/diskstats /proc/vmstat /proc/stat /proc/pressure/* >before.txt 2>/dev/null
echo settled >settled
