"""Wrong calls as people type them: which words they get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from facts import known
from mountlab import __main__
from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem
from mountlab.core.numbers import rough_duration
from mountlab.core.safe_yaml import parse_yaml
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.documented import undocumented
from mountlab.publish.bundle import DATA_LICENCES, check_licence
from mountlab.results.paths import PARAMS, load_sweep
from mountlab.sweep.filesystem_entry import NOT_MADE
from mountlab.sweep.sweep_file import resolve
from rows import every_row


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a call that is refused as bad input says."""
    assert __main__.main(list(words)) == 2
    return capsys.readouterr().err


# --- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "verb",
    [("report",), ("reparse",), ("reparse", "--accept-altered"), ("resume",), ("export",), ("publish",)],
    ids=" ".join,
)
@pytest.mark.parametrize("what", ["nothing", "a directory", "a file", "a directory with a link"])
def test_what_is_no_run_is_called_so(
    verb: tuple[str, ...], what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Trap: `report` locked the directory first, and spoke of a disk that is not mounted."""
    place = tmp_path / "typo"
    if what == "a file":
        place.write_text("")
    elif what != "nothing":
        place.mkdir()
    if what == "a directory with a link":
        (place / "elsewhere").symlink_to("/etc")
    before = sorted(tmp_path.rglob("*"))
    said = refused(capsys, *verb, str(place))
    assert said.startswith("error: no such run\n")
    assert f"where:   {place}/run.json" in said
    assert "name a directory below results/" in said
    assert sorted(tmp_path.rglob("*")) == before


# --- licences ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("licence", "near"),
    [
        ("foo", ""), ("cc-by", "CC-BY-4.0"), ("cc0", "CC0-1.0"), ("odbl", "ODbL-1.0"), ("Apache-2", "Apache-2.0"),
        ("MIT OR Apache-2.0", "Apache-2.0"), ("LicenseRef-mine", ""), ("MIT+", "MIT"),
    ],
)  # fmt: skip
def test_a_licence_that_spdx_does_not_list_is_refused(
    licence: str, near: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Trap: `--licence foo` made a bundle whose licence, and the address of its text, did not exist."""
    said = refused(capsys, "publish", str(tmp_path), "--to", str(tmp_path / "b"), "--licence", licence)
    assert said.startswith("error: not a licence that SPDX lists\n  where:   --licence\n")
    assert f"got:     {licence!r}" in said
    assert (f"did you mean '{near}'?" in said) if near else ("did you mean" not in said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "spelled"), [("cc-by-sa-4.0", "CC-BY-SA-4.0"), ("etalab-2.0", "etalab-2.0"), ("isc", "ISC")]
)
def test_a_licence_is_written_as_spdx_spells_it(given: str, spelled: str) -> None:
    assert check_licence(given) == spelled


def test_the_licences_that_are_suggested_are_ones_that_spdx_lists() -> None:
    assert [check_licence(each) for each in DATA_LICENCES] == list(DATA_LICENCES)


# --- verbs and values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rnu"], "mountlab: error: unknown verb 'rnu': did you mean 'run'? (mountlab --help lists all)\n"),
        (["box", "chek"], "unknown verb 'chek': did you mean 'check'? (mountlab box --help lists all)\n"),
        (["export", "r", "--format", "cvs"], "argument --format: unknown value 'cvs': did you mean 'csv'?"),
    ],
)
def test_a_mistyped_word_gets_the_nearest_and_no_list(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        __main__.main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_word_near_no_verb_gets_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        __main__.main(["xyzzy"])
    assert ", plan, run, " in capsys.readouterr().err


def test_a_margin_below_zero_is_a_value_and_not_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "gate", "a", "--against", "b", "--worse-than", "-5%")
    assert said.startswith("error: a share below zero\n  where:   --worse-than\n  got:     '-5%' (str)\n")
    assert "write it without the minus sign" in said


# --- sweep files ------------------------------------------------------------------------------------------------------

SWEEP: dict[str, Any] = {
    "name": "s",
    "question": "Why?",
    "filesystems": {"t": {"type": "tmpfs", "size": "64MiB"}},
    "workloads": {"w": {"tool": "fio", "rw": "read", "size": "8MiB"}},
}


def refusal(**changes: Any) -> ParameterError:
    with pytest.raises(ParameterError) as caught:
        resolve({**SWEEP, **changes}, where="s.yml")
    return caught.value


@every_row(
    ("design", "where", "what", "allowed"),
    [
        ({"repeats": -3}, "repeats", "wrong type or value", "1 or more, 10000 or less"),
        ({"repeats": "three"}, "repeats", "wrong type or value", "a whole number, 1 or more, 10000 or less"),
        ({"repeats": 2.5}, "repeats", "wrong type or value", "a whole number, 1 or more, 10000 or less"),
        ({"until": {"half_width": 5}}, "until.half_width", "a percentage is needed", "a share such as '3%' or 0.03"),
        ({"until": {"half_width": "-5%"}}, "until.half_width", "a share below zero", "a share such as '3%' or 0.03"),
        ({"strict": "maybe"}, "strict", "wrong type or value", "true or false"),
        ({"sample_every": True}, "sample_every", "a number with its unit is needed", "text such as '60s'"),
        ({"trial_timeout": 60}, "trial_timeout", "a number with its unit is needed", "text such as '60s'"),
        ({"estimate": 3}, "estimate", "wrong type or value", "'mean', 'median', 'geometric' or 'harmonic'"),
    ],
)
def test_a_value_of_the_design_is_refused_in_our_words(
    design: dict[str, Any], where: str, what: str, allowed: str
) -> None:
    error = refusal(design=design)
    assert (error.what, error.where) == (what, f"s.yml: design.{where}")
    assert error.allowed.startswith(allowed)
    assert "Input should" not in str(error)


@pytest.mark.parametrize(("key", "value"), [("filesystems", {"t": "tmpfs"}), ("design", 3), ("published", "x")])
def test_what_is_no_mapping_and_no_list_is_refused_in_our_words(key: str, value: object) -> None:
    error = refusal(**{key: value})
    assert error.allowed in ("a mapping of keys to values", "a list")


def test_the_nearest_choice_is_suggested() -> None:
    assert refusal(design={"fresh_filesystem": "blok"}).next_step == "did you mean 'block'?"


@every_row("size", [256, "256", "-64MiB", "64 mib"])
def test_the_size_of_a_file_system_and_of_a_workload_get_the_same_words(size: object) -> None:
    ours = refusal(filesystems={"t": {"type": "tmpfs", "size": size}})
    theirs = refusal(workloads={"w": {**SWEEP["workloads"]["w"], "size": size}})
    parts = [(each.what, each.got, each.allowed, each.next_step) for each in (ours, theirs)]
    assert parts[0] == parts[1]
    assert (ours.where, theirs.where) == ("s.yml: filesystems.t.size", "s.yml: workloads.w.size")
    assert (ours.what == "a number below zero") == (size == "-64MiB")


@every_row(
    ("design", "read"),
    [
        ({"level": "95%"}, 0.95), ({"level": "99.9 %"}, 0.999), ({"level": 0.95}, 0.95),
        ({"until": {"half_width": "5%", "confidence": 0.9}}, 0.9),
        ({"until": {"half_width": 0.05, "confidence": "90%"}, "level": "90%"}, 0.9),
    ],
)  # fmt: skip
def test_a_share_is_written_with_its_sign_or_below_one(design: dict[str, Any], read: float) -> None:
    found = resolve({**SWEEP, "design": design}, where="s.yml").sweep.design
    assert found.level == read
    assert found.until is None or found.until.half_width == 0.05


def test_the_smallest_effect_is_a_share_like_the_others() -> None:
    assert resolve({**SWEEP, "design": {"smallest_effect": "5%"}}, where="s.yml").sweep.design.smallest_effect == 0.05


@every_row("kind", ["UFS", "nilfs2", "bcachefs", "ntfs", "vfat", "cifs", "jfs"])
def test_a_file_system_that_is_not_made_is_not_taken_for_a_mistyped_one(kind: str) -> None:
    """Trap: `type: ufs` suggested xfs, and `ntfs` nfs."""
    error = refusal(filesystems={"t": {"type": kind}})
    assert (error.what, error.where) == (f"Mountlab does not support {kind}", "s.yml: filesystems.t.type")
    assert f"{{type: dir, path: /mnt/{kind.lower()}}}" in error.next_step
    assert "did you mean" not in str(error)
    path = f"/mnt/{kind.lower()}"
    assert resolve({**SWEEP, "filesystems": {"t": {"type": "dir", "path": path}}}, where="s.yml").sweep.filesystems


def test_no_file_system_that_is_made_is_said_not_to_be() -> None:
    assert not NOT_MADE & FAMILIES.keys()


def test_a_preset_of_a_file_without_presets() -> None:
    error = refusal(preset="small")
    assert (error.what, error.got) == ("the sweep file has no presets", "'small'")
    assert error.next_step == "leave it out, or write a preset 'small' below `presets` in the file"


@every_row(
    ("text", "place"),
    [
        ("question: x\nfilesystems:\n  t: {type: tmpfs\nworkloads: {}\n", "line 4, column 10"),
        ("question: 'x\n", "line 2, column 1"), ("a: b: c\n", "line 1, column 5"),
        ("a:\n\t- b\n", "line 2, column 1"),
    ],
)  # fmt: skip
def test_broken_yaml_is_named_by_file_line_and_column(text: str, place: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_yaml(text, where="s.yml")
    assert caught.value.where == f"s.yml, {place}"
    assert "<unicode string>" not in str(caught.value)


# --- what the plan says -----------------------------------------------------------------------------------------------


@every_row(
    ("option", "near"),
    [("data=writeback2", "data=writeback"), ("noatimee", "noatime"), ("commit=soon", ""), ("delaloc", "delalloc"),
     ("relat", "relatime")],
)  # fmt: skip
def test_an_ext4_option_that_no_kernel_documents_is_foreseen(option: str, near: str) -> None:
    fs = Filesystem(name="e", type="ext4", options=(option, "noatime"))
    (said,) = FAMILIES["ext4"].foreseen(fs, known(kernel="6.1.0")).items()
    assert said[0] == option
    assert said[1].startswith("warning: no kernel documents it")
    assert (f"did you mean '{near}'?" in said[1]) if near else ("did you mean" not in said[1])


@every_row(("option", "near"), [("noatme", "noatime"), ("relatme", "relatime"), ("lazytimes", "lazytime")])
def test_an_option_next_to_one_of_any_mount_is_foreseen(option: str, near: str) -> None:
    """Trap: on file systems without a list of their options nothing was said before the mount failed."""
    assert undocumented("xfs", [option]) == {option: f"warning: it is probably mistyped; did you mean '{near}'?"}


@every_row("option", ["noatime", "async", "noquota", "nodatacow", "noac", "nolock", "nobarrier", "inode32", "noswap"])
def test_an_option_of_its_own_is_not_called_mistyped(option: str) -> None:
    assert undocumented("xfs", [option]) == {}


@pytest.mark.slow
def test_no_option_of_the_published_sweeps_is_undocumented() -> None:
    for file in sorted((PARAMS / "sweeps").glob("*.yml")):
        for fs in load_sweep(file).sweep.filesystems:
            assert undocumented(fs.type, fs.options) == {}


@every_row(
    ("seconds", "text"),
    [(0.2, "1 s"), (8.0, "8 s"), (59.6, "60 s"), (112, "110 s"), (127, "2 min 10 s"), (2822, "47 min"),
     (11400, "3 h 10 min")],
)  # fmt: skip
def test_an_expected_duration_has_no_false_precision(seconds: float, text: str) -> None:
    assert rough_duration(seconds) == text
