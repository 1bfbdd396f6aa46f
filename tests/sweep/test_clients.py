"""Clients without a box: what is asked of fio, what is planned and refused, what their reports and outcomes mean."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from facts import known
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import ParameterError, ParseError, PlanError, ToolError, TransientError
from mountlab.core.model import Box, ClientEndpoint, Filesystem, Place, Target, Workload
from mountlab.core.units import NS_PER_S
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.nfs import Nfs
from mountlab.fio.report import decode, histograms_of
from mountlab.fio.tool import Fio
from mountlab.logs import fio_json
from mountlab.outcome.judging import Outcome
from mountlab.runner.clients import Clients, with_reports
from mountlab.stats.histograms import merge, percentile_ns
from mountlab.sweep.feasible import all_programs, needed_programs
from mountlab.sweep.plan import Plan
from mountlab.sweep.plan_text import plan_json, plan_text
from mountlab.sweep.planner import make_plan
from mountlab.sweep.traced import check_traceable
from mountlab.tools.base import ToolOutput
from rows import every_row
from sweeps import TMPFS, sweep

DATA = Path(__file__).parents[1] / "data" / "fio"
FIO = {"tool": "fio", "rw": "randread", "bs": "4KiB", "size": "4MiB", "numjobs": 2, "clients": ["client-a", "client-b"]}
SHARED = {"shared": {"type": "dir", "path": "/mnt/shared"}}
PROGRAMS = {program.name: {"version": f"{program.name}-1"} for program in all_programs()}
FACTS = known(
    rights="root",
    user="root",
    mount_root="/var/tmp/ml",
    output_root="/dev/shm/ml",
    programs=PROGRAMS,
    memory_available_bytes=2**33,
    mount_root_free_bytes=2**36,
    kernel_filesystems=None,
    room={"shared": 2**30},
)
BOX = Box(name="ask", host="ask")


def facts(**clients: dict[str, Any]) -> BoxFacts:
    """Those of the box, and of two clients like it but for what is given."""
    own = {name: known(FACTS, **clients.get(name[-1], {})).as_record() for name in ("client-a", "client-b")}
    return known(FACTS, clients=own)


def plan(found: BoxFacts | None = None, box: Box = BOX, run_id: str = "R", **more: Any) -> Plan:
    given = {"filesystems": SHARED, "workloads": {"w": FIO}, "design": {"repeats": 1}, **more}
    return make_plan(sweep(**given).sweep, box, found or facts(), run_id=run_id, owner="me", seed=1)


# --- the sweep file ---------------------------------------------------------------------------------------------------


@every_row("wrong", ["client-a", ["a", "a"], ["../a"], [1], ["a b"], [f"c{n}" for n in range(65)]])
def test_clients_are_names_of_boxes_each_once(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="clients are boxes, each named once") as error:
        sweep(filesystems=SHARED, workloads={"w": {**FIO, "clients": wrong}})
    assert error.value.where.endswith("w.clients")


def test_only_fio_is_driven_from_several_clients() -> None:
    with pytest.raises(ParameterError, match="dd cannot be driven from several clients") as error:
        sweep(
            filesystems=SHARED,
            workloads={"w": {"tool": "dd", "direction": "write", "bs": "1MiB", "count": 1, "clients": ["a"]}},
        )
    assert error.value.allowed == "fio"


@pytest.mark.parametrize("more", [{"log_avg_msec": "100ms"}, {"description": "$HOME"}])
def test_what_several_clients_cannot_have_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        sweep(filesystems=SHARED, workloads={"w": {**FIO, **more}})


def test_a_sweep_knows_all_its_clients_and_most_have_none() -> None:
    given = sweep(filesystems=SHARED, workloads={"w": FIO, "x": {**FIO, "clients": ["client-b", "c"]}}).sweep
    assert given.clients == ("client-a", "client-b", "c")
    assert sweep().sweep.clients == ()


# --- the plan ---------------------------------------------------------------------------------------------------------


def test_each_client_has_directories_a_lease_and_a_seat_of_its_own() -> None:
    made = plan()
    assert [client.lease.run_id for client in made.clients] == ["R-client-a", "R-client-b"]
    assert all(client.opening and client.opening.undo for client in made.clients)
    (trial,) = [trial for trial in made.trials if not trial.warmup]
    endpoint = trial.endpoints[1]
    assert endpoint.socket == f"/dev/shm/ml/R/{trial.trial_id}.c/client-b"
    assert endpoint.directory == endpoint.same_directory == f"/mnt/shared/mountlab-R-shared/{trial.trial_id}/client-b"


def test_the_box_itself_may_be_one_of_them_and_needs_nothing_more() -> None:
    made = plan(
        known(facts(), clients=dict.fromkeys(("client-a", "client-b"), FACTS.as_record())),
        box=replace(BOX, name="client-a"),
    )
    first, second = made.clients
    assert (first.opening, first.lease) == (None, made.lease)
    assert second.opening is not None


def test_the_plan_shows_what_each_client_is_asked() -> None:
    made = plan()
    text = plan_text(made, facts())
    assert "clients      client-a, client-b" in text
    assert "--client=sock:/dev/shm/ml/R/" in text
    assert plan_json(made, facts())["clients"] == ["client-a", "client-b"]


@pytest.mark.parametrize(
    ("client", "said"),
    [
        ({"programs": {**PROGRAMS, "fio": {"version": "fio-3.1"}}}, "must have the same fio"),
        ({"programs": {}}, "must have the same fio"),
        ({"rights": "helper"}, "does not serve clients"),
    ],
)
def test_a_client_that_cannot_do_its_part_is_refused(client: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanError, match=said) as error:
        plan(facts(b=client))
    assert "client-b" in error.value.where


def test_a_file_system_that_one_box_sees_is_not_driven_by_several() -> None:
    with pytest.raises(PlanError, match="no file system of the sweep can be driven from several") as error:
        plan(filesystems={"t": TMPFS})
    assert "clients share nfs, or a directory (type: dir) that all of them see" in str(error.value)
    both = plan(filesystems={"t": TMPFS, **SHARED})
    assert both.skipped == {"t/w": FAMILIES["tmpfs"].refuses_clients(both.sweep.filesystems[0])}


BESIDE = {"w": {"tool": "fio", "rw": "randread", "size": "4MiB", "beside": "n"}}
NEIGHBOUR = {"tool": "fio", "rw": "write", "size": "4MiB", "where": {"client": "client-b"}}


def test_a_client_runs_a_neighbour_in_a_directory_of_its_own_for_longer_than_the_whole_trial() -> None:
    found = known(FACTS, clients={"client-b": known(FACTS).as_record()})
    made = plan(found, workloads=BESIDE, neighbours={"n": NEIGHBOUR})
    (trial,) = made.trials
    ((away,), ((client, neighbour),)) = trial.away, trial.neighbours
    assert (client, away.client, away.run_id) == ("client-b", "client-b", "R-client-b")
    assert neighbour.directory == "/mnt/shared/mountlab-R-shared/t0001.beside-client-b/n"
    assert neighbour.command.timeout_s > trial.timeout_s
    assert "beside=''" in trial.head, "nothing beside it on the box"
    assert "(n on client-b, until the tool ends)" in plan_text(made, found)
    assert plan_json(made, found)["order"][0]["beside"] == {"n": list(neighbour.command.argv)}


def test_neighbours_on_the_box_and_on_two_clients_each_run_where_they_are_to() -> None:
    on = {name: {**NEIGHBOUR, "where": {"client": f"client-{name}"}} for name in ("a", "b")}
    beside = {"w": {**BESIDE["w"], "beside": [["a", "b", "here"]]}}
    (trial,) = plan(workloads=beside, neighbours={**on, "here": {**NEIGHBOUR, "where": "same"}}).trials
    assert [(client, planned.name) for client, planned in trial.neighbours] == [
        ("", "here"),
        ("client-a", "a"),
        ("client-b", "b"),
    ]
    assert [planned.name for planned in trial.beside] == ["here"]


@pytest.mark.parametrize(
    ("neighbour", "more", "said"),
    [
        ({}, {"filesystems": {"t": TMPFS}}, "no file system of the sweep can be seen by a client"),
        ({"where": {"client": "ask"}}, {}, "this is the box of the sweep itself"),
    ],
)
def test_a_neighbour_on_a_client_that_sees_no_file_system_under_test_is_refused(
    neighbour: dict[str, Any], more: dict[str, Any], said: str
) -> None:
    with pytest.raises(PlanError, match=said) as error:
        plan(workloads=BESIDE, neighbours={"n": {**NEIGHBOUR, **neighbour}}, **more)
    assert error.value.where == "neighbours.n.where.client"


WITHOUT_DD = {name: fact for name, fact in PROGRAMS.items() if name != "dd"}
DD = {"tool": "dd", "direction": "write", "bs": "1MiB", "count": 1, "where": {"client": "client-b"}}


def test_a_client_that_lacks_the_tool_of_its_neighbour_is_refused() -> None:
    with pytest.raises(PlanError, match="client client-b cannot run neighbour n") as error:
        plan(facts(b={"programs": WITHOUT_DD}), workloads=BESIDE, neighbours={"n": DD})
    assert error.value.where == "neighbours.n.where.client"
    assert error.value.got.startswith("dd: ")
    assert error.value.next_step == "mountlab box prepare client-b"


def test_the_box_needs_no_tool_that_only_a_neighbour_on_a_client_runs() -> None:
    box = known(FACTS, programs=WITHOUT_DD, clients={"client-b": known(FACTS).as_record()})
    assert plan(box, workloads=BESIDE, neighbours={"n": DD}).trials[0].away
    with pytest.raises(PlanError, match="the box lacks dd"):
        plan(box, workloads=BESIDE, neighbours={"n": {**DD, "where": "same"}})


def test_a_client_is_asked_for_programs_that_only_its_neighbour_names() -> None:
    command = {"tool": "command", "argv": "rsync {directory}", "space": "1MiB", "where": {"client": "client-b"}}
    given = sweep(filesystems=SHARED, workloads=BESIDE, neighbours={"n": command}).sweep
    assert "rsync" in {program.name for program in all_programs(given)}
    assert "rsync" not in {program.name for program in needed_programs(given)}


def test_a_client_with_a_helper_is_refused() -> None:
    with pytest.raises(PlanError, match="does not serve clients"):
        plan(facts(b={"rights": "helper"}), workloads=BESIDE, neighbours={"n": NEIGHBOUR})


def test_a_trial_with_a_neighbour_on_a_client_can_be_explained() -> None:
    """Its operations begin on the box, unlike those of a workload that clients drive."""
    given = {"filesystems": SHARED, "design": {"repeats": 1, "explain": 2}}
    traceable = known(FACTS, machine="x86_64", trace_reason="")
    check_traceable(sweep(**given, workloads=BESIDE, neighbours={"n": NEIGHBOUR}).sweep, BOX, traceable)
    with pytest.raises(PlanError, match="clients drive"):
        check_traceable(sweep(**given, workloads={"w": FIO}).sweep, BOX, traceable)


def test_cells_on_a_file_system_that_no_client_sees_are_skipped() -> None:
    both = plan(filesystems={"t": TMPFS, **SHARED}, workloads=BESIDE, neighbours={"n": NEIGHBOUR})
    assert [cell.partition("/")[0] for cell in both.skipped] == ["t"]
    (reason,) = both.skipped.values()
    assert reason.startswith("neighbour n runs on a client: tmpfs is seen by one box only")


def test_a_directory_without_a_path_is_not_shared() -> None:
    with pytest.raises(PlanError, match="no file system of the sweep"):
        plan(filesystems={"d": {"type": "dir"}})


def test_a_socket_has_a_short_path() -> None:
    with pytest.raises(PlanError, match="the path of a client's socket would be too long") as error:
        plan(run_id="R" * 90)
    assert error.value.allowed == "100 bytes"


def test_the_amount_is_that_of_all_clients() -> None:
    (workload,) = sweep(filesystems=SHARED, workloads={"w": FIO}).sweep.workloads
    assert Fio().space_bytes(workload) == 2 * Fio().space_bytes(replace(workload, clients=()))


# --- nfs --------------------------------------------------------------------------------------------------------------

PLACE = Place(run_id="R", run_dir="/mr/R", mountpoint="/mr/R/mnt/n", image="/mr/R/img/n", uuid="u", peers=("10.1.1.2",))


def nfs(**more: Any) -> Filesystem:
    return Filesystem(name="n", type="nfs", server="10.1.1.1", **more)


def test_an_export_is_for_the_addresses_of_the_run_and_is_taken_back() -> None:
    steps = Nfs().steps(nfs(), PLACE)
    exports = [step for step in steps if "export" in step.argv]
    assert [step.argv[-2] for step in exports] == [f"{a}:/mr/R/n" for a in ("127.0.0.1", "10.1.1.1", "10.1.1.2")]
    assert all(step.undo and step.undo[-2:] == ("export", step.argv[-2]) for step in exports)
    (server,) = [step for step in steps if "nfsd" in step.argv]
    assert server.argv[-2:] == ("127.0.0.1", "10.1.1.1"), "it listens at these addresses only"


def test_a_client_mounts_it_from_the_server_and_lets_go_even_of_one_that_is_gone() -> None:
    own = replace(PLACE, run_id="R-a", run_dir="/mr/R-a", mountpoint="/mr/R-a/mnt/n")
    made, mount = Nfs().client_steps(nfs(options=("nconnect=4",)), PLACE, own)
    assert mount.argv[-5:] == ("nfs4", "-o", "vers=4.2,nconnect=4", "10.1.1.1:/", "/mr/R-a/mnt/n")
    assert mount.undo is not None
    assert mount.undo[-1] == "/mr/R-a/mnt/n"
    assert "umount -l" in mount.undo[2]
    assert made.undo == ("rmdir", "/mr/R-a/mnt/n")


@pytest.mark.parametrize("wrong", ["0.0.0.0", "::", "0"])
def test_no_server_listens_everywhere(wrong: str) -> None:
    with pytest.raises(ParameterError):
        sweep(filesystems={"n": {"type": "nfs", "server": wrong}})


def test_other_versions_are_refused() -> None:
    with pytest.raises(ParameterError, match="only version 4 of NFS"):
        sweep(filesystems={"n": {"type": "nfs", "options": ["vers=3"]}})


def test_a_kernel_without_nfs_says_so() -> None:
    with pytest.raises(PlanError, match="the kernel of the box has no nfs4"):
        plan(known(facts(), kernel_filesystems=["ext4"]), filesystems={"n": {"type": "nfs"}})
    with pytest.raises(PlanError, match="the kernel of client client-b has no nfs4"):
        plan(facts(b={"kernel_filesystems": ["ext4"]}), filesystems={"n": {"type": "nfs", "server": "10.1.1.1"}})


def test_a_client_must_be_told_where_the_server_is() -> None:
    with pytest.raises(PlanError, match="client client-a has no address of the server"):
        plan(filesystems={"n": {"type": "nfs"}})


# --- what fio is asked ------------------------------------------------------------------------------------------------

ENDPOINTS = tuple(
    ClientEndpoint(
        client=name, socket=f"/o/t1.c/{name}", directory=f"/{name}/t1/{name}", same_directory=f"/d/t1/{name}"
    )
    for name in ("client-a", "client-b")
)


def command(**options: Any) -> Any:
    (workload,) = sweep(filesystems=SHARED, workloads={"w": {**FIO, **options}}).sweep.workloads
    cache = {"cache": options.get("cache", "cold")}
    asked = replace(workload, options={**workload.options, **cache})
    return Fio().command(asked, "/d/t1", "/o/t1", Target(endpoints=ENDPOINTS))


def test_every_client_gets_a_job_of_its_own_in_a_directory_of_its_own() -> None:
    made = command()
    ours = [word for word in made.argv if word.startswith("--client") or word.endswith(".fio")]
    assert ours == [
        "--client=sock:/o/t1.c/client-a",
        "/o/t1/client-a-jobs.fio",
        "--client=sock:/o/t1.c/client-b",
        "/o/t1/client-b-jobs.fio",
    ]
    job = made.files["/o/t1/client-b-jobs.fio"].splitlines()
    assert {"directory=/client-b/t1/client-b", "unique_filename=0", "rw=randread", "numjobs=2"} <= {*job}
    assert "[global]" not in job, "a report of several clients has one place for global options"


@pytest.mark.parametrize("cache", ["cold", "warm", "as_is"])
def test_caches_are_seen_to_on_every_client(cache: str) -> None:
    made = command(cache=cache)
    assert [argv[-1] for argv in (*made.drop, *made.fill)] == ["/o/t1/client-b-drop.fio", "/o/t1/client-b-warm.fio"]
    assert "exec_prerun=sh ./drop /client-a/t1/client-a" in made.files["/o/t1/client-a-drop.fio"]
    assert ("invalidate=0" in made.files["/o/t1/client-a-jobs.fio"]) == (cache != "cold")


def test_only_what_is_read_is_laid_out_before() -> None:
    assert [argv[0] for argv in command().prepare] == ["mkdir", "sh"]
    assert "create_only=1" in command().files["/o/t1/client-a-layout.fio"]
    assert [argv[0] for argv in command(rw="write").prepare] == ["mkdir"]


# --- what fio says ----------------------------------------------------------------------------------------------------


def recorded() -> dict[str, Any]:
    report: dict[str, Any] = decode((DATA / "clients.jsonplus").read_text())
    return report


def parse(report: dict[str, Any] | str, status: int = 0, **options: Any) -> dict[tuple[str, str], float]:
    (workload,) = sweep(filesystems=SHARED, workloads={"w": {**FIO, **options}}).sweep.workloads
    text = report if isinstance(report, str) else json.dumps(report, indent=1)
    files = {"fio.json": text}
    rows = Fio().parse(workload, ToolOutput(exit_status=status, stdout="", stderr="", files=files))
    return {(row.metric, row.label): row.value for row in rows}


def test_figures_are_of_all_clients_together_and_of_each() -> None:
    found, (b, a, every) = parse(recorded()), recorded()["client_stats"]
    assert found["bytes", "read"] == every["read"]["io_bytes"] == a["read"]["io_bytes"] + b["read"]["io_bytes"]
    assert found["read_bandwidth", ""] == pytest.approx(every["read"]["bw_bytes"], rel=1e-6)
    assert found["read_iops", ""] == pytest.approx(every["read"]["iops"], rel=1e-6)
    assert found["read_bandwidth", "client-a"] == a["read"]["bw_bytes"]
    assert found["elapsed", "client-b"] == b["read"]["runtime"] / 1e3
    assert {label for _, label in found} == {"", "read", "client-a", "client-b"}


def test_percentiles_are_those_of_the_merged_histograms() -> None:
    found, histograms = parse(recorded()), histograms_of(recorded())
    assert {label for label, _ in histograms} == {"client-a mountlab", "client-b mountlab"}
    merged = merge(each for (_, place), each in histograms.items() if place == "read.clat_ns")
    assert found["read_latency_p99", ""] == percentile_ns(merged, 99.0) / NS_PER_S
    assert (
        found["read_latency_p99", ""]
        != (found["read_latency_p99", "client-a"] + found["read_latency_p99", "client-b"]) / 2
    )


def test_a_client_that_says_nothing_is_missed() -> None:
    report = recorded()
    report["client_stats"] = [e for e in report["client_stats"] if not e["hostname"].endswith("b")][:1]
    with pytest.raises(ToolError, match="there are no figures of client-b"):
        parse(report)


def test_a_client_that_was_not_asked_is_not_believed() -> None:
    with pytest.raises(ToolError, match="a client that was not asked"):
        parse(recorded(), clients=["client-a", "c"])


def test_fios_own_sum_must_be_the_sum() -> None:
    report = recorded()
    report["client_stats"][-1]["read"]["io_bytes"] += 4096
    with pytest.raises(ToolError, match="do not add up"):
        parse(report)


def test_each_client_must_have_done_what_it_was_asked() -> None:
    report = recorded()
    report["client_stats"][0]["job options"]["bs"] = "8k"
    with pytest.raises(ToolError, match="fio did not run what was asked"):
        parse(report)
    report = recorded()
    report["client_stats"][0]["read"]["io_bytes"] = 4096
    with pytest.raises(ToolError, match="fio stopped early"):
        parse(report)
    with pytest.raises(ParseError, match="fio reports on other jobs"):
        parse(recorded(), group_reporting=False)


def test_what_the_servers_say_is_the_evidence_of_a_failure() -> None:
    said = "</o/t1.c/client-a> fio: /nonexist is not a directory\n"
    with pytest.raises(ToolError, match="wrote no report") as error:
        parse(said, status=1)
    assert "/nonexist is not a directory" in str(error.value)
    with pytest.raises(ToolError, match="exit status 1") as error:
        parse("client: host=/o/t1.c/client-b disconnected\n" + json.dumps(recorded(), indent=1), status=1)
    assert "client-b disconnected" in str(error.value)


def test_logs_of_clients_from_elsewhere_are_read() -> None:
    rows = fio_json.read((DATA / "clients.jsonplus").read_text(), 0).figures
    assert {row.measurement.label for row in rows} == {"", "read", "client-a mountlab", "client-b mountlab"}


# --- outcomes ---------------------------------------------------------------------------------------------------------

THERE = {"server": b"running\n", "log": b"", "cache": b"drop_caches\n"}


def test_a_good_trial_stays_good_and_keeps_what_the_clients_left() -> None:
    outcome = with_reports(Outcome(files={"stdout": b""}), {"a": THERE}, "cold")
    assert outcome.error is None
    assert outcome.files["client-a-cache"] == b"drop_caches\n"
    assert outcome.files["stdout"] == b""


@pytest.mark.parametrize("left", [{}, {**THERE, "server": b"ended\n"}, {**THERE, "server": b"cut off"}])
def test_a_failure_after_a_client_was_lost_is_that(left: dict[str, bytes]) -> None:
    outcome = with_reports(Outcome(error=ToolError("fio failed")), {"a": THERE, "b": left}, "cold")
    assert isinstance(outcome.error, TransientError), "another attempt may go better"
    assert str(outcome.error).startswith("client b was lost while the trial ran")
    assert "fio failed" in str(outcome.error)


def test_a_failure_that_is_fios_own_stays_so() -> None:
    error = ToolError("fio failed")
    assert with_reports(Outcome(error=error), {"a": THERE}, "cold").error is error


@pytest.mark.parametrize(("cache", "left"), [("cold", {}), ("warm", {"cache": b"drop_caches\n"})])
def test_a_cache_that_was_not_seen_to_is_no_measurement(cache: str, left: dict[str, bytes]) -> None:
    outcome = with_reports(Outcome(), {"a": {"server": b"running", **left}}, cache)
    assert "the page cache of a was not made" in str(outcome.error)
    assert with_reports(Outcome(), {"a": {"server": b"running", **left}}, "as_is").error is None


def test_a_run_without_clients_has_nothing_around_it() -> None:
    the_plan = plan(workloads={"w": {key: value for key, value in FIO.items() if key != "clients"}})
    outcome = Outcome()
    clients = Clients(the_plan, None, {})  # type: ignore[arg-type]
    assert clients.attempt(the_plan.trials[0], lambda: outcome) is outcome
    with clients.held(lambda: False), clients.mounted(the_plan.mounts[0]):
        pass


def test_a_workload_names_its_clients() -> None:
    assert Workload(name="w", tool="fio", options={}).clients == ()
