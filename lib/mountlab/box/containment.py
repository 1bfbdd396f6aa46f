"""What keeps the processes and mounts of a tool within its trial: what a box offers for that, and what it came to.

The trial's own part is contain.sh. Which namespaces a box allows is asked once a run. Whether there is a cgroup the
trial sees for itself, since it makes one below the cgroup of its connection.
"""

from __future__ import annotations

import shlex

from mountlab.core.box_facts import BoxFacts

CGROUPS = "/sys/fs/cgroup"
"""Where cgroups are mounted: v2, v1 (a directory a controller), or both (v2 in `unified`)."""
LAST_RESORT = "environment"
"""What marks a trial's processes on a box without cgroup and PID namespace."""
_MOUNTS = "-m --propagation slave"
"""What others unmount on the box goes there too: else their disks would stay busy as long as the trial takes."""
_ALONE = f"{_MOUNTS} -p -f --mount-proc"
OFFERS = {
    "mount_namespace": (f"unshare {_MOUNTS}",),
    # busybox has no --kill-child. An ordinary user keeps the user id: as a seeming root tools act otherwise.
    "pid_namespace": (
        f"unshare {_ALONE} --kill-child", f"unshare {_ALONE}", f"unshare -U --map-current-user {_ALONE} --kill-child",
    ),
}  # fmt: skip
"""What is tried, best first. A mount namespace alone goes with a cgroup, which only root can make."""
_ASK = r"""
offer() {
    variable=$1
    shift
    for words; do
        $words sh -c '[ -r /proc/$$/stat ] && [ "$(id -u)" = "$0" ]' "$(id -u)" && break
        words=''
    done 2>/dev/null
    printf '%s\t%s\n' "$variable" "$words"
}
"""


def ask_argv() -> tuple[str, ...]:
    """Return the command that asks a box which of OFFERS it allows. It changes nothing there."""
    offers = (f"offer {variable} {' '.join(map(shlex.quote, commands))}" for variable, commands in OFFERS.items())
    return ("sh", "-c", _ASK + "\n".join(offers), "namespaces")


def read_offers(printed: str) -> dict[str, str]:
    """Parse a box's answer to `ask_argv`: variable of contain.sh to the words of its command, '' for none."""
    answers = dict(line.partition("\t")[::2] for line in printed.splitlines())
    return {name: words if (words := answers.get(name, "")) in commands else "" for name, commands in OFFERS.items()}


def namespaces(facts: BoxFacts) -> dict[str, str]:
    """Return the variables of contain.sh. Facts of earlier versions offer nothing."""
    return {variable: facts.surveyed.namespaces.get(variable, "") for variable in OFFERS}
