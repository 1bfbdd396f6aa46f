"""Wrong calls as people type them: which words they get."""

from __future__ import annotations

from pathlib import Path

import pytest
from mountlab import __main__


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a call that is refused as bad input says."""
    assert __main__.main(list(words)) == 2
    return capsys.readouterr().err


# --- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "verb", [("report",), ("reparse",), ("reparse", "--accept-altered"), ("resume",), ("export",), ("publish",)], ids=" ".join
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
