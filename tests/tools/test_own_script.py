"""snapshot, reflink and send: the seeded files on which they work, and that figures of other work are refused."""

from __future__ import annotations

import math
import re
import subprocess
import zlib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from installed_programs import program
from mountlab.core.errors import ParameterError, TrialError
from mountlab.core.model import Target, Workload
from mountlab.core.shell import script_text
from mountlab.programs import TOOLS
from mountlab.sweep.clients import refusal
from mountlab.sweep.sweep_file import resolve
from mountlab.tools.base import ToolOutput
from rows import every_row

DATA = Path(__file__).parents[1] / "data"
MIB = 1 << 20
FILES = {
    "snapshot": {"stdout": "snapshot/btrfs.stdout"},
    "reflink": {name: f"reflink/btrfs-random.{name}" for name in ("stdout", "first", "second")},
    "stream": {name: f"reflink/btrfs-sequential.{name}" for name in ("stdout", "first", "second")},
    "send": {"stdout": "send/btrfs.stdout"},
    "null": {"stdout": "send/btrfs-null.stdout"},
    "rsync": {"stdout": "send/rsync.stdout", "rsync.first": "send/rsync.first", "rsync.second": "send/rsync.second"},
}
"""Recorded trials on a loop image."""
ASKED: dict[str, dict[str, Any]] = {
    "snapshot": {"tool": "snapshot", "size": "16MiB", "snapshots": 3, "change": "5%"},
    "reflink": {"tool": "reflink", "size": "16MiB", "blocks": 20, "clones": 4},
    "stream": {"tool": "reflink", "size": "16MiB", "blocks": 20, "clones": 4, "order": "sequential"},
    "send": {"tool": "send", "via": "send", "size": "16MiB", "change": "5%"},
    "null": {"tool": "send", "via": "send", "size": "16MiB", "change": "5%", "to": "null"},
    "rsync": {"tool": "send", "via": "rsync", "size": "16MiB", "change": "5%"},
}
CHANGED = 13 * 65536
"""5 % of 256 files of 64 KiB, in whole files."""


def resolved(entry: Mapping[str, Any], filesystem: Mapping[str, Any]) -> Any:
    raw = {"name": "s", "question": "?", "filesystems": {"f": dict(filesystem)}, "workloads": {"w": dict(entry)}}
    return resolve(raw, where="s.yml").sweep


def workload(name: str, **changes: Any) -> Workload:
    return resolved({**ASKED[name], **changes}, {"type": "dir"}).workloads[0]


def texts(name: str) -> dict[str, str]:
    return {file: (DATA / path).read_text() for file, path in FILES[name].items()}


def parse(name: str, files: Mapping[str, str], **changes: Any) -> dict[tuple[str, str], float]:
    own = workload(name, **changes)
    output = ToolOutput(exit_status=0, stdout=files["stdout"], stderr="", files=files)
    return {(row.metric, row.label): row.value for row in TOOLS[own.tool].parse(own, output)}


def clocked(name: str, operation: str) -> list[float]:
    """Seconds between the second and the third reading of the clock, in nanoseconds."""
    found = re.findall(rf"^timed {operation} \d+ (\d+) (\d+) ", texts(name)["stdout"], re.MULTILINE)
    return [(int(end) - int(start)) / 1e9 for start, end in found]


def copied_s(text: str) -> list[float]:
    return [float(seconds) for seconds in re.findall(r"copied, ([\d.e-]+) s", text)]


# --- figures ----------------------------------------------------------------------------------------------------------


def test_snapshots_are_timed_one_by_one_and_deletion_is_shared_among_them() -> None:
    figures, created = parse("snapshot", texts("snapshot")), clocked("snapshot", "create")
    (listed,), (deleted,), (back,) = (clocked("snapshot", name) for name in ("list", "delete", "space_back"))
    assert back > deleted
    assert figures == pytest.approx(
        {
            ("operation_latency", "create"): fmean(created), ("operation_latency_max", "create"): max(created),
            ("operation_latency", "list"): listed, ("operation_latency", "delete"): deleted / 3,
            ("operation_latency", "space back"): back, ("elapsed", ""): sum(created) + listed + back,
        }
    )  # fmt: skip


def test_overwrites_are_timed_by_dd_and_clones_by_the_clock() -> None:
    figures, own = parse("reflink", texts("reflink")), texts("reflink")
    (cloned,), (deleted,) = clocked("reflink", "clone"), clocked("reflink", "delete")
    passes = {label: copied_s(own[label]) for label in ("first", "second")}
    assert {len(times) for times in passes.values()} == {20}
    expected = {
        ("operation_latency", "clone"): cloned / 4, ("operation_latency", "delete"): deleted / 4,
        ("bytes", "write"): 2.0 * 20 * 4096, ("elapsed", ""): cloned + deleted + sum(map(sum, passes.values())),
    }  # fmt: skip
    for name, times in passes.items():
        expected |= {
            ("operation_latency", f"{name} overwrite"): fmean(times),
            ("operation_latency_max", f"{name} overwrite"): max(times),
            ("write_bandwidth", f"{name} overwrite"): 20 * 4096 / sum(times),
        }
    assert figures == pytest.approx(expected)


def test_a_sequential_overwrite_is_one_run_of_dd() -> None:
    figures, own = parse("stream", texts("stream")), texts("stream")
    for name in ("first", "second"):
        (seconds,) = copied_s(own[name])
        assert figures["write_bandwidth", f"{name} overwrite"] == pytest.approx(20 * 4096 / seconds)
        assert ("operation_latency", f"{name} overwrite") not in figures


@every_row("name", ["send", "null", "rsync"])
def test_a_copy_has_its_time_and_what_it_had_to_copy(name: str) -> None:
    figures = parse(name, texts(name))
    (full,), (incremental,) = clocked(name, "full"), clocked(name, "incremental")
    sides = {("bytes", side): 16.0 * MIB + CHANGED for side in (("read",) if name == "null" else ("read", "write"))}
    assert figures == pytest.approx(
        {
            ("operation_latency", "full"): full, ("bandwidth", "full"): 16 * MIB / full,
            ("operation_latency", "incremental"): incremental, ("bandwidth", "incremental"): CHANGED / incremental,
            ("elapsed", ""): full + incremental, **sides,
        }
    )  # fmt: skip


# --- other work is refused --------------------------------------------------------------------------------------------

SUM = r"[0-9a-f]{32}"
OTHER: list[tuple[str, str, str, str, str]] = [
    ("snapshot", "stdout", r"listed 3", "listed 2", "snapshots in the list"),
    ("snapshot", "stdout", r"left 0", "left 1", "snapshots after deletion"),
    ("snapshot", "stdout", r"looks .*\n", "", "looks"),
    ("snapshot", "stdout", rf"(kept 2 {SUM}) {SUM}", rf"\1 {'0' * 32}", "a file of snapshot 2"),
    ("snapshot", "stdout", rf"kept 3 ({SUM}) {SUM} {SUM}", r"kept 3 \1 \1 \1", "after snapshot 3"),
    ("snapshot", "stdout", r"kept 1 .*\n", "", "witnesses of snapshots"),
    ("snapshot", "stdout", r"content 256", "content 255", "files and bytes"),
    ("snapshot", "stdout", r"timed create .*\n", "", "timed create"),
    ("snapshot", "stdout", r"timed space_back .*\n", "", "timed space_back"),
    ("reflink", "stdout", r"\Aused \d+", "used 1000", "bytes that the clones take"),
    ("reflink", "stdout", r"size \d+ \d+", "size 16777216 16777217", "bytes of the file and of its clone"),
    ("reflink", "stdout", rf"sums ({SUM}) {SUM}", rf"sums \1 {'0' * 32}", "the file after its clone was overwritten"),
    ("reflink", "stdout", rf"sums ({SUM}) {SUM} {SUM}", r"sums \1 \1 \1", "the overwritten clone"),
    ("reflink", "stdout", rf"(sums .*) {SUM}", rf"\1 {'0' * 32}", "the last clone"),
    ("reflink", "first", r"\A.*\n.*\n.*\n", "", "runs of dd in the first overwrite"),
    ("reflink", "second", r"4096 bytes", "2048 bytes", "bytes of each run in the second overwrite"),
    ("stream", "second", r"81920 bytes", "40960 bytes", "bytes of each run in the second overwrite"),
    ("send", "stdout", rf"(copy_second 256 16777216) {SUM}", rf"\1 {'0' * 32}", "the copy of the second state"),
    ("send", "stdout", r"copy_first 256", "copy_first 255", "the copy of the first state"),
    ("send", "stdout", r"^first 256", "first 255", "files and bytes of the first state"),
    ("null", "stdout", r"stream_second \d+", f"stream_second {CHANGED - 1}", "bytes of the stream of the second state"),
    ("rsync", "rsync.second", r"transferred: 13", "transferred: 12", "files that rsync sent, incremental"),
]
"""A recording, its file, what is replaced in it, and where the error says that this is not what was asked."""


@every_row(("name", "file", "pattern", "new", "where"), OTHER)
def test_what_was_not_done_as_asked_gives_no_figures(name: str, file: str, pattern: str, new: str, where: str) -> None:
    files = texts(name)
    files[file], changes = re.subn(pattern, new, files[file], count=1, flags=re.MULTILINE)
    assert changes == 1
    with pytest.raises(TrialError) as caught:
        parse(name, files)
    assert where in caught.value.where
    assert caught.value.what == f"{ASKED[name]['tool']} did not do what was asked"
    assert caught.value.got != caught.value.allowed


def test_a_source_that_did_not_change_between_the_copies_is_refused() -> None:
    files = texts("send")
    first = re.search(rf"^first 256 16777216 ({SUM})", files["stdout"], re.MULTILINE)
    assert first
    files["stdout"] = re.sub(rf"(second 256 16777216) {SUM}", rf"\1 {first[1]}", files["stdout"])
    with pytest.raises(TrialError, match="states of the source that differ"):
        parse("send", files)


@given(st.data())
def test_cut_off_output_gives_no_figures(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(FILES)))
    files = texts(name)
    lines = files["stdout"].splitlines(keepends=True)
    files["stdout"] = "".join(lines[: data.draw(st.integers(0, len(lines) - 1))])
    with pytest.raises(TrialError):
        parse(name, files)


# --- where it cannot run ----------------------------------------------------------------------------------------------

IMAGE = {"image": "512MiB"}


@every_row(
    ("name", "filesystem", "words"),
    [
        ("snapshot", {"type": "ext4", **IMAGE}, "ext4 has no snapshots that this tool can take; measure btrfs"),
        ("snapshot", {"type": "tmpfs", "size": "1GiB"}, "tmpfs has no snapshots that this tool can take"),
        ("snapshot", {"type": "btrfs", **IMAGE}, ""),
        ("snapshot", {"type": "zfs", **IMAGE}, ""),
        ("snapshot", {"type": "dir"}, ""),
        ("reflink", {"type": "ext4", **IMAGE}, "files of ext4 cannot share blocks; measure btrfs, or xfs made with"),
        ("reflink", {"type": "xfs", **IMAGE}, ""),
        ("reflink", {"type": "xfs", "mkfs": ["-m", "crc=1,reflink=0"], **IMAGE}, "mkfs was given reflink=0"),
        ("reflink", {"type": "btrfs", **IMAGE}, ""),
        ("reflink", {"type": "dir"}, ""),
        ("send", {"type": "xfs", **IMAGE}, "xfs cannot send; write via: rsync, or measure btrfs or zfs"),
        ("send", {"type": "btrfs", **IMAGE}, ""),
        ("send", {"type": "zfs", **IMAGE}, ""),
        ("rsync", {"type": "xfs", **IMAGE}, ""),
    ],
)
def test_a_file_system_without_it_is_skipped_with_the_reason_and_what_to_do(
    name: str, filesystem: dict[str, Any], words: str
) -> None:
    """Of a directory only the box knows what lies below it."""
    sweep = resolved(ASKED[name], filesystem)
    found = refusal(sweep.filesystems[0], sweep.workloads[0])
    assert (words in found) if found else not words


@every_row(
    ("name", "fstype", "program"),
    [
        ("send", "btrfs", "btrfs"),
        ("send", "zfs", "zfs"),
        ("send", "dir", "btrfs"),
        ("rsync", "zfs", "rsync"),
        ("snapshot", "btrfs", "btrfs"),
        ("snapshot", "zfs", "zfs"),
        ("snapshot", "dir", "btrfs"),
    ],
)
def test_a_file_system_sends_and_takes_snapshots_by_its_own_program(name: str, fstype: str, program: str) -> None:
    own, tool = workload(name), TOOLS[ASKED[name]["tool"]]
    command = tool.command(own, "/mnt/t", "/out/t", Target(fstype=fstype))
    assert {command.argv[2], command.prepare[0][2]} == {program}
    assert [needed.name for needed in tool.programs_on(fstype, own)] == [program]


@every_row(
    ("name", "changes", "key"),
    [
        ("snapshot", {"size": "100KiB"}, "size"),
        ("snapshot", {"snapshots": 0}, "snapshots"),
        ("snapshot", {"limit": "0s"}, "limit"),
        ("snapshot", {"cache": "warm"}, "cache"),
        ("snapshot", {"change": "101%"}, "change"),
        ("snapshot", {"change": "a lot"}, "change"),
        ("reflink", {"blocks": 4097}, "size"),
        ("reflink", {"clones": 0}, "clones"),
        ("reflink", {"blocks": 0}, "blocks"),
        ("rsync", {"to": "null"}, "to"),
        ("send", {"via": None}, "via"),
    ],
)
def test_what_no_trial_can_do_is_an_error_of_its_key(name: str, changes: dict[str, Any], key: str) -> None:
    entry = {name: value for name, value in {**ASKED[name], **changes}.items() if value is not None}
    with pytest.raises(ParameterError) as caught:
        resolved(entry, {"type": "dir"})
    assert caught.value.where.endswith(f"workloads.w.{key}")


def test_rsync_is_needed_where_it_copies_only() -> None:
    send = TOOLS["send"]
    assert [program.name for program in send.programs_for(workload("send"))] == ["btrfs"]
    assert [program.name for program in send.programs_for(workload("rsync"))] == ["rsync"]


@every_row("name", list(ASKED))
def test_the_seed_of_the_block_makes_the_data(name: str) -> None:
    command = TOOLS[ASKED[name]["tool"]].command(workload(name), "/m/t1", "/o/t1", Target(seed=77))
    assert command.prepare[0][-1] == "77"
    assert command.seed == 77


# --- the files --------------------------------------------------------------------------------------------------------

SHELLS = ["dash", "bash", "busybox"]


def run(directory: Path, script: str, shell: str = "dash") -> str:
    """What functions of contents.sh print in a directory."""
    argv = [program(shell), *(["ash"] if shell == "busybox" else []), "-c"]
    text = f"directory={directory}\n{script_text('contents.sh')}\n{script}"
    done = subprocess.run([*argv, text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def pool(x: int) -> bytes:
    """The upper bytes of the generator, by its definition."""
    made = bytearray()
    for _ in range(256 * 1024):
        x = (x * 69069 + 12345) % 2**32
        made.append(x >> 24)
    return bytes(made)


@pytest.mark.slow
@every_row("shell", SHELLS)
def test_each_shell_makes_the_same_bytes_from_a_seed(shell: str, tmp_path: Path) -> None:
    run(tmp_path, "make_pool 4294967295", shell)
    assert (tmp_path / "pool").read_bytes() == pool(4294967295)


@pytest.mark.slow
def test_no_block_is_compressed_and_no_two_are_alike(tmp_path: Path) -> None:
    run(tmp_path, f'make_pool 7; stretch {8 * MIB} 1 > "$directory/x"; stretch 4096 1009 > "$directory/y"')
    data = (tmp_path / "x").read_bytes()
    largest = [data[at : at + 128 * 1024] for at in range(0, len(data), 128 * 1024)]
    assert all(len(zlib.compress(block, 9)) >= len(block) for block in largest)
    blocks = [data[at : at + 4096] for at in range(0, len(data), 4096)]
    assert len({*blocks, (tmp_path / "y").read_bytes()}) == 8 * MIB // 4096 + 1


@pytest.mark.slow
@every_row("split", [True, False], ids=["split", "without split"])
def test_files_are_laid_out_and_each_round_changes_others(split: bool, tmp_path: Path) -> None:
    """Whole files of the size that was asked, in turn until all were changed."""
    tmp_path /= str(split)
    (tree := tmp_path / "tree").mkdir(parents=True)
    without = "" if split else 'command() { [ "$2" != split ]; }\n'
    run(tmp_path, f'{without}make_pool 7; lay_out "$directory/tree" 1048576 65536')
    states = [{file.name: file.read_bytes() for file in tree.iterdir()}]
    assert len(states[0]) == 16
    assert (
        b"".join(states[0][name] for name in sorted(states[0]))
        == (b"".join(pool(7)[4099 * number % 131072 :] for number in range(1, 20))[:MIB])
    )
    for number in range(1, 5):
        run(tmp_path, f'change "$directory/tree" {number} 4 65536')
        states.append({file.name: file.read_bytes() for file in tree.iterdir()})
        assert {len(data) for data in states[-1].values()} == {65536}
    rounds = [{name for name in after if after[name] != before[name]} for before, after in pairwise(states)]
    assert [len(names) for names in rounds] == [4, 4, 4, 4]
    assert len(set.union(*rounds)) == 16


def test_what_is_expected_grows_with_the_work() -> None:
    for name, more in {"snapshot": {"snapshots": 30}, "reflink": {"blocks": 900}, "send": {"size": "1GiB"}}.items():
        tool = TOOLS[ASKED[name]["tool"]]
        assert tool.expected_s(workload(name, **more)) > tool.expected_s(workload(name)) > 0
        assert tool.space_bytes(workload(name, **more)) > tool.space_bytes(workload(name)) > 16 * MIB
    assert math.isclose(TOOLS["reflink"].source_bytes(workload("reflink")), 21 * 4096)
