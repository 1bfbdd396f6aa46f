"""fio's client/server mode: one fio asks the servers of several clients to run a job each, and writes one report.

Each client gets job files of its own, since each has a directory of its own. (fio would keep their files apart by the
address that asks, which is the same for all of them: on a shared file system they would write into the same files.)
What has to be done on every client before the measured part, fio does there, too: its caches are dropped, or filled, by
scripts that lie beside its server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mountlab.core.errors import ParameterError, ToolError
from mountlab.core.model import ClientEndpoint, Measurement, Scalar
from mountlab.fio import report as fio_report
from mountlab.fio import seeds
from mountlab.fio.jobs import Job, client_job_file, layout_of
from mountlab.fio.report import FILE, JobEntry

DROP, WARM = "drop", "warm"
"""Names of scripts in the directory of each client's server: what they do is done by `exec_prerun`."""
MEASURED, LAYOUT = "jobs", "layout"
JOB_FILES = MEASURED, LAYOUT, DROP, WARM
"""CLIENT-KIND.fio, in the directory of a trial's output."""
ASK = 'trap "" PIPE; exec "$@"'
"""fio that asks dies of SIGPIPE where a server closes first, before it has said why."""
Argv = tuple[str, ...]


def check(options: Mapping[str, Scalar], *, where: str) -> None:
    """Raise ParameterError for what several clients cannot do."""
    if options.get("log_avg_msec"):
        raise ParameterError(
            "logs over time are not kept of several clients",
            where=f"{where}.log_avg_msec",
            got=str(options["log_avg_msec"]),
            allowed="a workload without `clients`, or without log_avg_msec",
        )
    unfit = [name for name, value in options.items() if "$" in str(value) and name != "jobs"]
    if unfit:
        raise ParameterError(
            "not a value for a job file, and clients get theirs as one",
            where=f"{where}.{unfit[0]}",
            got=repr(options[unfit[0]])[:60],
            allowed="text without '$'",
        )


# --- commands ---------------------------------------------------------------------------------------------------------


def ask(endpoints: Sequence[ClientEndpoint], output: str, kind: str, *more: str) -> Argv:
    """Return the command that has every client run its job file of that kind."""
    words = (
        word for endpoint in endpoints for word in (f"--client=sock:{endpoint.socket}", _file(endpoint, output, kind))
    )
    return ("sh", "-c", ASK, "fio-clients", "fio", "--eta=never", *more, *words)


def prepare(endpoints: Sequence[ClientEndpoint], jobs: Sequence[Job], output: str) -> tuple[Argv, ...]:
    """Return a directory for each client; and what is to be read is laid out."""
    made = ("mkdir", *(endpoint.same_directory for endpoint in endpoints))
    return (made, ask(endpoints, output, LAYOUT)) if layout_of(jobs) else (made,)


def files(
    endpoints: Sequence[ClientEndpoint], jobs: tuple[Job, ...], output: str, common: Mapping[str, str], *, grouped: bool
) -> dict[str, str]:
    """Return the job files of every client: what is run, what only lays out its files, what sees to its page cache."""
    texts = {}
    for endpoint in endpoints:
        options = {**common, "directory": endpoint.directory, "unique_filename": "0"}
        texts[_file(endpoint, output, MEASURED)] = client_job_file(jobs, options, endpoint.seed, grouped=grouped)
        if readers := layout_of(jobs):
            layout, seed = {**options, "create_only": "1"}, seeds.layout_of(endpoint.seed)
            texts[_file(endpoint, output, LAYOUT)] = client_job_file(readers, layout, seed, grouped=grouped)
        for script in (DROP, WARM):
            # A job that does nothing but what a script does before it.
            job = f"[{script}]\nioengine=null\nrw=read\nsize=4096\nexec_prerun=sh ./{script} {endpoint.directory}\n"
            texts[_file(endpoint, output, script)] = job
    return texts


def _file(endpoint: ClientEndpoint, output: str, kind: str) -> str:
    return f"{output}/{endpoint.client}-{kind}.fio"


# --- what came back ---------------------------------------------------------------------------------------------------


def by_client(report: Any, clients: Sequence[str]) -> dict[str, list[JobEntry]]:
    """Client to its entries of a report. Raises ToolError where one says nothing, or an unknown one says something."""
    entries_of: dict[str, list[JobEntry]] = {client: [] for client in clients}
    for entry in fio_report.entries(report):
        client = fio_report.client_of(entry)
        if client not in entries_of:
            raise ToolError(
                "fio reports on a client that was not asked",
                where=FILE,
                got=repr(client)[:60],
                allowed=", ".join(clients),
            )
        entries_of[client].append(entry)
    silent = [client for client, entries in entries_of.items() if not entries]
    if silent:
        raise ToolError(
            f"not all clients did their part: there are no figures of {', '.join(silent)}",
            where=FILE,
            got=f"figures of {len(clients) - len(silent)} clients",
            allowed=f"of all {len(clients)}",
        )
    return entries_of


def check_sum(report: Any, entries: Iterable[JobEntry]) -> None:
    """Raise ToolError where fio's own sum over its clients is not the sum of its reports on each."""
    whole = fio_report.all_clients(report)
    total = sum(fio_report.moved(entry) for entry in entries)
    if whole is not None and fio_report.moved(whole) != total:
        raise ToolError(
            "fio's figures of its clients do not add up",
            where=f"{FILE}: {fio_report.ALL_CLIENTS}",
            got=f"{fio_report.moved(whole):.0f} B",
            allowed=f"{total:.0f} B",
        )


def measurements(entries_of: Mapping[str, Sequence[JobEntry]], phases: Sequence[fio_report.Begin]) -> list[Measurement]:
    """Return every figure of all clients together; of each client, under its name; and of each job, where there are
    several, over all clients, under the name of the job. Amounts are added up over the time of the slowest, percentiles
    are those of the merged histograms."""
    all_entries = [entry for entries in entries_of.values() for entry in entries]
    rows = fio_report.together(all_entries, list(phases) * len(entries_of))
    for client, entries in entries_of.items() if len(entries_of) > 1 else ():
        rows += fio_report.labelled(fio_report.together(entries, phases), client)
    if len(phases) > 1:
        for label, *same in zip(fio_report.labels(next(iter(entries_of.values()))), *entries_of.values(), strict=True):
            rows += fio_report.labelled(fio_report.together(same, [fio_report.AT_ONCE] * len(same)), f"job {label}")
    return rows
