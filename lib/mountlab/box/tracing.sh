# Prints whether this kernel can be traced, and which of the events $@ it has (mountlab.box.tracing reads this). Leaves
# nothing. `said`: words of a program that refuses.
sed -n 's/^CapEff:[[:space:]]*/capabilities /p' /proc/self/status
if read -r line < /sys/kernel/security/lockdown; then echo "lockdown $line"; fi 2>/dev/null
# shellcheck disable=SC2016 # for the shell in the namespace
unshare -m --propagation slave sh -c '
    [ -d /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing || exit
    for event; do
        if [ -d "/sys/kernel/tracing/events/${event%:*}/${event#*:}" ]; then echo "event $event"; fi
    done
    export PERF_CONFIG=/dev/null
    if said=$(perf record -q -a --no-buildid --no-buildid-cache -D -1 --control fd:0 -e sched:sched_switch \
        -e raw_syscalls:sys_enter -o /dev/null -- true 2>&1 < /dev/null); then
        echo records
    else printf "said %s\n" "$(printf %s "$said" | tr "\n" " " | cut -c 1-300)"; fi
' tracing.sh "$@" 2>&1 | sed 's/^mount: /said mount: /; s/^unshare: /said unshare: /'
