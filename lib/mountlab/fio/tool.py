"""fio 3: any pattern of reads and writes, one job or several, read from the json+ file that it writes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mountlab.core.errors import ParameterError, ParseError, ToolError, all_of, raise_all
from mountlab.core.model import FILES, MARK_BYTES, Measurement, Program, Scalar, Target, Workload, everywhere
from mountlab.core.options import Option
from mountlab.core.resolution import Step
from mountlab.core.search import Search
from mountlab.core.units import MIB
from mountlab.fio import clients, open_loop, seeds, series
from mountlab.fio import help as fio_help
from mountlab.fio import metadata as fio_metadata
from mountlab.fio import options as fio_options
from mountlab.fio import report as fio_report
from mountlab.fio.jobs import Job, change_words, end_on_device, extent, job_file, jobs_of, layout_of, read_jobs
from mountlab.fio.options import READS, WRITES
from mountlab.fio.report import FILE, JobEntry
from mountlab.tools.base import GUESSED_BYTES_PER_S, Command, Commits, Manner, Tool, ToolOutput, Written, check_cache

JOB_FILE, LAYOUT_FILE = "jobs.fio", "layout.fio"
PLACES = ("filename", "filename_format", "offset")
"""Options for which fio gets others on a device."""


class Fio(Tool):
    """The flexible I/O tester. One job description, its threads reported together; or the jobs of a job file.

    Seeds: each block passes `randrepeat=0` and `randseed` (before fio 3.35 `randseed` alone leaves the offsets as they
    are). A seed in the sweep wins for its job, with the caveat `trials-replayed`. Data is random and new for each
    write (`refill_buffers`) and each block, also in files that are laid out before a read.

    Page cache: fio drops its file before each pass over it (`invalidate`), so a buffered job that runs for a time
    still reads from the device. With `norandommap`, `random_distribution` or `invalidate: 0` it reads from memory.
    `cache: as_is` tells fio not to invalidate its files.

    Logs over time: bandwidth of all jobs, and IOPS and mean latency where each I/O waits for a device (`direct`, or a
    flush after each write) or has 64 KiB or more. IOPS and latency take 30 to 50 ns of each I/O, which is 3 to 6 % of
    one of 4 KiB from memory. Bandwidth alone takes less than 1 % of one job, and 1 to 2 % where every processor has a
    job. A number of milliseconds logs all three. fio's log begins with its job, and is drawn so that it ends with
    the tool. The latency of several jobs is weighted by their I/Os. Mountlab does not use the least and greatest
    bandwidth in fio's report, which are of other windows.

    Engines without data: `filecreate` (fio 3.2 and later), `filestat` (3.18) and `filedelete` (3.27) create, look up or
    delete `nrfiles` files in each job, one after the other, and flush nothing. `file_rate` is files by time, with fio's
    own work between them, and `operation_latency` the system call alone. They report no bytes, and no logs over time.
    fio looks up every file before it begins: `cache: cold` is refused for the last two.

    Several jobs: the bandwidth of all is their bytes over the time in which one or more of them run. With
    `clients`, fio on the box starts the jobs of all clients together, within the time that a message takes; their
    clocks are not synchronised. fio's own sum over its clients must be the same amount.
    """

    name = "fio"
    programs: tuple[Program, ...] = (Program(name="fio", packages=everywhere("fio"), version=("fio", "--version")),)
    options: Mapping[str, Option] = fio_options.OPTIONS
    any_option = True
    reserved: Mapping[str, str] = fio_options.RESERVED
    clock_s = 1e-3
    """fio states run times in whole milliseconds, and computes bandwidth from them."""
    longer = "runtime with time_based or loops, or a larger size"
    steps: Mapping[str, Step] = {**fio_metadata.steps(fio_report.steps(clock_s)), **fio_report.steps(clock_s)}
    gives: tuple[str, ...] = (*fio_report.METRICS_REPORTED, *fio_metadata.METRICS_REPORTED)
    drives_clients = True
    box_help: tuple[str, ...] = ("sh", "-c", fio_help.SCRIPT, "fio-help", "{options}")

    neighbour_defaults: Mapping[str, Any] = {"size": "128MiB"}

    def lasting(self, workload: Workload, seconds: float) -> Workload:
        more: dict[str, Scalar] = {"log_avg_msec": 0}
        if not workload.options.keys() & {"jobs", "runtime", "io_size", "number_ios", "loops"}:
            more |= {"time_based": 1, "runtime": seconds}
        return replace(workload, options={**workload.options, **more})

    def check_help(self, options: Mapping[str, Scalar], text: str, *, where: str) -> None:
        box_help = fio_help.read_help(text)
        for job in jobs_of(options, where=where) if box_help else ():
            given = {**dict(fio_options.arguments(job.options)), **_common(options, (), "", FILES)}
            given.pop("bs", None)  # a size that Mountlab has checked, and fio's own range is that of an int
            place = f"{where}.jobs: [{job.name}]" if "jobs" in options else where
            assert box_help
            fio_help.check_options(given, box_help, where=place)

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        read = read_jobs(options, where=where)
        problems = [*read.problems]
        for job in read.jobs:
            place = f"{where}.jobs: [{job.name}]" if "jobs" in options else where
            try:
                needed = fio_metadata.NEEDED if fio_metadata.is_metadata(job.options) else fio_options.NEEDED
                self.check_given(job.options, needed, where=place)
                fio_options.check_job(job.options, where=place)
            except ParameterError as error:
                problems += all_of(error)
        raise_all(problems)
        fio_metadata.check(options, [job.options for job in read.jobs], where=where)
        check_cache(options, reads=_reads(read.jobs), where=where)

    def check_open_loop(self, options: Mapping[str, Scalar], *, where: str) -> tuple[str, ...]:
        return open_loop.check(options, where=where)

    def largest_rate(self, workload: Workload) -> float:
        return open_loop.MOST_REQUESTS / open_loop.lasts_s(float(workload.options["runtime"]))

    def least_rate(self, workload: Workload) -> float:
        assert workload.search
        enough = open_loop.least_rate(workload.options, workload.search.objective)
        return max(enough, math.ceil(workload.search.floor))

    def trial_s(self, workload: Workload, rate: float) -> float:
        assert workload.search
        layout = int(workload.options["size"]) / GUESSED_BYTES_PER_S
        return 0.5 + layout + open_loop.trial_s(workload.options, workload.search.objective, rate)

    def check_clients(self, options: Mapping[str, Scalar], *, where: str) -> None:
        clients.check(options, where=where)

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        jobs = jobs_of(workload.options)
        if target.endpoints:
            return _client_command(workload, jobs, output, target)
        if workload.search:
            return _search_command(workload, workload.search, jobs[0], directory, output, target)
        plain = "jobs" not in workload.options
        if plain:
            base = _plain_command(jobs[0], directory, target, target.seed)
            common = _words(_common(workload.options, jobs, output, target))
            argv = (*base, *common, *_report_words(output), *_words(_kept_pages(workload)))
        else:
            argv = ("fio", f"{output}/{JOB_FILE}", *_report_words(output))
        return Command(
            argv=argv,
            prepare=_prepare(workload, jobs, directory, output, target),
            fill=(_fill_command(_extent(jobs, target), directory, target),) if _reads(jobs) else (),
            cache=self.cache_of(workload),
            files={} if plain else _make_files(workload, jobs, directory, output, target),
            seed=_seed(jobs, target),
        )

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return every figure of each job, and of all together. Latency means are of the whole latency (submission and
        completion), percentiles of the completion latency, as fio computes them."""
        rows = self._parse_report(workload, output)
        return [*fio_metadata.figures(rows)] if _moves_nothing(workload) else rows

    def _parse_report(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        report = _read_report(output)
        if workload.clients:
            return _parse_clients(workload, output, report)
        entries = fio_report.entries(report)
        _check_success(output, entries)
        if workload.search:
            log = output.files.get(open_loop.LOG_FILE, "")
            return open_loop.parse(log, report, entries, workload.search)
        phases = _check_entries(workload, entries, report.get("global options") or {})
        return fio_report.measurements(entries, phases=phases, disks=report.get("disk_util"))

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        """Return the space for the files: one a job, on every client; on a device all jobs use the same part."""
        return _extent(jobs_of(workload.options), target) * max(1, len(workload.clients))

    def remarks(self, workload: Workload) -> tuple[str, ...]:
        return tuple(change_words(read_jobs(workload.options).changes, most=None))

    def expected_s(self, workload: Workload) -> float:
        jobs = jobs_of(workload.options)
        layout = _extent(jobs, FILES) / GUESSED_BYTES_PER_S if _reads(jobs) else 0.0
        if workload.search:
            return self.trial_s(workload, max(workload.search.start, self.least_rate(workload)))
        return 0.5 + layout + fio_report.over_phases([(job.phase, 0.0) for job in jobs], map(_expected_s, jobs))

    def queue_depth(self, argv: Sequence[str]) -> int:
        depths = {word.partition("=")[2] for word in argv if word.startswith("--iodepth=")}
        return int(depths.pop()) if len(depths) == 1 else 0

    def hides_calls(self, argv: Sequence[str]) -> str:
        return next((reason for word in argv if (reason := fio_options.HIDDEN_CALLS.get(word))), "")

    def uncounted_s(self, workload: Workload) -> float:
        if workload.search:
            return open_loop.settle_s(float(workload.options["runtime"]))
        return max(float(job.options.get("ramp_time", 0)) for job in jobs_of(workload.options))

    def written(self, workload: Workload) -> Written:
        return fio_options.written([job.options for job in jobs_of(workload.options)])

    def manner(self, workload: Workload) -> Manner:
        jobs = jobs_of(workload.options)
        engines, depths = (
            dict.fromkeys(str(job.options.get(name, usual)) for job in jobs)
            for name, usual in (("ioengine", "psync"), ("iodepth", "1"))
        )
        return Manner(engine=", ".join(engines), depth=", ".join(depths), jobs=str(sum(job.clones for job in jobs)))

    def commits(self, workload: Workload, figures: Mapping[tuple[str, str], float]) -> Commits | None:
        """Each fsync or fdatasync; of jobs with an asynchronous engine as many may be under way as its depth has."""
        jobs = jobs_of(workload.options)
        if not figures.get(("sync_ios", "")) or not figures.get(("elapsed", "")) or workload.clients:
            return None
        clients = sum(job.clones * int(job.options.get("iodepth", 1)) for job in jobs)
        return Commits(figures["sync_ios", ""] / figures["elapsed", ""], clients, figures["elapsed", ""])

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        if workload.search:
            return ("capacity",)
        if _moves_nothing(workload):
            return ("file_rate",)
        patterns = {job.options["rw"] for job in jobs_of(workload.options)}
        sides = [
            side for side, patterns_of_side in (("read", READS), ("write", WRITES)) if patterns & {*patterns_of_side}
        ]
        return tuple(f"{side}_bandwidth" for side in sides)


def _moves_nothing(workload: Workload) -> bool:
    return any(fio_metadata.is_metadata(job.options) for job in jobs_of(workload.options))


def _reads(jobs: Sequence[Job]) -> bool:
    return any(job.options["rw"] in READS for job in jobs)


def _extent(jobs: Sequence[Job], target: Target) -> int:
    return max(map(end_on_device, jobs)) if target.kind == "device" else extent(jobs)


def _expected_s(job: Job) -> float:
    options = job.options
    fixed = int(options.get("io_size") or options["size"]) * job.clones / GUESSED_BYTES_PER_S
    delay = fio_options.fio_seconds(str(options.get("startdelay", 0))) or 0.0
    return delay + float(options.get("ramp_time", 0)) + float(options.get("runtime", fixed))


# --- commands ---------------------------------------------------------------------------------------------------------


def _client_command(workload: Workload, jobs: tuple[Job, ...], output: str, target: Target) -> Command:
    """fio here asks fio on each client."""
    grouped = _grouped(workload.options)
    common = {"group_reporting": str(int(grouped)), **_kept_pages(workload)}
    report = ("--output-format=json+", f"--output={output}/{FILE}")
    return Command(
        argv=clients.ask(target.endpoints, output, clients.MEASURED, *report),
        prepare=clients.prepare(target.endpoints, jobs, output),
        drop=(clients.ask(target.endpoints, output, clients.DROP),),
        fill=(clients.ask(target.endpoints, output, clients.WARM),),
        cache=Tool.cache_of(workload),
        files=clients.files(target.endpoints, jobs, output, common, grouped=grouped),
        seed=_seed(jobs, target),
    )


def _search_command(
    workload: Workload, search: Search, job: Job, directory: str, output: str, target: Target
) -> Command:
    """Return the command of a trial of a search. What is written over was laid out before: a file system allocates no
    block then, however many requests came earlier."""
    where = {**_where(directory, target), **({} if target.kind == "device" else {"filename": job.name})}
    given = {**where, **dict(fio_options.arguments(job.options)), **seeds.arguments(job.options, target.seed)}
    given |= _kept_pages(workload)
    text = open_loop.job_file(given, search, target.rate or search.start, job.options, output)
    return Command(
        argv=("fio", f"{output}/{JOB_FILE}", *_report_words(output)),
        prepare=(_lay_out(job.name, int(job.options["size"]), where, seeds.layout_of(target.seed)),),
        fill=(_fill_command(_extent((job,), target), directory, target),),
        cache=Tool.cache_of(workload),
        files={f"{output}/{JOB_FILE}": text},
        log=open_loop.LOG_FILE,
        seed=_seed((job,), target),
    )


def _report_words(output: str) -> tuple[str, ...]:
    return ("--eta=never", "--output-format=json+", f"--output={output}/{FILE}")


def _kept_pages(workload: Workload) -> dict[str, str]:
    """Return the option that keeps fio from dropping its files from the page cache, where that is asked."""
    return {"invalidate": "0"} if Tool.cache_of(workload) in ("warm", "as_is") else {}


def _lay_out(name: str, size: int, where: Mapping[str, str], seed: int | None) -> tuple[str, ...]:
    """Return what writes everything once, in order."""
    fill = ("fio", f"--name={name}", *_words(where), "--rw=write", f"--size={size}")
    more = (f"--bs={MIB}", "--ioengine=psync", "--end_fsync=1", *_seeded(seed))
    return (*fill, "--refill_buffers=1", "--eta=never", *more)


def _seed(jobs: Sequence[Job], target: Target) -> int | None:
    """Return the seed of a trial; None where a job of it has its own."""
    return None if any(name in job.options for job in jobs for name in seeds.OWN) else target.seed


def _where(directory: str, target: Target) -> dict[str, str]:
    if target.kind == "device":
        return {"filename": target.device, "offset": str(MARK_BYTES)}
    return {"directory": directory}


def _plain_command(job: Job, directory: str, target: Target, seed: int | None) -> tuple[str, ...]:
    """Return the command of a single job: it needs no job file."""
    given = {**dict(fio_options.arguments(job.options)), **seeds.arguments(job.options, seed)}
    return ("fio", f"--name={job.name}", *_words({**_where(directory, target), **given}))


def _seeded(seed: int | None) -> tuple[str, ...]:
    return _words(seeds.arguments({}, seed))


def _words(options: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"--{name}={value}" for name, value in options.items())


def _common(options: Mapping[str, Scalar], jobs: Sequence[Job], output: str, target: Target) -> dict[str, str]:
    """Return what is asked of all jobs together."""
    averaged = options.get("log_avg_msec", _window_ms(jobs))
    every = "log_avg_msec" in options or all(_is_long(job.options, target) for job in jobs)
    logs = {"log_avg_msec": str(averaged), **series.arguments(output, every=every)} if averaged else {}
    return {**logs, "group_reporting": str(int(_grouped(options)))}


def _is_long(options: Mapping[str, Scalar], target: Target) -> bool:
    """Return whether each I/O of a job takes so long that what every log takes of it does not count."""
    large = fio_options.blocks(options)[0] >= series.LONG_BYTES
    return large or (fio_options.waits(options) and not target.in_memory)


def _window_ms(jobs: Sequence[Job]) -> int:
    """Return the windows of the logs over time where the sweep says nothing; 0 for no logs."""
    if any(fio_metadata.is_metadata(job.options) for job in jobs):
        return 0
    timed = [float(job.options["runtime"]) for job in jobs if job.options.get("time_based")]
    return series.window_ms(
        sum(job.clones for job in jobs),
        runtime_s=max(timed) if timed and len(timed) == len(jobs) else None,
        expected_s=max(map(_expected_s, jobs), default=0.0),
    )


def _grouped(options: Mapping[str, Scalar]) -> bool:
    """Return whether the clones of a job are reported together. `exitall` ends all jobs of a group of fio's, and groups
    for reports would be smaller."""
    return bool(options.get("group_reporting", 1)) and not _exits(options)


def _exits(options: Mapping[str, Scalar]) -> bool:
    """Return whether the first job that is done ends the others that run."""
    return any(fio_options.is_on(job.options, "exitall") for job in jobs_of(options))


def _make_files(
    workload: Workload, jobs: tuple[Job, ...], directory: str, output: str, target: Target
) -> dict[str, str]:
    """Return the job file that is run, and the one that only lays out what is to be read."""
    options, where = workload.options, _where(directory, target)
    grouped = _grouped(options)
    common = {**where, **_common(options, jobs, output, target), **_kept_pages(workload)}
    run = job_file(jobs, common, target.seed, grouped=grouped)
    files = {f"{output}/{JOB_FILE}": run}
    readers = layout_of(jobs)
    if target.kind != "files" or not readers:
        return files
    seed = seeds.layout_of(target.seed)
    layout = job_file(readers, {**where, "create_only": "1"}, seed, grouped=grouped)
    return {**files, f"{output}/{LAYOUT_FILE}": layout}


def _prepare(
    workload: Workload, jobs: tuple[Job, ...], directory: str, output: str, target: Target
) -> tuple[tuple[str, ...], ...]:
    """Return what must be there before a read is measured: files laid out; blocks of a device written, since one that
    never was answers from nothing. Files that can only be mapped get their size first, which fio would write."""
    seed = seeds.layout_of(target.seed)
    if target.kind == "mapped":
        return tuple(argv for job in jobs for argv in _make_mapped(job, directory, seed))
    if not _reads(jobs):
        return ()
    if target.kind == "device":
        return (_lay_out(jobs[0].name, _extent(jobs, target), _where(directory, target), seed),)
    if "jobs" in workload.options:
        return (("fio", f"{output}/{LAYOUT_FILE}", "--eta=never"),)
    return ((*_plain_command(jobs[0], directory, target, seed), "--create_only=1", "--eta=never"),)


def _make_mapped(job: Job, directory: str, seed: int | None) -> tuple[tuple[str, ...], ...]:
    options = job.options
    names_given = str(options["filename"]).split(":") if "filename" in options else []
    names = [f"{directory}/{name}" for name in names_given or (f"{job.name}.{clone}.0" for clone in range(job.clones))]
    made = ("truncate", "-s", str(options["size"]), *names)
    if options["rw"] not in READS:
        return (made,)
    shared = (f"--filename={options['filename']}",) if names_given else ()
    fill = ("fio", f"--name={job.name}", f"--directory={directory}", *shared, "--rw=write", f"--size={options['size']}")
    more = (f"--numjobs={1 if names_given else job.clones}", "--ioengine=mmap", f"--bs={options['bs']}", *_seeded(seed))
    return made, (*fill, "--refill_buffers=1", "--eta=never", *more)


def _fill_command(size: int, directory: str, target: Target) -> tuple[str, ...]:
    """Reads everything once, so that the page cache holds it."""
    if target.kind != "device":
        return ("find", directory, "-type", "f", "-exec", "cat", "{}", "+")
    skip, count = MARK_BYTES // MIB, math.ceil(size / MIB)
    return ("dd", f"if={target.device}", "of=/dev/null", f"bs={MIB}", f"skip={skip}", f"count={count}")


# --- what is believed of a report -------------------------------------------------------------------------------------


def _read_report(output: ToolOutput) -> Any:
    text = output.files.get(FILE, "")
    if "{" not in text:  # what its servers say, fio that asks writes there, too
        raise ToolError(
            f"fio wrote no report (exit status {output.exit_status})", evidence=text or output.stderr or output.stdout
        )
    if FILE not in output.decoded:
        output.decoded[FILE] = fio_report.decode(text)
    return output.decoded[FILE]


def _check_success(output: ToolOutput, entries: Sequence[JobEntry], printed: str = "") -> None:
    failed = [entry["error"] for entry in entries if entry["error"]]
    if output.exit_status != 0 or failed:
        raise ToolError(
            f"fio failed with exit status {output.exit_status}, error {failed[0] if failed else 0}",
            evidence=printed + output.stderr,
        )


def _parse_clients(workload: Workload, output: ToolOutput, report: Any) -> list[Measurement]:
    """Return the measurements of all clients. Raises where one has not done what it was asked."""
    printed = output.files[FILE].partition("\n{")[0]
    _check_success(output, fio_report.entries(report), printed)
    by_client = clients.by_client(report, workload.clients)
    phases: list[fio_report.Begin] = []
    for entries in by_client.values():
        phases = _check_entries(workload, entries, {})
    clients.check_sum(report, (entry for entries in by_client.values() for entry in entries))
    return clients.measurements(by_client, phases)


def _check_entries(
    workload: Workload, entries: Sequence[JobEntry], common: Mapping[str, Any]
) -> list[fio_report.Begin]:
    """Return when each job began. Raises where a job is not the one that was asked for, or has not done all of it."""
    jobs, grouped = jobs_of(workload.options), _grouped(workload.options)
    requested = [pair for job in jobs for pair in ([(job, job.clones)] if grouped else [(job, 1)] * job.clones)]
    names = [job.name for job, _ in requested]
    reported = [str(entry.get("jobname", "")) for entry in entries]
    if len(reported) != len(names) or ("jobs" in workload.options and reported != names):
        raise ParseError(
            "fio reports on other jobs than were asked for",
            where=FILE,
            got=f"{len(reported)} jobs: {', '.join(reported)}"[:200],
            allowed=f"{len(names)}: {', '.join(names)}"[:200],
        )
    for (job, clones), entry in zip(requested, entries, strict=True):
        _check_echo(job, entry, common)
        _check_amount(job, clones, entry, ended_by_another=_exits(workload.options))
    return [(job.phase, job.start_s) for job, _ in requested]


def _check_echo(job: Job, entry: JobEntry, common: Mapping[str, Any]) -> None:
    """What fio says it was asked must be what we asked."""
    echoed = {**common, **entry["job options"]}
    for name, requested in fio_options.arguments(job.options):
        if name in echoed and name not in PLACES and not fio_options.same(name, requested, str(echoed[name])):
            raise ToolError(
                "fio did not run what was asked",
                where=f"{FILE}: job options.{name}",
                got=repr(echoed[name]),
                allowed=repr(job.options[name]),
            )


def _check_amount(job: Job, clones: int, entry: JobEntry, *, ended_by_another: bool) -> None:
    """A killed fio leaves a whole report with error 0: the work done, or the time spent, must be what was asked."""
    moved, runtime_s = fio_report.moved(entry), fio_report.runtime_s(entry)
    metadata = fio_metadata.is_metadata(job.options)
    if not moved:
        raise ToolError(f"fio {'did nothing' if metadata else 'moved no bytes'}", where=FILE, got="io_bytes 0")
    asked_s = float(job.options.get("runtime") or math.inf)
    requested = fio_options.asked_bytes(job.options, clones)
    steady = entry.get("steadystate")
    attained = isinstance(steady, dict) and steady.get("attained") == 1 and "steadystate" in job.options
    time_based = job.options.get("time_based")
    # What is moved during a ramp is not counted, and another job may end this one: no amount can be expected.
    is_open = ("ramp_time" in job.options and not time_based) or ended_by_another
    if runtime_s >= 0.99 * asked_s or (moved >= requested and not time_based) or attained or is_open:
        return
    size, unit = (int(job.options["bs"]), "files") if metadata else (1, "B")
    amount = f"{requested / size:.0f} {unit}"
    raise ToolError(
        "fio stopped early",
        where=FILE,
        got=f"{moved // size} {unit} in {runtime_s} s",
        allowed=f"{asked_s} s" if time_based else amount + (f" or {asked_s} s" if asked_s < math.inf else ""),
    )
