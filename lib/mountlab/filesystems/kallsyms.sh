# The kernel's functions and their addresses, compressed, by which a trace names them. Nothing where the box hides them.
awk '$2 ~ /^[tTwW]$/' /proc/kallsyms | gzip -n -1
exit 0
