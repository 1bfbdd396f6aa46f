"""A box in a researcher's hands: mount a file system, run a tool, look, and go on, one step at a time.

Each step is that of a sweep, with the same plan objects, steps, guard, evidence, journal and checks. It leaves a run
directory as a sweep does, whose report says that the trials were asked for one by one.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, overload

from mountlab.analysis.measurements import counted, without_partial
from mountlab.box.embedded import open_box
from mountlab.box.facts import gather
from mountlab.box.steady import SteadyBox
from mountlab.core.box_facts import BoxFacts
from mountlab.core.disk import path_text
from mountlab.core.errors import MountlabError, ParameterError, StoreError
from mountlab.core.findings import Caveat
from mountlab.core.frames import pd
from mountlab.core.model import Filesystem, Trial
from mountlab.core.shown import Several
from mountlab.core.text import visible
from mountlab.filesystems.evidence import parts_by_heading
from mountlab.results import paths, store
from mountlab.results.raw import text_files
from mountlab.runner.hand_session import HandSession, Mounted
from mountlab.runner.workflow import take_over
from mountlab.sweep.by_hand import QUESTION, HandSweep
from mountlab.sweep.feasible import all_programs


def box(
    name: str = "local",
    *,
    question: str = QUESTION,
    baseline: str | None = None,
    results: Path | str = paths.RESULTS,
    **design: Any,
) -> OpenBox:
    """Open a box for work by hand: to mount file systems, to run tools on them, and to look, in the journal and with
    the evidence, checks and clean-up of a sweep. `with mountlab.box("local") as box:` closes it at the end;
    docs/how-to/by-hand.md shows the rest.

    `name` is a file of params/boxes. `question` and `baseline` (the name of a file system) go into the report; `design`
    takes keys of a sweep's design (`drop_caches=False`, `trial_timeout="60s"`). The box is held until it is closed: no
    other run can use it. What a process that is gone has left there is removed first.

    Raises BoxInUse where the box is held already, and the errors of a sweep where it cannot be reached or used.
    """
    the_box = paths.load_box(name)
    sweep = HandSweep(box=name, question=question, design=design, baseline=baseline, read=paths.reader_in(Path.cwd()))
    sweep.empty()
    with ExitStack() as undo:
        run_end = undo.enter_context(ExitStack())
        ssh_box = undo.enter_context(open_box(the_box))
        connection = SteadyBox(ssh_box)
        facts = gather(connection, all_programs())
        take_over(connection, facts)
        session = HandSession(sweep, the_box, connection, facts, results=Path(results), run_end=run_end)
        session.hold(undo)
    return OpenBox(session, ssh_box.fabric)


class OpenBox:
    """A box that `mountlab.box` has opened. A `with` statement closes it at the end; without one, `close()` does, or
    the end of the Python process.

    Nothing is written before the first trial. From then on `path` is a run directory.
    """

    def __init__(self, session: HandSession, fabric: Any = None) -> None:
        self._session, self._fabric, self._process = session, fabric, os.getpid()
        atexit.register(self._close_at_exit)

    @property
    def fabric(self) -> Any:
        """The Fabric Connection to the box: `box.fabric.run("uname -r")`. It logs in as the box file says. Mountlab
        neither records nor undoes what is done by it."""
        return self._fabric

    @property
    def facts(self) -> BoxFacts:
        """What is known of the box: kernel, processor, memory, devices, programs."""
        return self._session.planner.facts

    @property
    def path(self) -> Path:
        """The run directory, which is made with the first trial: for `load_run`, and for `mountlab report`."""
        return self._session.path

    @property
    def measurements(self) -> pd.DataFrame:
        """All figures so far, a row for each: the columns are those of `load_run(box.path).measurements`."""
        return without_partial(self._session.measured())

    @property
    def caveats(self) -> Several[Caveat]:
        """Reasons to doubt the figures so far, worst first."""
        writer = self._session.recorder.started_writer(self.path)
        return Several(store.read_run(self.path, writer.records).caveats)

    def mounted(self, kind: str, /, *, name: str = "", **entry: Any) -> OpenPlace:
        """Make a file system, mount it, and read back what the kernel reports. A `with` statement unmounts it at the
        end; without one, `unmount()` or `close()` does.

        `kind` is its type, and the others are keys of `filesystems` in a sweep file: `options=["noatime"]`,
        `image="1GiB"`, `size="256MiB"`. Where a type needs a device and none is named, it gets a loop image of 1 GiB.
        `name` is what it is called in tables; without it its type. Options without effect are an error, as in a sweep.
        """
        return OpenPlace(self._session, self._session.mount(kind, name, entry))

    def trial(self, place: OpenPlace, *, tool: str, name: str = "", warmup: bool = False, **options: Any) -> HandTrial:
        """Run one trial, and return it. One that fails is returned, too, with its `reason`.

        `tool` and `options` are those of a workload in a sweep file: `tool="fio", rw="randread", bs="4KiB"`. `name` is
        what the workload is called in tables; without it a name is made of the options. The k-th trial of a workload on
        a file system belongs to block k. `warmup`: it is kept, and not counted.
        """
        n = 0 if warmup else 1
        planned = self._session.plan(place._mounted, name, {"tool": tool, **options}, n=n, warmup=1 - n, most=1)
        return HandTrial(self, self._session.run(planned)[0])

    def trials(
        self, place: OpenPlace, *, n: int, tool: str, name: str = "", warmup: int = 0, **options: Any
    ) -> HandTrials:
        """Run `n` counted trials, after `warmup` that are not counted, and return all of them.

        A list of values is a factor, as in a sweep file: then each block has every combination once, in random
        order. In JupyterLab its figures are shown as they grow, with a button that stops it.
        """
        planned = self._session.plan(place._mounted, name, {"tool": tool, **options}, n=n, warmup=warmup)
        return HandTrials(self, [HandTrial(self, trial) for trial in self._session.run(planned)])

    def close(self) -> None:
        """Unmount what is still mounted, undo all changes to the box, and end the run directory. A second call does
        nothing."""
        self.__exit__(None, None, None)

    def _close_at_exit(self) -> None:
        """Close a box that was left open, the last one first; a forked process has only a copy of it."""
        if os.getpid() == self._process:
            try:
                self._session.close()
            except MountlabError as error:
                sys.stderr.write(f"box {self._session.planner.box.name} was left open: {visible(str(error))}\n")

    def __enter__(self) -> OpenBox:
        self._session.check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        atexit.unregister(self._close_at_exit)
        self._session.close(kind, error, trace)

    def __repr__(self) -> str:
        session, trials = self._session, len(self._session.recorder.recorded_trials())
        mounted = ", ".join(mounted.filesystem.name for mounted in session.mounts) or "nothing"
        state = f"{mounted} mounted" if session.is_open else "closed"
        where = f" in {path_text(self.path)}" if trials else ""
        return f"<box {session.planner.box.name}: {state}, {trials} trials{where}>"


class OpenPlace:
    """A file system that `OpenBox.mounted` has mounted."""

    def __init__(self, session: HandSession, mounted: Mounted) -> None:
        self._session, self._mounted = session, mounted

    @property
    def filesystem(self) -> Filesystem:
        """The file system as it was requested: type, options, device."""
        return self._mounted.filesystem

    @property
    def name(self) -> str:
        """The name in tables."""
        return self._mounted.filesystem.name

    @property
    def path(self) -> str:
        """The directory on the box below which trials make their own: `box.fabric.run(f"df {place.path}")`."""
        return self._mounted.mount.root

    @property
    def files(self) -> dict[str, str]:
        """Output of the steps that made it, by the name of the file: mkfs.txt, mount.txt, evidence.txt."""
        return dict(self._mounted.files)

    @property
    def evidence(self) -> dict[str, str]:
        """What the kernel reports, by heading: `mountinfo`, `df` and others."""
        return parts_by_heading(self.files["evidence.txt"])

    @property
    def options(self) -> pd.DataFrame:
        """Each option that was asked for: whether it is in effect, and what the kernel says."""
        rows = [vars(row) for row in self._session.options(self._mounted)]
        return pd.DataFrame(rows, columns=["option", "kind", "state", "kernel_says"])

    def unmount(self) -> None:
        """Unmount it, and remove what it lay on. A second call does nothing."""
        self._session.unmount(self._mounted)

    def __enter__(self) -> OpenPlace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unmount()

    def __repr__(self) -> str:
        state = f"at {self.path}" if self._mounted in self._session.mounts else "unmounted"
        return f"<{self.name} ({self.filesystem.type}) {state}>"


@dataclass(frozen=True, eq=False, repr=False)
class HandTrial:
    """One trial that was run by hand."""

    box: OpenBox
    """The box on which it was run."""
    record: Trial
    """The trial's line in the journal."""

    @property
    def id(self) -> str:
        """The trial's id in the journal and below raw/: t0001."""
        return self.record.trial_id

    @property
    def status(self) -> str:
        """ok, failed, skipped, invalid or timeout."""
        return self.record.status

    @property
    def reason(self) -> str:
        """Why it is not ok; '' for an ok trial."""
        return self.record.reason

    @property
    def measurements(self) -> pd.DataFrame:
        """The figures of this trial, a row for each."""
        rows = self.box.measurements
        return rows[rows["trial_id"] == self.id].reset_index(drop=True)

    @property
    def metrics(self) -> dict[str, float]:
        """Name of a metric (and its label) to its value, in base units: B/s, 1/s, s, B. Raises StoreError for a trial
        that gave no figures."""
        if self.status != "ok":
            raise StoreError(f"{self.id} gave no figures: it is {self.status}", got=self.reason)
        rows = self.measurements
        names = (f"{metric} {label}".strip() for metric, label in zip(rows["metric"], rows["label"], strict=True))
        return dict(zip(names, rows["value"].astype(float), strict=True))

    @property
    def raw(self) -> dict[str, str]:
        """Raw files of the trial, by name: argv, stdout, fio.json, counters before and after."""
        return text_files(self.box.path / "raw" / self.id)

    @property
    def caveats(self) -> Several[Caveat]:
        """Reasons to doubt this trial, its cell or its file system. `box.caveats` has those of the whole run."""
        subjects = {self.id, self.record.cell, self.record.filesystem}
        return Several(caveat for caveat in self.box.caveats if caveat.subject in subjects)

    def __repr__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return visible(f"<trial {self.id} {self.record.cell}: {self.status}{why}>")


class HandTrials(Sequence[HandTrial]):
    """Trials that were run by hand, in the order in which they ran."""

    def __init__(self, box: OpenBox, trials: Iterable[HandTrial]) -> None:
        self._box, self._trials = box, tuple(trials)

    @overload
    def __getitem__(self, index: int) -> HandTrial: ...
    @overload
    def __getitem__(self, index: slice) -> HandTrials: ...
    def __getitem__(self, index: int | slice) -> HandTrial | HandTrials:
        return HandTrials(self._box, self._trials[index]) if isinstance(index, slice) else self._trials[index]

    def __len__(self) -> int:
        return len(self._trials)

    @property
    def measurements(self) -> pd.DataFrame:
        """The figures of these trials, a row for each, ready for pandas and seaborn."""
        rows = self._box.measurements
        return rows[rows["trial_id"].isin([trial.id for trial in self])].reset_index(drop=True)

    def values(self, metric: str, label: str = "") -> list[float]:
        """The values of one metric over the counted trials, in the order in which they ran. Raises ParameterError for a
        metric that these trials do not have."""
        rows = counted(self.measurements)
        metric_rows = rows[(rows["metric"] == metric) & (rows["label"] == label)]
        if metric_rows.empty:
            names = dict.fromkeys(f"{m} {text}".strip() for m, text in zip(rows["metric"], rows["label"], strict=True))
            raise ParameterError("no such metric", where="trials.values", got=repr(metric), allowed=", ".join(names))
        return [float(value) for value in metric_rows["value"]]

    def __repr__(self) -> str:
        counts = Counter(trial.status for trial in self)
        return f"<{len(self)} trials: {', '.join(f'{count} {status}' for status, count in counts.items())}>"
