"""Was the box itself quiet and steady while the trials ran?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mountlab.box.containment import LAST_RESORT
from mountlab.checks.asked import holds_bytes
from mountlab.checks.base import Check, Doubt, Evidence, from_counters, of_trials, share, standing
from mountlab.core.box_facts import BoxFacts
from mountlab.core.model import Sweep
from mountlab.core.units import MIB, format_bytes, format_seconds
from mountlab.filesystems.counters import Around

BUSY_SHARE, BUSY_TRIAL = 0.10, 0.25
"""Others who take more than this share of all processors, over the trials of a cell or in one of them, slow them."""
WAITING_SHARE, IDLE_SHARE = 0.5, 0.5
"""Tasks that wait for a processor in more than half of the time while the trial's programs take less than half of the
processors wait for somebody else."""
TELLING_S = 0.1
"""Less processor time than ten ticks of the kernel's clock says nothing."""
STOLEN_SHARE = 0.02
SWAPPED_BYTES = MIB
SHORT_SHARE = 0.1
"""Tasks that wait for memory in more than this share of the time find too little of it."""
PAGE_BYTES = 4096
"""Where an older run did not ask the box."""
STEP_S, STEP_SHARE = 0.1, 0.001
"""A clock that is being adjusted goes at most 0.05 % faster or slower; the snapshots are some milliseconds apart."""
SCALING_GOVERNORS = ("powersave", "ondemand", "conservative", "schedutil", "userspace")


# --- processors -------------------------------------------------------------------------------------------------------


def busy(evidence: Evidence) -> Iterator[Doubt]:
    """Other programs that took the processors during the trials.

    Others ran in user mode for more than 10 % of all processors' time over the cell's trials, or 25 % in one of them
    (`/proc/stat`, less what the trial's own programs and its neighbours took). Or tasks waited for a processor in half
    of the time (PSI) while the trial, without neighbours, took less than half of the processors.
    """
    for cell, trials in evidence.trials_with_counters():
        counted = [around for _, around in trials if around.others is not None and around.seconds]
        mean, seconds = _mean((around.others, around.seconds) for around in counted)
        if any(map(_is_busy, counted)) or (mean > BUSY_SHARE and mean * seconds > TELLING_S):
            worst = max(counted, key=lambda around: around.others or 0.0)
            waiting = worst.pressure.get("cpu")
            waited = f"; tasks waited for a processor in {share(min(1.0, waiting))} of the time" if waiting else ""
            yield Doubt.of_cell(
                cell,
                f"other programs took {share(mean)} of the processors while it ran, {share(worst.others or 0.0)} in "
                f"the worst of its {len(counted)} trials{waited}. They slow what is measured, and by chance more in "
                "one trial than in another: run again when the box is quiet, or with more blocks.",
            )


def _mean(parts: Iterable[tuple[float | None, float | None]]) -> tuple[float, float]:
    """Return the mean share over trials, and the seconds of all; of (share, seconds) of each, where both are known."""
    pairs = [(part, seconds) for part, seconds in parts if part is not None and seconds]
    total = sum(seconds for _, seconds in pairs)
    return (sum(part * seconds for part, seconds in pairs) / total if total else 0.0), total


def _is_busy(around: Around) -> bool:
    others, seconds = around.others or 0.0, around.seconds or 0.0
    if others > BUSY_TRIAL and others * seconds > TELLING_S:
        return True
    # With neighbours tasks wait for each other, as they should.
    idle = around.own is not None and around.own < IDLE_SHARE and not around.beside
    return idle and seconds > TELLING_S and around.pressure.get("cpu", 0.0) > WAITING_SHARE


def stolen(evidence: Evidence) -> Iterator[Doubt]:
    """Processor time that the hypervisor gave to other machines.

    The hypervisor gave more than 2 % of the processors' time to other machines (steal).
    """
    for cell, trials in evidence.trials_with_counters():
        mean, seconds = _mean((around.stolen, around.seconds) for _, around in trials)
        if mean > STOLEN_SHARE and mean * seconds > TELLING_S:
            yield Doubt.of_cell(
                cell,
                f"the hypervisor gave {share(mean)} of the processors' time to other machines while it ran (steal). "
                "Its figures depend on these neighbours: measure at another hour, or on a machine of your own.",
            )


def throttled(evidence: Evidence) -> Iterator[Doubt]:
    """Processors that were slowed because they were too hot.

    The kernel counted that processors were slowed because of heat during a trial.
    """
    for cell, trials in evidence.trials_with_counters():
        hot = [(trial_id, around.throttled) for trial_id, around in trials if around.throttled]
        if hot:
            yield Doubt.of_cell(
                cell,
                f"{of_trials([trial_id for trial_id, _ in hot], trials)} the processors were slowed because they were "
                f"too hot ({sum(count for _, count in hot)} times by the kernel's count). The later a trial, the "
                "slower: cool the box, or leave it pauses.",
            )


def scaled_frequency(_: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """Processors that change their speed with the load.

    The frequency governor is `powersave`, `ondemand`, `conservative`, `schedutil` or `userspace`.
    """
    governor = facts.processors.governor
    if governor and any(name in SCALING_GOVERNORS for name in governor.split(", ")):
        yield Doubt.of_run(
            f"the processors change their speed with the load (governor {governor}): trials that wait for a device "
            "may run on slow ones, and short trials before they are fast. Set `performance` while you measure "
            "(cpupower frequency-set -g performance), or compare only what is as long and as busy."
        )


def on_battery(_: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """A box that saves power.

    The box ran on its battery when the run began.
    """
    power = facts.machine.power or ""
    if power.startswith("battery"):
        yield Doubt.of_run(
            f"the box ran on its {power} when the run began: it saves power, and the more so the emptier it is. Plug "
            "it in."
        )


# --- memory and time --------------------------------------------------------------------------------------------------


def swapping(evidence: Evidence) -> Iterator[Doubt]:
    """Pages that went to or came from the swap during the trials, and tasks that waited for memory.

    1 MiB or more went to or came from swap during a trial, or tasks waited for memory in more than 10 % of its time
    (PSI).
    """
    page = evidence.facts.memory.page_bytes or PAGE_BYTES
    for cell, trials in evidence.trials_with_counters():
        affected, sizes, waits = [], [], []
        for trial_id, around in trials:
            size = (around.swapped_pages or 0) * page
            wait = around.pressure.get("memory", 0.0) if (around.seconds or 0.0) > TELLING_S else 0.0
            affected += [trial_id] if size >= SWAPPED_BYTES or wait > SHORT_SHARE else []
            sizes.append(size)
            waits.append(wait)
        if affected:
            yield Doubt.of_cell(
                cell,
                f"{of_trials(affected, trials)} memory was short: the box moved up to "
                f"{format_bytes(float(max(sizes)))} between memory and swap, and tasks waited for memory in up to "
                f"{share(min(1.0, max(waits)))} of the time. The device had that to do too: use a smaller working set, "
                "or stop what fills the memory.",
            )


def swap_in_use(_: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """Swap that was in use when the run began.

    Swap was in use when the run began.
    """
    used = facts.memory.swap_used_bytes
    if used:
        yield Doubt.of_run(
            f"{format_bytes(float(used))} of the box's memory lay in swap when the run began: memory has been short, "
            "and may be again. `swapoff -a && swapon -a` brings it back, where there is room."
        )


def limited_memory(sweep: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """A control group that may use less memory than a workload has data.

    The control group of the session may use less memory than a workload has data. `fits-in-memory` uses that limit too.
    """
    limit = facts.memory_limit
    largest = max((holds_bytes(cell.workload) for cell in sweep.cells), default=0)
    if limit is not None and limit < largest:
        yield Doubt.of_run(
            f"the control group of the session may use {format_bytes(float(limit))} of the box's memory, and a "
            f"workload has {format_bytes(float(largest))} of data: its cache is emptied, and its writes wait, sooner "
            "than with all of it. Raise memory.max of the session, or take less data than it."
        )


def taken_pages(_: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """A kernel that takes away pages that were not used for a while.

    DAMON was running with the action `pageout` when the run began.
    """
    reclaim = facts.memory.reclaim
    if reclaim and "pageout" in (reclaim.damon or ""):
        yield Doubt.of_run(
            "DAMON was running with the action pageout when the run began: although memory is free, it "
            "evicts pages that were not used for a while from the cache, and with swap from file systems in memory. "
            "A read after a pause may come from the device. Stop DAMON while you measure: write `off` to `state` below "
            "/sys/kernel/mm/damon/admin/kdamonds."
        )


def memory_given_back(_: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """A virtual machine that returns free memory to its host, and waits for the host when it uses the memory again.

    The virtio balloon of the box reports free pages (`VIRTIO_BALLOON_F_REPORTING`). On such a machine the first touch
    of 1 GiB ran at 0.9 GB/s, the second at 2.0. Flushed writes of 384 MiB fell into two groups, 0.5 and 1.9 GB/s, with
    an idle device in the slow ones.
    """
    if facts.memory.reclaim and facts.memory.reclaim.free_page_reporting == "on":
        yield Doubt.of_run(
            "the box returns free memory to its host (free page reporting of its virtio balloon). The first use of "
            "such a page waits for the host: files in memory and the page cache may fill several times slower than "
            "the second time, and trials differ by which pages they get. Switch it off in the host's configuration of "
            "the balloon (QEMU: free-page-reporting=off), or measure on a machine without it."
        )


def clock_steps(evidence: Evidence) -> Iterator[Doubt]:
    """Wall clocks that were set while a tool ran.

    Over a trial the wall clock differed from the clock that is never set by more than 0.1 s + 0.1 % of the trial.
    """
    for cell, trials in evidence.trials_with_counters():
        steps = {}
        for trial_id, around in trials:
            step_s, allowed_s = around.clock_step_s, STEP_S + STEP_SHARE * (around.seconds or 0.0)
            if step_s is not None and abs(step_s) > allowed_s:
                steps[trial_id] = step_s
        if steps:
            largest = max(steps.values(), key=abs)
            yield Doubt.of_cell(
                cell,
                f"{of_trials(list(steps), trials)} the box's wall clock was set while it ran, by up to "
                f"{format_seconds(abs(largest))} {'forwards' if largest > 0 else 'backwards'}. A tool that goes by it "
                "(fs_mark does) is wrong by as much: let the clock settle (chronyc waitsync) and run again.",
            )


# --- what the box is --------------------------------------------------------------------------------------------------


def debug_kernel(_: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """A kernel that looks for its own mistakes.

    The kernel's configuration has an option that looks for its own mistakes (KASAN, lockdep, ...).
    """
    options = facts.kernel.debug_options
    if options:
        yield Doubt.of_run(
            f"the kernel was built to look for its own mistakes ({', '.join(options)}): every call takes longer, and "
            "file systems in memory lose most by it. Measure with the kernel that will be used."
        )


def virtual_box(_: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """A virtual machine or a container.

    The box is a virtual machine or a container, but not emulated.
    """
    kind = facts.machine.virtualization
    if facts.machine.virtual and not facts.machine.emulated:
        yield Doubt.of_run(
            f"the box is a virtual machine or a container ({kind}): its disks may be files in the cache of a host, and "
            "other machines on that host are invisible. drop_caches empties this machine's caches only. The figures "
            "are those of such a machine, not of the hardware."
        )


def emulated_box(_: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """The processor of the box is a program.

    The processor of the box is a program (QEMU without KVM).
    """
    if facts.machine.emulated:
        yield Doubt.of_run(
            "the box is emulated: a program plays its processor and its disks. The figures show that things "
            "work, not how fast they are, and even ratios may come out differently on a real machine. "
            "Measure there before you decide."
        )


def uncontained(evidence: Evidence) -> Iterator[Doubt]:
    """Processes of a tool that could have outlived its trial unseen.

    In some trial the box allowed neither a cgroup nor a PID namespace. A daemon with an emptied environment could have
    outlived it.
    """
    held = [around.contained_by for around in evidence.around.values() if around.contained_by]
    loose = held.count(LAST_RESORT)
    if loose:
        yield Doubt.of_run(
            f"in {loose} of {len(held)} trials the box allowed neither a cgroup nor a PID namespace. What a tool left "
            "running was found by its environment; a daemon that empties its own is not. Look for one on the box."
        )


CHECKS = (
    standing(
        "emulated", emulated_box, "Measure on a real machine, or on one with KVM, before you decide.", needs="emulated"
    ),
    standing(
        "virtualised",
        virtual_box,
        "Take it as what such a machine gives, not as the speed of the hardware.",
        severities=("note",),
        needs="virtualization",
    ),
    standing("debug-kernel", debug_kernel, "Measure with the kernel that will be used.", needs="kernel_config"),
    standing(
        "memory-limited",
        limited_memory,
        "Raise `memory.max` of the session, or take less data.",
        needs="session_limits",
    ),
    standing(
        "pages-taken",
        taken_pages,
        "Stop DAMON while you measure.",
        severities=("note",),
        needs="reclaim",
    ),
    standing(
        "memory-given-back",
        memory_given_back,
        "Switch free page reporting off in the host.",
        needs="reclaim",
    ),
    standing("on-battery", on_battery, "Plug it in.", needs="power"),
    standing(
        "frequency-scaling",
        scaled_frequency,
        "`cpupower frequency-set -g performance` while you measure.",
        severities=("note",),
        needs="cpu_governor",
    ),
    standing(
        "swap-in-use",
        swap_in_use,
        "`swapoff -a && swapon -a` brings it back, where there is room.",
        severities=("note",),
        needs="swap_used_bytes",
    ),
    Check("box-busy", busy, "Run again when the box is quiet.", blind=from_counters("others")),
    Check(
        "time-stolen", stolen, "Measure at another hour, or on a machine of your own.", blind=from_counters("stolen")
    ),
    Check(
        "throttled",
        throttled,
        "Cool the box, or leave it pauses.",
        blind=from_counters("throttled", "the box counts no throttling"),
    ),
    Check(
        "swapping",
        swapping,
        "Use a smaller working set, or stop what fills the memory.",
        blind=from_counters("swapped_pages"),
    ),
    Check(
        "clock-stepped",
        clock_steps,
        "Let the clock settle (`chronyc waitsync`) and run again.",
        blind=from_counters("clock_step_s"),
    ),
    Check(
        "not-contained",
        uncontained,
        "Look for programs that go on running; measure as root, or where user namespaces are allowed.",
        severities=("note",),
        blind=from_counters("contained_by", "it was not recorded (by an earlier version of Mountlab)"),
    ),
)
