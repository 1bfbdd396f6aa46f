"""Wrong calls as people type them: which words they get."""

from __future__ import annotations

from pathlib import Path

import pytest
from mountlab import __main__
from mountlab.publish.bundle import DATA_LICENCES, check_licence


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
        ("foo", ""),
        ("cc-by", "CC-BY-4.0"),
        ("cc0", "CC0-1.0"),
        ("odbl", "ODbL-1.0"),
        ("Apache-2", "Apache-2.0"),
        ("MIT OR Apache-2.0", "Apache-2.0"),
        ("LicenseRef-mine", ""),
        ("MIT+", "MIT"),
    ],
)
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
