"""Who gives out the items of a batch: whatever workers, schedulers and boxes do, each item has one outcome."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from mountlab.batch import cluster, commands, many
from mountlab.batch.batch_file import ItemOutcome, parse_batch
from mountlab.batch.cluster import Broken, Taken, Unfit, WorkerStatus
from mountlab.batch.plan import Places, places
from mountlab.batch.store import BatchDirectory, read_view
from mountlab.batch.view import Planned
from mountlab.batch.work import Session, located, session_of, unfit
from mountlab.core.errors import InputError, KeepError, MissingExtra, SchedulerError, StoreError
from mountlab.core.places import SHIPPED
from mountlab.results import paths

NOW = "2026-11-20T10:00:00+00:00"
ADDRESS = "tcp://127.0.0.1:1"
Answer = Any


@dataclass
class Fake:
    """A cluster that answers each order at once, in the order in which they were given, as it is told to."""

    answers: Callable[[str, str], Answer]
    """From the key of an order and its machine; raises what goes wrong with the cluster itself."""
    here: bool = True
    workers: dict[str, Any] = field(default_factory=lambda: {"w1": {}})
    statuses: dict[str, WorkerStatus] = field(default_factory=dict)
    left: dict[str, float] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)
    stopped: bool = False
    _waiting: list[tuple[str, str]] = field(default_factory=list)

    def look_around(self) -> dict[str, WorkerStatus]:
        return self.statuses

    def gone(self) -> dict[str, float]:
        return self.left

    def fit(self, machines: Sequence[str]) -> tuple[str, ...] | None:
        return () if self.here or "this machine" not in machines else None

    def give(self, key: str, work: Any, *, machines: tuple[str, ...], only: tuple[str, ...] = ()) -> None:
        self.given.append(key)
        self._waiting.append((key, " ".join(machines)))

    def ended(self, wait_s: float) -> Iterator[tuple[str, Answer]]:
        for key, machine in self._waiting[:1]:
            answer = self.answers(key, machine)
            self._waiting.remove((key, machine))
            yield key, answer

    def stop(self) -> None:
        self.stopped = True


def answering(**found: Sequence[Answer]) -> Callable[[str, str], Answer]:
    """What each item ends with, one after another, by the number of the item: `i01=[...]`. Otherwise it is done."""
    left = {f"{name[1:]}-": list(answers) for name, answers in found.items()}

    def answer(key: str, _machine: str) -> Answer:
        kind, _, name = key.partition("-")
        if kind == "plan":
            return []
        waiting = next((answers for start, answers in left.items() if name.startswith(start)), [])
        return outcome(name, waiting.pop(0) if waiting else {})

    return answer


def outcome(name: str, found: Answer) -> Answer:
    """`found`: changes of an outcome that is done, or another answer, or what is to be raised."""
    if isinstance(found, BaseException):
        raise found
    if not isinstance(found, dict):
        return found
    made = ItemOutcome(item=name.rpartition("-")[0], state="done", ended_at=NOW, elapsed_s=1.0)
    if "error" in found:
        made = replace(made, state="failed", reason="because")
    return replace(made, **found)


@pytest.fixture
def boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two boxes with a label, one without, and `local`."""
    directory = tmp_path / "params" / "boxes"
    directory.mkdir(parents=True)
    for name, label in (("r1", "rack"), ("r2", "rack"), ("other", None)):
        (directory / f"{name}.yml").write_text(yaml.safe_dump({"host": name, **({"label": label} if label else {})}))
    (directory / "local.yml").write_text("embedded: loopback\n")
    for name in ("sweeps", "published"):
        (tmp_path / "params" / name).symlink_to(paths.PARAMS / name)
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    monkeypatch.setattr(many, "FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(many, "TICK_S", 0.01)
    return directory


@pytest.fixture
def run(boxes: Path, results_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a batch on fake clusters, and gives its view."""

    def write_page(directory: BatchDirectory) -> Any:
        return directory.path / "report.html", read_view(directory.path)

    monkeypatch.setattr(commands, "write_page", write_page)

    def run(box: Any, *clusters: Any, **more: Any) -> Any:
        left = list(clusters)

        @contextmanager
        def opened(*_: Any, **__: Any) -> Iterator[Any]:
            found = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(found, BaseException):
                raise found
            yield found

        monkeypatch.setattr(cluster, "opened", opened)
        group = {"sweep": "tour", "box": box, **more.pop("group", {})}
        made = parse_batch({"title": "T", "groups": {"g": group}}, name="b", where="b.yml")
        return commands.run_batch(made, results=results_dir, **more)[1]

    return run


def states(view: Any) -> dict[str, str]:
    return {name: each.state for name, each in view.outcomes.items()}


def test_each_item_is_given_out_once_after_its_box_was_planned_for(run: Callable[..., Any]) -> None:
    fake = Fake(answering())
    view = run(["r1", "r2"], fake)
    assert states(view) == {"01-tour-r1": "done", "02-tour-r2": "done"}
    assert sorted(fake.given) == ["do-01-tour-r1-r1", "do-02-tour-r2-r2", "plan-01-tour-r1-r1", "plan-02-tour-r2-r2"]
    assert not fake.stopped


def test_what_a_box_cannot_do_by_its_plan_is_not_begun(run: Callable[..., Any]) -> None:
    def answers(key: str, machine: str) -> Answer:
        if key != "plan-01-tour-r1-r1":
            return answering()(key, machine)
        (item,) = parse_batch({"title": "T", "groups": {"g": {"sweep": "tour", "box": "r1"}}}, name="b", where="").items
        return [Planned(item, problem="the box lacks fio", error="PlanError")]

    fake = Fake(answers)
    view = run(["r1", "r2"], fake)
    assert states(view) == {"01-tour-r1": "failed", "02-tour-r2": "done"}
    assert view.outcomes["01-tour-r1"].reason == "the box lacks fio"
    assert "do-01-tour-r1-r1" not in fake.given


def test_a_worker_that_did_not_answer_is_not_called_gone(run: Callable[..., Any], capsys: Any) -> None:
    """Defect: of a worker that was busy it was said that it is gone."""
    run(["r1", "r2"], Fake(answering(), left={"tcp://busy": 300.0, "tcp://dead": 0.0}))
    said = capsys.readouterr().err
    silent = "worker tcp://busy did not answer the scheduler for 300 s, and was given up: it may only be busy"
    assert f"{silent}; what it was doing goes on at another" in said
    assert "worker tcp://dead is gone; what it was doing goes on at another" in said


def test_a_machine_that_another_task_has_is_waited_for(run: Callable[..., Any], capsys: Any) -> None:
    fake = Fake(answering(i01=[Taken(), Taken()]))
    assert states(run(["r1", "r2"], fake)) == {"01-tour-r1": "done", "02-tour-r2": "done"}
    assert fake.given.count("do-01-tour-r1-r1") == 3
    assert capsys.readouterr().err.count("r1: 01-tour-r1 waits: another task of this scheduler has the machine") == 1


@pytest.mark.slow
@pytest.mark.parametrize("error", ["RunInUse", "BoxInUse"])
def test_who_is_in_the_way_is_waited_for_until_the_box_would_have_given_all_back(
    error: str, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Fake(answering(i01=[{"error": error}, {"error": error}]))
    assert states(run(["r1", "r2"], fake))["01-tour-r1"] == "done"
    monkeypatch.setattr(many, "MARGIN_S", -600.0)  # the grace time of these boxes
    fake = Fake(answering(i01=[{"error": error}]))
    assert states(run(["r1", "r2"], fake, new=True))["01-tour-r1"] == "failed"


def test_a_worker_that_dies_each_time_fails_its_item_and_no_other(run: Callable[..., Any]) -> None:
    view = run(["r1", "r2"], Fake(answering(i01=[Broken("KilledWorker", "it died four times")])))
    assert states(view) == {"01-tour-r1": "failed", "02-tour-r2": "done"}
    assert view.outcomes["01-tour-r1"].reason == "it died four times"


def test_any_box_of_a_label_will_do_and_a_lost_one_is_left(run: Callable[..., Any], capsys: Any) -> None:
    view = run("label:rack", Fake(answering(i01=[{"error": "BoxLost", "run": "", "box": "r1"}, {"box": "r2"}])))
    (found,) = view.outcomes.values()
    assert (found.state, found.box) == ("done", "r2")
    assert "01-tour-label_rack: not on r1, so on another of rack: because" in capsys.readouterr().err


def test_what_no_box_of_a_label_can_do_is_a_failure_unless_it_is_optional(
    run: Callable[..., Any], results_dir: Path
) -> None:
    never = [{"error": "PlanError"}] * 2
    assert list(states(run("label:rack", Fake(answering(i01=never)))).values()) == ["failed"]
    view = run("label:rack", Fake(answering(i01=never)), group={"optional": True})
    assert list(states(view).values()) == ["left out"]
    (results_dir / "r").mkdir()
    trials_failed = Fake(answering(i01=[{"error": "CommandError", "notebook": "n", "run": "r", "box": "r1"}]))
    view = run("label:rack", trials_failed, group={"optional": True}, new=True)
    assert list(states(view).values()) == ["failed"]
    assert len(trials_failed.given) == 1, "another box is no remedy"
    done = run("label:rack", Fake(answering()), group={"optional": True}, new=True)
    assert list(states(done).values()) == ["done"]


def test_ctrl_c_stops_all_and_gives_out_nothing_more(run: Callable[..., Any], results_dir: Path) -> None:
    def answers(key: str, machine: str) -> Answer:
        if key.startswith("do-01"):
            os.kill(os.getpid(), signal.SIGINT)
        return answering(i01=[{"state": "stopped"}], i02=[{"state": "stopped"}])(key, machine)

    fake = Fake(answers)
    with pytest.raises(KeyboardInterrupt) as raised:
        run(["r1", "r2"], fake, group={"overrides": [{"repeats": 2}, {"repeats": 3}]})
    assert fake.stopped
    (path,) = results_dir.glob("batch-b-*")
    assert raised.value.args[0] == f"go on with: mountlab batch --resume {path}"
    assert raised.value.args[1].startswith("report so far: ")
    begun = {key.removeprefix("do-")[:2] for key in fake.given if key.startswith("do-")}
    assert len(begun) == 2, "one on each box"
    assert set(BatchDirectory(path).outcomes) <= {item.id for item in BatchDirectory(path).batch.items}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "Ctrl-C is what it was before"


def test_a_full_disk_stops_all(run: Callable[..., Any]) -> None:
    fake = Fake(answering(i01=[{"error": "KeepError"}]))
    with pytest.raises(KeepError) as raised:
        run(["r1", "r2"], fake)
    assert fake.stopped
    assert raised.value.next_step.startswith("make room; then: mountlab batch --resume ")


@pytest.mark.parametrize("more", [{}, {"scheduler": ADDRESS}])
def test_several_boxes_or_a_scheduler_need_the_extra_fleet(
    more: dict[str, str], run: Callable[..., Any], results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(MissingExtra) as raised:
        run(["local"] if more else ["r1", "r2"], Fake(answering()), **more)
    text = "work on several boxes at the same time needs a library that is not installed\n  got:     no dask\n"
    assert str(raised.value) == f"{text}  next:    pip install 'mountlab[fleet]'"
    assert BatchDirectory(next(results_dir.glob("batch-*"))).outcomes == {}


# --- a scheduler by address -------------------------------------------------------------------------------------------


def test_a_scheduler_that_goes_and_comes_back_has_all_given_out_again(run: Callable[..., Any], capsys: Any) -> None:
    gone = SchedulerError("the scheduler is gone", where=ADDRESS)
    first = Fake(answering(i01=[gone]), here=False)
    second = Fake(answering(), here=False)
    view = run(["r1", "r2"], first, second, scheduler=ADDRESS)
    assert set(states(view).values()) == {"done"}
    said = capsys.readouterr().err
    assert "the scheduler is gone; trying again for 60 s" in said
    assert "the scheduler is back after" in said


def test_a_scheduler_that_stays_away_ends_the_batch_which_can_be_gone_on_with(
    run: Callable[..., Any], results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "REGAIN_S", 0.02)
    gone = SchedulerError("the scheduler is gone", where=ADDRESS)
    with pytest.raises(SchedulerError) as raised:
        run(["r1", "r2"], Fake(answering(i01=[gone]), here=False), gone, scheduler=ADDRESS)
    (path,) = results_dir.glob("batch-b-*")
    assert f"mountlab batch --resume {path} --scheduler {ADDRESS}" in raised.value.next_step
    assert set(states(run(["r1", "r2"], Fake(answering()))).values()) == {"done"}
    with pytest.raises(SchedulerError, match="cannot be reached") as raised:
        run("r1", SchedulerError("the scheduler cannot be reached"), scheduler=ADDRESS)
    assert "when it is back" not in raised.value.next_step, "at first it is an error at once"


def test_workers_that_see_other_files_are_left_out_and_said(run: Callable[..., Any], capsys: Any) -> None:
    some = Fake(
        answering(), here=False, workers={"w1": {}, "w2": {}}, statuses={"w1": WorkerStatus("h", "it is too old")}
    )
    assert states(run("r1", some, scheduler=ADDRESS)) == {"01-tour-r1": "done"}
    assert "worker w1 is left out: it is too old" in capsys.readouterr().err
    late = Fake(answering(i01=[Unfit("w1", "it does not see the batch")]), here=False)
    assert states(run("r1", late, scheduler=ADDRESS, new=True)) == {"01-tour-r1": "done"}, "its item goes to another"
    none = Fake(answering(), here=False, statuses={"w1": WorkerStatus("h", "it is too old")})
    with pytest.raises(SchedulerError) as raised:
        run("r1", none, scheduler=ADDRESS, new=True)
    assert "no worker of the scheduler can work on this batch" in str(raised.value)
    assert "it is too old" in str(raised.value)
    assert none.given == []


def test_this_machine_as_a_box_needs_a_worker_on_it(run: Callable[..., Any]) -> None:
    view = run("local", Fake(answering(), here=False), scheduler=ADDRESS)
    (found,) = view.outcomes.values()
    assert found.state == "failed"
    assert "no worker of the scheduler is on this machine" in found.reason
    assert "dask worker ADDRESS" in found.reason


# --- what has to be the same ------------------------------------------------------------------------------------------


@pytest.fixture
def session(boxes: Path, results_dir: Path) -> Session:
    made = parse_batch({"title": "T", "groups": {"g": {"sweep": "tour", "box": "r1"}}}, name="b", where="b.yml")
    with commands.held_batch(made, results=results_dir) as directory:
        directory.begin()
        return session_of(directory, map(located, made.items), ["r1"])


def test_who_sees_something_else_says_what(session: Session, boxes: Path) -> None:
    assert unfit(session) == ""
    assert "it has Mountlab" in unfit(replace(session, version="0.0.1"))
    assert "it does not see" in unfit(replace(session, batch=session.batch / "absent"))
    assert "another session wrote to it" in unfit(replace(session, token="t"))
    (boxes / "r1.yml").write_text("host: elsewhere\n")
    assert unfit(session) == "its params/boxes/r1.yml is absent or not the same"
    (boxes / "r1.yml").unlink()
    assert unfit(session) == "its params/boxes/r1.yml is absent or not the same"
    BatchDirectory(session.batch).begin()
    assert "another session wrote to it" in unfit(session), "so a copy of the results is not the results"


def test_paths_do_not_depend_on_the_directory_that_a_worker_is_in(tmp_path: Path, monkeypatch: Any) -> None:
    sweep = tmp_path / "x.yml"
    sweep.write_text((SHIPPED / "params" / "sweeps" / "tour.yml").read_text())
    monkeypatch.chdir(tmp_path)
    groups = {"g": {"sweep": ["x.yml", "tour", "params/sweeps/ramdisk.yml"]}}
    made = parse_batch({"title": "T", "groups": groups}, name="b", where="b.yml")
    assert [located(item).sweep for item in made.items] == [str(sweep), "tour", "params/sweeps/ramdisk.yml"]


# --- which way a batch takes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "one_by_one"),
    [
        ({"g": {"sweep": "tour", "box": "r1"}}, True),
        ({"g": {"sweep": ["tour", "ramdisk"], "box": ["local", "vm"]}}, True),
        ({"g": {"notebook": "40_plan_repeats"}}, True), ({"g": {"sweep": "tour", "box": ["r1", "r2"]}}, False),
        ({"g": {"sweep": "tour", "box": ["r1", "local"]}}, False),
        ({"g": {"sweep": "tour", "box": "label:rack"}}, False),
    ],
)  # fmt: skip
def test_what_could_not_be_done_at_the_same_time_is_done_as_ever(
    groups: dict[str, Any], one_by_one: bool, boxes: Path, results_dir: Path
) -> None:
    (boxes / "vm.yml").write_text("embedded: vm\n")
    made = parse_batch({"title": "T", "groups": groups}, name="b", where="b.yml")
    spots = places(made.items, directory=None, results=results_dir)
    assert spots.one_by_one is one_by_one


def test_a_sweep_with_clients_shares_no_moment_with_a_sweep_on_one_of_them() -> None:
    spots = Places(boxes={"1": ["a"], "2": ["b"]}, pinned={}, machines={"a": "a", "b": "b"}, clients={"2": ["a"]})
    assert spots.one_by_one
    assert not replace(spots, clients={}).one_by_one


def test_a_label_that_no_box_has_and_no_box_at_a_time_are_refused_before_anything_runs(
    run: Callable[..., Any], results_dir: Path
) -> None:
    with pytest.raises(StoreError) as raised:
        run("label:ssd", Fake(answering()))
    assert raised.value.what == "no box has this label"
    assert raised.value.allowed == "rack"
    assert list(results_dir.iterdir()) == []
    with pytest.raises(InputError, match="at least one box"):
        run("r1", Fake(answering()), at_once=0)
