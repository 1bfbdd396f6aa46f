"""Figures are looked for in bounded time."""

from __future__ import annotations

import signal
import threading

import pytest
from mountlab.core.errors import ParseError
from mountlab.core.model import Workload
from mountlab.programs import parsing
from mountlab.tools.base import ToolOutput
from sweeps import sweep
from waiting import no_hang


def of(pattern: str) -> Workload:
    metric = {"bandwidth": {"pattern": pattern, "unit": "MB/s"}}
    command = {"tool": "command", "argv": "x {directory}", "space": "1B", "metrics": metric}
    return sweep(workloads={"c": command}).sweep.workloads[0]


def printed(text: str) -> ToolOutput:
    return ToolOutput(exit_status=0, stdout=text, stderr="", files={})


@pytest.mark.parametrize("pattern", ["(a+)+$", "(?:a|a)*(b)$", "(?:(?:a*)*)*(\\d)$"])
@pytest.mark.slow
def test_a_pattern_that_never_ends_is_ended(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "LONGEST_S", 0.2)
    with no_hang(), pytest.raises(ParseError, match="takes too long") as caught:
        parsing.parsed(of(pattern), printed("a" * 60 + "!"))
    assert "(a+)+" in caught.value.next_step


def test_nothing_of_the_limit_stays() -> None:
    before = signal.getsignal(signal.SIGVTALRM)
    assert parsing.parsed(of("([0-9.]+) MB/s"), printed("12.5 MB/s"))[0].value == 12.5e6
    assert signal.getsignal(signal.SIGVTALRM) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_in_another_thread_figures_are_found_too() -> None:
    found: list[float] = []
    thread = threading.Thread(
        target=lambda: found.extend(each.value for each in parsing.parsed(of("([0-9.]+) MB/s"), printed("3 MB/s")))
    )
    thread.start()
    thread.join()
    assert found == [3e6]
