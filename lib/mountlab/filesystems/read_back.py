"""The requested options of a file system and its backing against the kernel's report, for runner and report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mountlab.core.findings import NOT_IN_EFFECT, OptionEvidence
from mountlab.core.model import Filesystem
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.effect import Files, effects
from mountlab.filesystems.evidence import loops_below
from mountlab.filesystems.overlay import BELOW
from mountlab.filesystems.stack import layers_in_effect
from mountlab.filesystems.superblock import proved_by_difference


def options_in_effect(fs: Filesystem, files: Files, control: Files | None) -> list[OptionEvidence]:
    """Return every option of `fs`, and of the file system and devices below it, in the order of the sweep.

    `control`: the files of the same file system made without options, where there is one.
    """
    ours = [option for option in FAMILIES[fs.type].own_options(fs) if "{" not in option]
    judged = FAMILIES[fs.type].judge(fs, files)
    if judged is not None:
        judged += effects(replace(fs, options=(), mkfs=()), files, control)
    rows = effects(fs, files, control, extra=ours) if judged is None else judged
    rows += [*_direct_io(fs, files), *layers_in_effect(fs, files)]
    if fs.over is not None and f"evidence{BELOW}.txt" in files:
        rows += options_in_effect(fs.over, _files_below(files), _files_below(control) if control else None)
    return rows


def _files_below(files: Files) -> dict[str, str]:
    """Return the files of the file system below an overlay, by the names that they would have without one."""
    return {name.replace(f"{BELOW}.txt", ".txt"): text for name, text in files.items() if name.endswith(f"{BELOW}.txt")}


def _direct_io(fs: Filesystem, files: Files) -> Iterator[OptionEvidence]:
    """Yield whether the loop devices of images pass by the page cache of the file system that holds the images."""
    if fs.image_bytes:
        modes = {loop.direct_io for loop in loops_below(files)} or {False}
        actual = modes == {True} if fs.direct_io else True in modes
        yield OptionEvidence(
            filesystem=fs.name,
            option=f"direct_io: {str(fs.direct_io).lower()}",
            kind="backing",
            kernel_says=f"loop/dio = {int(actual)}",
            state="in effect" if actual == fs.direct_io else "changed",
        )


def ineffective(rows: list[OptionEvidence]) -> list[OptionEvidence]:
    """Return the rows of options that the kernel ignored or changed, or that have no effect here."""
    return [row for row in rows if row.state in NOT_IN_EFFECT]


def outcome_text(row: OptionEvidence) -> str:
    """Return a predicate for the name of an option that is not in effect: 'was ignored'."""
    return "is shown, but without effect here" if row.state == "without effect" else f"was {row.state}"


def control_ids(filesystem: str) -> tuple[str, str]:
    """Return the mount ids of a file system made without options, and of its second making."""
    return f"c-{filesystem}", f"again-{filesystem}"


def wants_second_control(fs: Filesystem) -> bool:
    """Return whether an option of mkfs may have no proof but a difference from the control: a second making then tells
    which lines differ at each making."""
    return proved_by_difference(fs.type, fs.mkfs) or (fs.over is not None and wants_second_control(fs.over))


def control_files(first: Files | None, second: Files | None) -> dict[str, str] | None:
    """Return the files of a control: of its first making, and the evidence of its second where there is one."""
    if first is None:
        return None
    return {**first, **{f"again-{name}": text for name, text in (second or {}).items() if name.startswith("evidence")}}
