"""Format the plan for people and for programs. The runner executes exactly what it shows."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from mountlab import checks
from mountlab.core import names, numbers, plugins
from mountlab.core.box_facts import BoxFacts
from mountlab.core.groups import by_key
from mountlab.core.model import Box, Filesystem, Step, Sweep, Until, Workload
from mountlab.core.numbers import duration_text, percent, rough_duration
from mountlab.core.objectives import objective_text
from mountlab.core.search import Search
from mountlab.core.text import visible
from mountlab.core.units import format_bytes, format_seconds
from mountlab.filesystems import FAMILIES
from mountlab.programs import TOOLS, data_lines, remark_lines
from mountlab.programs.precondition import WINDOW
from mountlab.sweep.beside import neighbour_texts
from mountlab.sweep.capacity_time import SearchTime
from mountlab.sweep.clients import driving_clients
from mountlab.sweep.plan import Plan, PlannedMount, PlannedTrial
from mountlab.sweep.state_text import state_lines, states_json

_MOST_NAMED = 4
"""Excluded cells of a file system that the plan names one by one."""


def plan_json(plan: Plan, facts: BoxFacts) -> dict[str, object]:
    """Return everything in the plan, JSON-able: `commands` are the exact argument lists, in order."""
    return {
        "sweep": plan.sweep.name,
        "question": plan.sweep.question,
        "box": plan.box.name,
        "run_id": plan.run_id,
        "seed": plan.seed,
        "as_root": plan.privileged,
        "trials": len(plan.trials) - len(_diagnostic(plan)),
        "warmup_trials": _warm(plan),
        "diagnostic_trials": len(_diagnostic(plan)),
        **_times_json(plan),
        "data": data_lines(plan.sweep.workloads),
        "fresh_more_s": round(plan.fresh_more_s, 1),
        "skipped": plan.skipped,
        "foreseen": foreseen(plan.sweep, facts),
        "caveats": [asdict(caveat) for caveat in checks.foresee(plan.sweep, facts)],
        "directories": directories(plan),
        "devices": devices(plan, facts),
        "states": states_json(plan),
        "left_out": dict(plan.sweep.left_out),
        "clients": [client.name for client in plan.clients],
        "cells": [cell.id for cell in plan.sweep.cells],
        "excluded": list(plan.sweep.excluded),
        "order": [_trial_row(trial) for trial in plan.trials],
        "commands": [list(argv) for argv in plan.commands()],
    }


def _times_json(plan: Plan) -> dict[str, object]:
    """Return how long the run takes at most, and where cells may end earlier how long at least."""
    until, expected_s = plan.sweep.design.until, round(plan.expected_s, 1)
    if plan.sweep.searches:
        time = SearchTime.of(plan)
        return {"expected_s": round(time.most_s, 1), "expected_least_s": round(time.least_s, 1)}
    if until is None:
        return {"expected_s": expected_s}
    least_s = round(plan.expected_until_s(until.min), 1)
    return {"expected_s": expected_s, "until": asdict(until), "expected_least_s": least_s}


def _trial_row(trial: PlannedTrial) -> dict[str, object]:
    return {
        "trial_id": trial.trial_id,
        "block": trial.block,
        "cell": trial.cell.id,
        "mount": trial.mount,
        "seed": trial.command.seed,
        "prepare": [list(argv) for argv in trial.command.prepare],
        "ready": [list(argv) for argv in trial.ready],
        "beside": {planned.name: list(planned.command.argv) for _, planned in trial.neighbours},
        "measured": list(trial.command.argv),
    }


def directories(plan: Plan) -> list[str]:
    """Return every directory of the box that is made, written and removed again."""
    return list(dict.fromkeys([*plan.opening.argv[-3:-1], *(mount.root for mount in plan.mounts)]))


def devices(plan: Plan, facts: BoxFacts) -> dict[str, str]:
    """File system name to the device that is formatted for it, and what is on that device now."""
    new = {fs.name: text for fs in plan.sweep.filesystems if (text := _new_device(fs.over or fs))}
    return {**new, **facts.surveyed.devices}


def _new_device(fs: Filesystem) -> str:
    """Return the devices that are made for a file system, and go away with it."""
    parts = []
    if fs.image_bytes:
        size = format_bytes(fs.image_bytes)
        several = f"{fs.members} loop devices on new images of {size} each"
        parts.append(several if fs.members > 1 else f"a loop device on a new image of {size}")
    if fs.zram_bytes:
        parts.append(f"a new zram device of {format_bytes(fs.zram_bytes)}")
    if fs.pmbd:
        parts.append("the device of the pmbd module")
    if fs.journal_image_bytes:
        parts.append(f"its journal on a new image of {format_bytes(fs.journal_image_bytes)}")
    if fs.realtime_image_bytes:
        parts.append(f"its data on a new image of {format_bytes(fs.realtime_image_bytes)} (realtime device)")
    parts += [layer.text for layer in fs.stack]
    if fs.vdevs:
        parts.append(f"a pool of {', '.join(vdev.text for vdev in fs.vdevs)}")
    return ", ".join(parts)


def plan_text(plan: Plan, facts: BoxFacts) -> str:
    """Return the plan for the terminal: what, where, how long, and each different command once. Nothing in it turns
    text round."""
    return visible("\n".join(_lines(plan, facts)))


def _lines(plan: Plan, facts: BoxFacts) -> Iterator[str]:
    design, warm, traced = plan.sweep.design, _warm(plan), _diagnostic(plan)
    yield plan.sweep.question
    yield ""
    rights = "as root" if plan.privileged else "without root"
    if facts.rights.level == "helper":
        rights = f"tools as {facts.rights.user}, all else by the helper of the box"
    stage = plan.sweep.stages[-1]
    most = "at most " if plan.sweep.decides else ""
    times = f"{design.until.min} to {design.until.max}" if design.until else f"{most}{len(stage.counted)}"
    cells = f"{len(stage.cells)} cells x {times} blocks"
    yield f"box          {plan.box.name} ({facts.machine.hostname}, Linux {facts.kernel.release}), {rights}"
    if plan.clients:
        how = "fio's client/server mode over SSH" if driving_clients(plan.sweep) else "neighbours that run there"
        yield f"clients      {', '.join(client.name for client in plan.clients)}, by {how}"
    yield from _labelled("design", thinned(plan.sweep))
    yield f"trials       {most}{len(plan.trials) - len(traced)}: {cells}, and {warm} warm-up trials"
    if traced:
        yield f"diagnostic   {_diagnostic_text(len(traced), plan)}"
    if design.shortest_trial_s:
        yield f"measured     {format_seconds(design.shortest_trial_s)} or more in each trial, or a caveat says so"
    yield from _labelled("blocks", ending_texts(plan.sweep))
    yield from _labelled("time", _time(plan))
    yield f"order        drawn with seed {plan.seed} (-p seed={plan.seed} draws the same again)"
    if any(trial.command.seed is not None for trial in plan.trials):
        yield "seeds        one for each block, derived from it: all cells of a block draw the same places and data"
    yield from _labelled("data", data_lines(plan.sweep.workloads))
    yield from _labelled("neighbours", neighbour_texts(plan.sweep))
    yield from _labelled("plug-ins", [plugin.words for plugin in plugins.used_by(plan.sweep)])
    yield from _labelled("directories", directories(plan) or ["nothing"])
    yield from _labelled("formats", [f"{k}: {v}" for k, v in devices(plan, facts).items()] or ["nothing"])
    yield from _labelled("states", state_lines(plan, facts))
    yield from _labelled("left out", plan.sweep.left_out.values())
    yield from _labelled("foreseen", foreseen(plan.sweep, facts))
    yield from _labelled("caveats", _caveats(plan.sweep, facts))
    yield from _commands(plan)


def _warm(plan: Plan) -> int:
    return sum(trial.warmup and not trial.diagnostic for trial in plan.trials)


def _diagnostic(plan: Plan) -> list[PlannedTrial]:
    return [trial for group in plan.mount_groups if group.diagnostic for trial in group.trials]


def _diagnostic_text(trials: int, plan: Plan) -> str:
    design = plan.sweep.design
    blocks = numbers.counted(design.explain + design.profile, "block")
    took = rough_duration(float(round(plan.diagnostic_s)))
    return f"{numbers.counted(trials, 'trial')} in {blocks} after all others, traced and never counted: about {took}"


def sweep_text(sweep: Sweep, boxes: Iterable[Box]) -> str:
    """Format what a sweep would measure, as far as it is known without a box. `boxes`: those of it that have a file."""
    return visible("\n".join(_sweep_lines(sweep, {box.name: box for box in boxes})))


def _missing(name: str, box: Box | None, devices: Iterable[str]) -> str:
    """Return what is not there of a box: its file, or the scratch devices that the sweep names."""
    if box is None:
        return f" (there is no params/boxes/{name}.yml)"
    absent = [device for device in devices if device not in {scratch.name for scratch in box.scratch}]
    return f" (params/boxes/{name}.yml lists no scratch device {numbers.listed(absent)})" if absent else ""


def _sweep_lines(sweep: Sweep, files: Mapping[str, Box]) -> Iterator[str]:
    design, cells = sweep.design, len(sweep.cells)
    backed = [fs.over or fs for fs in sweep.filesystems]
    devices = dict.fromkeys(name for fs in backed for name in fs.scratch)
    until, boxes = design.until, sweep.boxes or (sweep.box,)
    atmost = "at most " if sweep.decides else ""
    blocks = f"{until.min} to {until.max}" if until else f"{atmost}{design.repeats}"
    yield sweep.question
    yield ""
    yield from _labelled("sweep", [sweep.name])
    for name in dict.fromkeys((*boxes, *sweep.clients)):
        missing = _missing(name, files.get(name), devices if name in boxes else ())
        yield f"{'box' if name == boxes[0] else '':12} {name}{missing}"
    yield from _labelled("baseline", [sweep.baseline or "none: nothing is compared"])
    yield from _labelled("design", thinned(sweep))
    most = f"{atmost}{cells * (design.repeats + design.warmup)}"
    yield f"trials       {most}: {cells} cells x {blocks} blocks, and {cells * design.warmup} warm-up trials"
    if blocks_traced := design.explain + design.profile:
        yield f"diagnostic   {cells * blocks_traced}: {cells} cells x {blocks_traced} blocks, never counted"
    yield from _labelled("blocks", ending_texts(sweep))
    yield from _labelled("data", data_lines(sweep.workloads))
    yield from _labelled("neighbours", neighbour_texts(sweep))
    yield from _labelled("changed", remark_lines(sweep.workloads))
    yield from _labelled("foreseen", foreseen(sweep, BoxFacts()))
    yield from _labelled("caveats", _caveats(sweep, BoxFacts()))
    yield "\ncells (each workload on these file systems):"
    for label, names_of in by_key((cell.workload.label, cell.filesystem.name) for cell in sweep.cells).items():
        yield f"  {label}: {', '.join(names_of)}"


def _labelled(label: str, lines: Iterable[str]) -> Iterator[str]:
    """Return the lines with a label before the first."""
    return (f"{'' if number else label:12} {line}" for number, line in enumerate(lines))


def _time(plan: Plan) -> Iterator[str]:
    """Yield how long it will take; with a stopping rule between its fewest and its most blocks, or the budget. What
    file systems would cost that are made in each block, where they are made once."""
    until, most = plan.sweep.design.until, float(round(plan.expected_s))
    if plan.sweep.searches:
        time = SearchTime.of(plan)
        yield f"about {rough_duration(float(round(time.least_s)))} to {rough_duration(float(round(time.most_s)))}"
        lengths = f"{rough_duration(time.shortest_s)} to {rough_duration(time.longest_s)}"
        times = f"{time.fewest} to {time.most} trials for each capacity"
        yield f"{times}, each of {lengths}: the lower its rate, the longer"
    elif until is None:
        yield f"about {rough_duration(most)}"
    else:
        least = float(round(plan.expected_until_s(until.min)))
        budget = until.budget_s if until.budget_s is not None else most
        yield f"about {rough_duration(least)} to {rough_duration(max(least, min(most, budget)))}"
        if least > budget:
            limit = f"the budget of {format_seconds(budget)}"
            yield f"{until.min} blocks will take longer than {limit}: they are run all the same"
    if plan.fresh_more_s:
        yield fresh_cost(plan.fresh_more_s, plan.expected_s)


def thinned(sweep: Sweep) -> list[str]:
    """Return what the sweep leaves out of the full factorial: combinations of levels that a workload lacks, and
    workloads that a file system lacks."""
    by_name = by_key((workload.name, workload) for workload in sweep.workloads)
    lines = [line for name, group in by_name.items() if (line := _of_factorial(name, group))]
    for fs in sweep.filesystems:
        cells = (sweep.combinations.get(cell) for cell in sweep.excluded)
        gone = [cell.workload.label for cell in cells if cell and cell.filesystem.name == fs.name]
        lines += [f"{fs.name}: without {numbers.first_few(gone, _MOST_NAMED)}"] if gone else []
    return lines


def _of_factorial(name: str, workloads: list[Workload]) -> str:
    """'fio: 6 of the 12 combinations of rw (4) and bs (3)'; '' where it has them all."""
    keys = dict.fromkeys(key for workload in workloads for key in workload.factors)
    levels = {key: len({workload.factors.get(key) for workload in workloads}) for key in keys}
    whole = math.prod(levels.values())
    factors = numbers.listed([f"{key} ({count})" for key, count in levels.items()])
    return f"{name}: {len(workloads)} of the {whole} combinations of {factors}" if len(workloads) < whole else ""


def foreseen(sweep: Sweep, facts: BoxFacts) -> list[str]:
    """Return options that are known beforehand not to be in effect as asked."""
    by_name = {fs.name: FAMILIES[fs.type].foreseen(fs, facts) for fs in sweep.filesystems}
    return [f"{name}: {option}: {text}" for name, options in by_name.items() for option, text in options.items()]


def _caveats(sweep: Sweep, facts: BoxFacts) -> Iterator[str]:
    """Return the caveats that are known before the run, worst first; those of several cells once."""
    subjects = by_key(
        ((caveat.severity, caveat.code, caveat.message), caveat.subject) for caveat in checks.foresee(sweep, facts)
    )
    for (severity, code, message), of in subjects.items():
        more = f" and {len(of) - 1} more" if len(of) > 1 else ""
        yield f"{severity}: {names.code_words(code)}{f', {of[0]}' if of[0] else ''}{more}: {message}"


def _commands(plan: Plan) -> Iterator[str]:
    times = Counter((mount.filesystem.name, mount.state) for mount in plan.mounts)
    controls = Counter(mount.filesystem.name for mount in plan.controls)
    most = "at most " if plan.sweep.decides and not plan.lasting else ""
    for state in plan.states:
        times_made = "in each mount" if state.again else "once"
        yield f"\n{state.filesystem.name}, the state {state.state.name}, made {times_made}:"
        yield from (f"  {_step_line(step)}" for step in state.steps)
    for (name, state_name), mount in {(mount.filesystem.name, mount.state): mount for mount in plan.mounts}.items():
        without = {1: "once", 2: "twice"}.get(controls.pop(name, 0), "")
        once = f", and {without} without its options, to see what the kernel shows by itself" if without else ""
        made = f"made {most}{numbers.counted(times[name, state_name], 'time')}{once}:"
        turn = f"{name} in the state {state_name}" if state_name else name
        yield f"\n{turn}, " + (f"skipped: {mount.skip_reason}" if mount.skip_reason else made)
        yield from (f"  {line}" for line in _mount_lines(mount))
    yield "\ntrials (each in a directory of its own, made and removed with it):"
    by_workload = by_key((trial.cell.workload.label, trial) for trial in plan.trials if not trial.skip_reason)
    for label, trials in by_workload.items():
        trial = trials[0]
        yield f"  {label}"
        yield from (f"    prepare  {shlex.join(argv)}" for argv in trial.command.prepare)
        yield from (f"    ready    {line}" for line in _ready_lines(trials))
        if trial.cell.workload.precondition:
            rounds = trial.cell.workload.precondition
            yield f"    first    up to {rounds} rounds of it on each new mount, until the last {WINDOW} are steady"
        if (search := trial.cell.workload.search) is not None:
            least = max(TOOLS[trial.cell.workload.tool].least_rate(trial.cell.workload), 1)
            later = f"then from the answers before it, {least:,.0f} or more"
            yield f"    rate     {search.start:,.0f} requests/s in its first trial; {later}"
        for client, planned in trial.neighbours:
            name = planned.name + (f" on {client}" if client else "")
            yield from (f"    lays out {shlex.join(argv)}   (for {name})" for argv in planned.command.prepare)
            yield f"    beside   {shlex.join(planned.command.argv)}   ({name}, until the tool ends)"
        yield f"    measure  {shlex.join(trial.command.argv)}"
    for cell, reason in plan.skipped.items():
        yield f"  {cell}: skipped: {reason}"
    yield "\nEvery command of every trial, in order: add --json."


def _ready_lines(trials: Sequence[PlannedTrial]) -> Iterator[str]:
    """Yield what is done after the caches were dropped, once for each different command; where that is done on some
    file systems only, their names."""
    prepared = [trial for trial in trials if trial.ready]
    everywhere, done = (dict.fromkeys(trial.cell.filesystem.name for trial in group) for group in (trials, prepared))
    where = f"   (on {numbers.listed(list(done))} only)" if len(done) < len(everywhere) else ""
    for argv, times in Counter(prepared[0].ready if prepared else ()).items():
        yield f"{shlex.join(argv)}{f'   ({times} times)' if times > 1 else ''}{where}"


def _mount_lines(mount: PlannedMount) -> Iterator[str]:
    yield from map(_step_line, mount.steps)
    for client in mount.clients:
        for step in client.steps:
            yield f"{client.client}: {_short(step.argv)}"
        yield from (
            f"{client.client}: {_short(step.undo)}   # afterwards" for step in reversed(client.steps) if step.undo
        )
    yield from (f"{_short(step.undo)}   # afterwards" for step in reversed(mount.steps) if step.undo)


def _step_line(step: Step) -> str:
    command = _short(step.argv)
    return command + (f"   # {step.why}" if command.split()[0].endswith((".sh", "make-dir")) else "")


def _short(argv: tuple[str, ...]) -> str:
    """Return a command line without the mark of the run; of a script its name and arguments only, and of one that runs
    a command (the guard, the clock) that command."""
    argv = argv[2:] if argv[0] == "env" else argv
    if argv[0] == "guard.sh":  # of a further device
        return _short(argv[4:])
    for name, skip in (("guard.sh", 4), ("timed.sh", 1)):
        if argv[:2] == ("sh", "-c") and argv[3] == name and len(argv) > 3 + skip:
            return _short(argv[3 + skip :])
    words = argv[3:] if argv[:2] == ("sh", "-c") else argv
    named = r"\{(device|journal|realtime|member\d+|layer\d+)\}"
    return shlex.join(re.sub(named, lambda found: found[1].upper(), word) for word in words)


def fresh_cost(more_s: float, expected_s: float) -> str:
    """Return what making file systems in each block would cost beside the expected time of a plan that makes them
    once."""
    share = f" ({percent(round(more_s / expected_s, 3))} more)" if expected_s else ""
    return f"fresh_filesystem: block would take about {rough_duration(more_s)} beyond that{share}"


def ending_texts(sweep: Sweep) -> list[str]:
    """Return until when blocks go on, in words; nothing where their number is fixed."""
    searches = {workload.name: workload.search for workload in sweep.workloads if workload.search}
    if sweep.design.until:
        return [rule_text(sweep.design.until)]
    return [f"{name}: {search_text(search)}" for name, search in searches.items()]


def search_text(search: Search) -> str:
    """Return a search in words: 'until the capacity at read p99 ≤ 5 ms is within ± 5 %, 60 trials at most'."""
    within = f"within ±\u00a0{percent(search.half_width)}"
    most = numbers.counted(search.max_trials, "trial")
    return f"until the capacity at {objective_text(search.objective)} is {within}, {most} at most"


def rule_text(until: Until) -> str:
    """Return a stopping rule in words: 'until every mean is within ± 3 % at 95 %, 5 to 40 blocks, at most 30 min'."""
    what, at = ("mean", " at") if until.of == "cells" else ("ratio", ", all together at")
    most = f", at most {duration_text(until.budget_s)}" if until.budget_s is not None else ""
    within = f"within ±\u00a0{percent(until.half_width)}{at} {percent(until.confidence)}"
    return f"until every {what} is {within}, {until.min} to {until.max} blocks{most}"
