"""Whether a box is fit to measure on, in words."""

from __future__ import annotations

from mountlab.box.readiness import CheckRow
from mountlab.filesystems.counters import Around
from mountlab.filesystems.evidence import DeviceBytes
from mountlab.report.views import fitness
from pages import Page
from rows import every_row

QUIET = Around(
    seconds=3.0, others=0.01, stolen=0.0, pressure={"cpu": 0.0, "io": 0.0}, traffic={"8:0": DeviceBytes(0, 4096)}
)
STEADY = [0.100, 0.101, 0.099, 0.100]
ROWS = [
    CheckRow("kernel", "ok", "Linux"),
    CheckRow("fio", "missing", "not found", "apt-get install fio"),
    CheckRow("rights", "limited", "none", "echo <b>"),
]


def test_a_quiet_and_complete_box_is_fit() -> None:
    assert fitness.verdict(ROWS[:1], QUIET, STEADY) == [
        "Everything that Mountlab knows can be measured here.",
        "The box is idle and steady: what two file systems differ in will show after few blocks.",
    ]


@every_row(
    ("around", "seconds", "told"),
    [
        (Around(others=0.5), STEADY, "other programs run"),
        (Around(stolen=0.05), STEADY, "a hypervisor takes time"),
        (Around(pressure={"io": 0.4}), STEADY, "tasks wait for the disk"),
        (QUIET, [0.1, 0.2, 0.1, 0.2], "equal work takes unequal time"),
    ],
)
def test_what_disturbs_is_named(around: Around, seconds: list[float], told: str) -> None:
    assert f"The box is not quiet ({told})" in fitness.verdict(ROWS[:1], around, seconds)[1]


def test_what_is_missing_comes_before_what_is_limited() -> None:
    assert fitness.verdict(ROWS, QUIET, STEADY)[0] == "Not everything can be measured here: fio is missing."
    assert fitness.verdict([ROWS[0], ROWS[2]], QUIET, STEADY)[0] == ("Most can be measured here; limited: rights.")
    page = Page(fitness.checks(ROWS)._repr_html_())
    assert page.words.index("missing") < page.words.index("limited") < page.words.index("kernel")
    assert "<b>" not in str(fitness.checks(ROWS)).replace("&lt;b&gt;", "")
    assert "fio" not in Page(fitness.checks(ROWS, names=["kernel"])._repr_html_()).words


def test_what_the_kernel_does_not_count_is_not_zero() -> None:
    told = fitness.idle_sentences(Around())
    assert sum("does not count" in each for each in told) == 4
    assert fitness.idle_sentences(QUIET)[-1] == "In 3.0 s the block devices moved 4.10\u00a0kB."


def test_equal_work() -> None:
    text = fitness.work_sentence(STEADY).replace("\u00a0", " ")
    assert text == "4 rounds of equal work took 100 ms each, with a standard deviation of 0.82 %: steady."


def test_a_share_of_the_time_is_no_more_than_all_of_it() -> None:
    """The kernel's two clocks differ a little: it counted 1.01 s of waiting in one second."""
    told = " ".join(fitness.idle_sentences(Around(pressure={"cpu": 1.01})))
    assert "waited for the processor in 100\u00a0% of the time: too much" in told


def test_a_checksum_as_a_version_leaves_room_for_what_mends_it() -> None:
    digits = "0123456789abcdef" * 4
    text = fitness.checks([CheckRow("fs_mark", "ok", f"sha256 {digits}")])
    assert "sha256 0123456789ab…<" in text
