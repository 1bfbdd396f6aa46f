# Run by filebench between the making of its files and the measured run. $1: cold, or anything else; $2: the directory
# of the files. It flushes what was written, brings the cache into the requested state, and starts the counters.
cd "$(dirname "$0")" || exit 1
sync
if [ "$1" = cold ] && ! { echo 3 >/proc/sys/vm/drop_caches; } 2>/dev/null; then
    said=$(find "$2" -type f -exec dd if={} iflag=nocache count=0 status=none \; 2>&1) # find ends well whatever dd says
    [ -z "$said" ] || { echo "the pages of the files cannot be dropped: the dd of the box says $said" >&2; exit 1; }
fi
tail -v -n +1 /proc/diskstats /proc/vmstat /proc/stat /proc/pressure/* >before.txt 2>/dev/null
echo settled >settled
