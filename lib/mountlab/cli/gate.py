"""gate: judge a run against its baseline, for CI systems."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import FILE, METRIC, RUN, argument
from mountlab.cli.shared import (
    PERCENT,
    Arguments,
    json_text,
    refuse_runs_differ,
    run_of,
    runs_differ_option,
    say,
    verb,
)
from mountlab.core import disk


def add(verbs: Any) -> None:
    text = (
        "for CI systems: is a run worse than its baseline by more than a margin? exit code 0 no, 1 yes, 5 cannot tell"
    )
    gate = verb(verbs, "gate", _gate, text)
    argument(gate, RUN, "runs", metavar="RUN", nargs="+", help=f"{RUN.text}; of the change")
    argument(
        gate,
        RUN,
        "--against",
        metavar="RUN",
        nargs="+",
        required=True,
        help="of the baseline; with several runs on a side, what differs from run to run counts, too",
    )
    argument(
        gate,
        METRIC,
        "--metric",
        action="append",
        default=[],
        dest="metrics",
        metavar="METRIC",
        help="judge this one, as often as you like (default: those that the answer of the run is about)",
    )
    gate.add_argument(
        "--worse-than",
        default="5%",
        metavar="PERCENT",
        help=f"how much worse does not matter; {PERCENT}",
    )
    gate.add_argument(
        "--looks",
        choices=["any", "once"],
        default="any",
        help="any: the error holds however often this is asked again with more data (default); once: only if it is not",
    )
    runs_differ_option(gate)
    argument(gate, FILE, "--junit", metavar="FILE", help="write JUnit XML, which CI systems read")
    argument(gate, FILE, "--markdown", metavar="FILE", help="write a summary to stand beside the change")
    gate.add_argument("--json", action="store_true", help="as data")


def _gate(arguments: Arguments) -> int:
    from mountlab.analysis.gate import EXIT_CODES, judge
    from mountlab.cli import gate_text as gate_view
    from mountlab.core.metrics import METRICS
    from mountlab.core.units import parse_percent
    from mountlab.results import earlier, store
    from mountlab.sweep.validated import check_choices

    margin = parse_percent(arguments.worse_than, where="--worse-than", bare=True)
    change = [store.load_run(run_of(path)) for path in arguments.runs]
    baseline = [store.load_run(run_of(path)) for path in arguments.against]
    own_metrics = [name for run in baseline for name in run.sweep.own_metrics]
    check_choices(arguments.metrics, {**METRICS, **dict.fromkeys(own_metrics)}, "--metric", "metric")
    differ = None
    if len(change) == len(baseline) == 1:
        differ = earlier.runs_differ([*change, *baseline], arguments.runs_differ, say=say)
    else:
        refuse_runs_differ(arguments.runs_differ, "several runs of a side tell themselves by how much they differ")
    looks, metrics = arguments.looks, arguments.metrics
    judged = judge(change, baseline, margin=margin, metrics=metrics, looks=looks, runs_differ=differ)
    if arguments.junit:
        disk.replace_file(arguments.junit, gate_view.gate_junit(judged))
    if arguments.markdown:
        disk.replace_file(arguments.markdown, gate_view.gate_markdown(judged).encode())
    print(json_text(gate_view.gate_json(judged)) if arguments.json else gate_view.gate_text(judged))
    return EXIT_CODES[judged.outcome]
