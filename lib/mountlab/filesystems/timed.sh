# Run "$@". Prints in sections, as mountlab.filesystems.evidence reads them, how long it took and what the kernel logged meanwhile;
# what the command itself says goes to standard error.
last=$(dmesg 2>/dev/null | tail -n 1)
export last
started=$(date +%s%N)
"$@" >&2 </dev/null
status=$?
ended=$(date +%s%N)
printf '==> elapsed_ns <==\n%s\n==> kernel <==\n' $((ended - started))
# Of a log that has turned over meanwhile, the end.
dmesg 2>/dev/null | awk '{ line[NR] = $0 } $0 == ENVIRON["last"] { n = NR }
    END { for (i = (NR - n > 100 ? NR - 99 : n + 1); i <= NR; i++) print line[i] }'
exit $status
