"""What the words of Mountlab mean, and every metric, column and file of a run, a sentence each: for the reference in
docs/, and for a reader who meets one of these names in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mountlab.core.metrics import METRICS

_PARTS = {
    "mean": "the mean over all I/Os of a trial",
    "p50": "the median over all I/Os of a trial",
    **{f"p{text.replace('.', '_')}": f"{text} % of a trial's I/Os took less" for text in ("95", "99", "99.9")},
}
_WHOLE, _ANSWER = "from asking to being answered", "from the kernel's taking it to its answer"
_SIDES = {"read": "a read", "write": "a write"}


def _latencies() -> dict[str, str]:
    """Return every latency in the names of `METRICS`, with what it spans and how its I/Os are summed up."""
    found: dict[str, str] = {}
    for part, counts in _PARTS.items():
        spans = {
            "": _WHOLE if part == "mean" else _ANSWER,
            "submission_": "until the kernel has taken it",
            "completion_": _ANSWER,
            "total_": f"{_WHOLE}, where fio's `lat_percentiles` asks for it",
        }
        for side, noun in _SIDES.items():
            found |= {
                f"{side}_{kind}latency_{part}": f"How long {noun} takes, {span}: {counts}."
                for kind, span in spans.items()
            }
        calls = counts.replace("I/Os", "calls")
        found[f"sync_latency_{part}"] = f"How long an fsync or fdatasync takes: {calls}."
        found[f"operation_latency_{part}"] = f"How long an operation takes, {_ANSWER}: {counts}."
    return {name: text for name, text in found.items() if name in METRICS}


METRIC_MEANINGS: Mapping[str, str] = {
    "read_bandwidth": "Bytes read by time.",
    "write_bandwidth": "Bytes written by time, the flush included where the workload asks for one.",
    "bandwidth": "Bytes read and written by time, where the tool does not tell the two apart.",
    "read_iops": "Reads by time.",
    "write_iops": "Writes by time.",
    "read_ios": "Reads whose latency was counted: percentiles are of so many; the label names a job or a client.",
    "write_ios": "Writes whose latency was counted.",
    "sync_ios": "Calls of fsync and fdatasync whose latency was counted.",
    **_latencies(),
    "user_cpu": "Time of a processor in the tool itself, as a share of the trial; 1 is one processor the whole time.",
    "system_cpu": "Time of a processor in the kernel for the tool, as a share of the trial.",
    "context_switches": "How often the kernel put another task in the tool's place.",
    "major_faults": "Pages that had to be read before they could be used.",
    "minor_faults": "Pages that were mapped without being read.",
    "disk_utilization": "Share of the trial in which the disk had something to do; the label names the disk.",
    "capacity": "The highest rate of arriving requests at which the objective of a search holds.",
    "asked_rate": "Requests by time that an open-loop trial was to have.",
    "arrival_rate": "Requests by time that were due in the counted time and were issued.",
    "completion_rate": "Requests by time that were completed in the counted time.",
    "largest_lateness": "The longest time from when a request was due until it was issued, as far as that is known.",
    "objective_used": "The largest ratio of a percentile to its limit; missing where the schedule was not kept closely "
    "enough to know it.",
    "file_rate": "Files handled by time; the label names the operation, or an iteration.",
    "operation_rate": "Operations by time; the label names the operation; of fio, reads and writes together.",
    "sync_rate": "Flushes by time; the label names the method.",
    "operation_latency": "How long an operation takes, on average; the label names it.",
    "operation_latency_min": "How long the quickest one took.",
    "operation_latency_max": "How long the slowest one took.",
    "operations": "How many were done; the label names the operation.",
    "blocks": "How many blocks of 4 KiB of a file are not as they should be; the label says how, and when.",
    "app_overhead": "Time that the tool spent on itself, and not in calls of the file system.",
    "space_used": "Used share of the file system at the end.",
    "elapsed": "How long the measured part took, by the tool's own clock; of `tool: command` with `from: clock`, "
    "by the box's.",
    "bytes": "Bytes moved; the label says whether read or written.",
    "layers_time": "How long the layers below the file system took to be made, a first synchronisation included, by "
    "the box's clock. One figure a mount.",
    "mkfs_time": "How long mkfs took, by the box's clock. One figure a mount.",
    "mount_time": "How long the mount took, by the box's clock. One figure a mount.",
}
"""Every metric of `metrics.METRICS`."""

METRIC_SOURCES: Sequence[tuple[str, str, str]] = (
    ("db_bench", "operation_rate", "ops/sec, all threads together"),
    ("db_bench", "operation_latency", "micros/op: the time of a thread by its operations"),
    ("db_bench", "operation_latency_p*", "Percentiles of its histogram, whose bins grow by half"),
    ("db_bench", "bandwidth", "ops/sec × bytes of a key and its value, which its MB/s (MiB/s) must agree with"),
    ("db_bench", "operations", "operations"),
    ("db_bench", "elapsed", "seconds; of one thread operations × micros/op"),
    ("dbench", "bandwidth", "Throughput: bytes read and written by time, up to the last whole second"),
    ("dbench", "operation_latency_max", "max_latency; of each call (label) MaxLat"),
    ("dbench", "operation_latency", "AvgLat of each call (label), in whole µs"),
    ("dbench", "operations", "Count of each call (label)"),
    ("dd", "*bandwidth", "bytes / seconds of its summary, computed again: dd prints two digits"),
    ("dd", "elapsed", "seconds of its summary"),
    ("dd", "bytes", "copied bytes; label read or write"),
    ("degrade", "*bandwidth", "bytes of a file by the box's clock; label `healthy` or `degraded`; of `rebuild` "
     "what was written to the member that came back, by the time"),
    ("degrade", "operation_latency", "`rebuild`: from the command that gives the member back until all is whole"),
    ("degrade", "elapsed", "reads, overwrites and rebuild together"),
    ("degrade", "bytes", "bytes of both files; label read or write"),
    ("fio", "operation*", "`clat_ns` of those that handle files; in logs with `unified_rw_reporting` `mixed`"),
    ("fio", "bandwidth", "in logs with `unified_rw_reporting`: `mixed.bw_bytes`"),
    ("fio", "*_bandwidth", "`bw_bytes`"),
    ("fio", "*_iops", "`iops`"),
    ("fio", "*_ios", "`N` of the latencies"),
    ("fio", "capacity", "the trials of a search together ([capacity](../../METHODS.md#capacity-at-an-objective))"),
    ("fio", "file_rate", "`iops` of `filecreate`, `filestat` and `filedelete`"),
    ("fio", "*_rate", "of a search: `rate_iops` times `numjobs`, and what its log of every request shows"),
    ("fio", "largest_lateness", "of a search: its log of every request"),
    ("fio", "objective_used", "of a search: its log of every request; latency counts from when a request was due"),
    ("fio", "*_submission_latency_*", "`slat_ns`"),
    ("fio", "*_completion_latency_mean", "`clat_ns.mean`"),
    ("fio", "*_total_latency_*", "bins of `lat_ns`, with `lat_percentiles: 1`"),
    ("fio", "sync_latency_*", "`sync.lat_ns`: each fsync or fdatasync"),
    ("fio", "*_latency_mean", "`lat_ns.mean`: submission and completion; several jobs weighted by their I/Os"),
    ("fio", "*_latency_p*", "completion: interpolated in the bins of `clat_ns` (json+), of several jobs in the merged "
     "bins; without bins `clat_ns.percentile`"),
    ("fio", "*_cpu", "`usr_cpu`, `sys_cpu`: averaged over the clones of a job"),
    ("fio", "context_switches", "`ctx`"),
    ("fio", "*_faults", "`majf`, `minf`"),
    ("fio", "disk_utilization", "`disk_util.util`, labelled by disk where there are several"),
    ("fio", "elapsed", "run time, in the whole milliseconds that fio counts"),
    ("fio", "bytes", "`io_bytes`; label read or write"),
    ("filebench", "operation_rate", "its summary; by operation (label) count / elapsed"),
    ("filebench", "operation_latency*", "ms/op, in whole µs"),
    ("filebench", "operations", "its counts"),
    ("filebench", "bandwidth", "its mb/s, which are MiB/s"),
    ("filebench", "elapsed", "count / rate of its summary"),
    ("filebench", "bytes", "bandwidth × elapsed of what reads, and of what writes"),
    ("fs_mark", "file_rate", "all files / all time; by iteration (label) as printed"),
    ("fs_mark", "operation_latency*", "each system call (`-v`), in whole µs"),
    ("fs_mark", "elapsed", "files / Files/sec, summed"),
    ("fs_mark", "bytes", "files × size"),
    ("fs_mark", "app_overhead", "App Overhead, summed"),
    ("fs_mark", "space_used", "FSUse% of the last row"),
    ("ioping", "operation_latency*", "average, least and most of its raw statistics, without its first request"),
    ("ioping", "operations", "requests in its statistics"),
    ("ioping", "elapsed", "total running time, with the first request and pauses"),
    ("ioping", "bytes", "all requests × their size; label read or write"),
    ("large-directory", "file_rate", "names / time of each operation (label)"),
    ("large-directory", "elapsed", "the box's clock around each operation (label); their sum"),
    ("tree", "file_rate", "files / time of each operation (label)"),
    ("tree", "elapsed", "the box's clock around each operation (label); their sum"),
    ("pg_test_fsync", "sync_rate", "operations a second of each method (label)"),
    ("pg_test_fsync", "operation_latency", "1 / `sync_rate`"),
    ("pgbench", "operation_rate", "tps, without the time to connect"),
    ("pgbench", "operation_latency_*", "the log of pgbench, a line for each transaction"),
    ("pgbench", "operation_latency", "latency average"),
    ("pgbench", "operations", "number of transactions actually processed"),
    ("pgbench", "sync_rate", "wal_sync of pg_stat_wal (PostgreSQL 14 and later) / elapsed"),
    ("pgbench", "elapsed", "transactions / tps"),
    ("reflink", "operation_latency*", "`clone`, `delete`: the box's clock, by clone; overwrites: dd with its fsync"),
    ("reflink", "write_bandwidth", "bytes / seconds of dd; label the first or second overwrite"),
    ("reflink", "elapsed", "all clones and deletions by the box's clock, overwrites by dd's"),
    ("reflink", "bytes", "overwritten bytes of both passes"),
    ("rsync", "file_rate", "all files of the tree / time of each copy (label)"),
    ("rsync", "elapsed", "the box's clock around each copy (label); their sum"),
    ("send", "operation_latency", "the box's clock around a copy; label full or incremental"),
    ("send", "bandwidth", "bytes of the files that are copied / that time"),
    ("send", "elapsed", "both copies"),
    ("scrub", "blocks", "counted by the tool: `planted`, `unrepaired` on the device, `wrong` or `refused` in the file"),
    ("scrub", "operations", "`found`: what the system counts; `healed` by reads, `repaired`: planted blocks that are "
     "right on the device after the first read, and at the end"),
    ("scrub", "operation_latency", "`check`, and of md `repair`, by the box's clock"),
    ("scrub", "bandwidth", "what was read from the damaged device, by the time of the check"),
    ("scrub", "elapsed", "the first read of the file, and the scrub"),
    ("send", "bytes", "bytes of the copied files; label read or write"),
    ("snapshot", "operation_latency*", "the box's clock; of `create` and `delete` by snapshot"),
    ("sqlite", "operation_rate", "commits (insert, update) or rows (select) / time of each operation (label)"),
    ("sqlite", "elapsed", "the box's clock around each operation (label); their sum"),
    ("snapshot", "elapsed", "`create` of all, `list` and `space back`, which contains `delete`"),
    ("sysbench", "*_iops", "reads/s and writes/s, which count the flush at the end as time"),
    ("sysbench", "sync_rate", "fsyncs/s"),
    ("sysbench", "*_bandwidth", "these rates × bytes of a request"),
    ("sysbench", "operation_latency", "sum / total number of events, flushes among them"),
    ("sysbench", "operation_latency_*", "its latencies; a percentile is the end of a bin of 1.8 %"),
    ("sysbench", "operations", "total number of events"),
    ("sysbench", "elapsed", "total time"),
    ("sysbench", "bytes", "requests × their size, requests from the rates and the number of events"),
)  # fmt: skip
"""Tool, metric or pattern of metrics, and the figure of its output: the first of a tool that matches holds."""

COLUMN_MEANINGS: Mapping[str, str] = {
    "run_id": "The run: time, sweep and box.",
    "box": "The name of the box file.",
    "trial_id": "The trial: its number in the order of the plan.",
    "block": "Which block it ran in; those of the warm-up are numbered 0 and below.",
    "warmup": "Whether it belongs to the warm-up, and so does not count.",
    "cell": "The cell: file system / workload factor=level.",
    "filesystem": "The name in the sweep.",
    "workload": "The name in the sweep.",
    "tool": "The tool that ran.",
    "factors": "Each swept option and its level; in files for spreadsheets a column each.",
    "metric": "One of the metrics.",
    "label": "Tells rows of one metric apart; empty where there is one only.",
    "unit": "The base unit: B/s, 1/s, s, B or 1.",
    "step": "To what the value is rounded: by its printed digits, its bin or its clock; 0 where unknown.",
    "value": "The figure, in base units.",
    "n": "How many trials the figure rests on; of a comparison how many blocks hold both sides.",
    "condition": "Of what a state or a neighbour changes: the factor, `state` or `beside`.",
    "reference": "Its level that the others are compared with: `fresh`, `none`, or else the first.",
    "flips": "Whether the ranking flips: one of both ratios is faster and the other slower.",
    "censored": "How many of the n ran into their time limit, and count as worse than all others; of a comparison the "
    "blocks in which a side did.",
    "mean": "The mean over the trials, or the other figure that `method` names.",
    "low": "The lower end of the interval; empty for n = 1.",
    "high": "The upper end of the interval; empty for n = 1.",
    "sd": "The standard deviation of the trials, with n - 1.",
    "cv": "The coefficient of variation: sd by mean.",
    "level": "What the interval covers, as a share.",
    "method": "How figure and interval were made.",
    "stopped": "With a stopping rule: why the cell has no more trials.",
    "baseline": "The file system that it is compared with.",
    "candidate": "The file system that is compared.",
    "ratio": "Candidate by baseline: the mean of the logarithms, transformed back.",
    "p": "Of this comparison alone: the chance of such a ratio, or one farther from 1, where nothing differs.",
    "p_adjusted": "The same, corrected over all comparisons of the sweep.",
    "verdict": "faster, slower, same or undecided, by the corrected tests; not usable where an error is about a side.",
    "low_all": "The lower end of the interval that holds together with those of all other comparisons.",
    "high_all": "The upper end of it.",
    "low_same": "Of the verdict `same`: the lower end of the interval that its two one-sided tests use.",
    "high_same": "The upper end of it.",
    "level_same": "The level of that interval: 90 % where the comparison stands alone at 95 %.",
    "better": "Of a metric that the sweep defines: `higher` or `lower`. The column is there where a sweep defines one.",
    "needed": "Blocks that would decide an undecided comparison with a chance of 80 %; empty where these are too many.",
    "reduce": "Where no sensible number of blocks would decide: the factor by which the noise must fall.",
    "noise": "There: what most of it comes from (candidate, baseline, both, one block, few blocks, step, drift, two "
    "modes, rounding, boxes, unknown).",
    "scope": "What the caveat is about: run, filesystem, cell or trial.",
    "subject": "Which of them; empty for the run.",
    "code": "Which caveat.",
    "severity": "note, warning or error.",
    "message": "What was seen, why it matters, what to do.",
    "metrics": "How the names of the metrics begin that it weakens; empty for all of the cell.",
    "seq": "Its place in the order in which trials ran.",
    "mount": "The directory of raw/ with the evidence of the mount that it ran on.",
    "status": "ok, timeout (it ran into its time limit), failed, invalid, skipped or excluded.",
    "reason": "Why it is not ok; empty where it is.",
    "attempts": "How often it was tried: the last time counts.",
    "set_aside": "Whether its cell had no more trials because of it.",
    "exhausted": "Whether it failed for a reason that may pass, in each of its attempts.",
    "seed": "What the tool drew random places, sizes and data from; empty where it was given no seed.",
    "started_at": "When the first effect on the box began, in UTC.",
    "elapsed_s": "Seconds from the first to the last effect on the box, preparation and counters included.",
    "operation": "What the tool asked of the kernel: read, write, sync, open, unlink; empty for the whole trial.",
    "statistic": "`mean`, or `p99`: of the operations at the 99th percentile.",
    "layer": "Where the time went: processor, run_queue, lock, freeze, reclaim, writeback, journal, queue, device, "
    "flush, tool, unattributed.",
    "through": "On whose behalf the operation waited: own, journal, checkpoint or writeback.",
    "seconds": "How long, in seconds. The sum over layer and through is the latency of the operation.",
    "quantity": "Which ratio of work: device I/Os, bytes, flushes, commits, switches or processor time per operation; "
    "or which share of a sync: behind the journal, or there beside data of others.",
    "operations": "How many of them the trace holds.",
    "events": "How many events the trace holds, of all operations together.",
    "lost_events": "How many events the kernel had no room for.",
    "window_s": "How long was traced, in seconds.",
    "seen": "Share of that time in which the system calls of the tool were recorded: less than 1 where they are many.",
    "cut": "Why the record ended before the tool did, after window_s; empty where it did not.",
    "traced_mean": "The mean latency by the trace, in seconds.",
    "tool_mean": "The mean latency by the tool itself; empty where it does not say.",
    "traced_in_flight": "How many operations were under way at a time, by the trace.",
    "tool_in_flight": "The same by the tool itself, latency times rate (Little's law); empty where it does not say.",
    "withheld": "Why no split of it is shown; empty where one is.",
    "rank": "1: the slowest of its trial.",
    "began_s": "When the operation began, in seconds since the trace did.",
    "begin_s": "When the piece began, in seconds since the operation did.",
    "stack": "Thread and functions of the kernel, outermost first.",
    "sleeps": "How often threads slept in the stack while operations were under way.",
    "samples": "How often the stack was met on a processor.",
    "raw": "SHA-256 over the names and hashes of the trial's raw output.",
    "chain": "SHA-256 of this line and of the hash in the line before: a later change is noticed.",
}
"""Every column of the files of a run."""

RUN_FILES: Mapping[str, str] = {
    "run.json": "The parameters as resolved, the facts of the box, versions, git commit, seed, order, status, "
    "and of an extended run its `extensions`.",
    "sweep.yml": "The same parameters as a sweep file, from which the run can be repeated.",
    "trials.jsonl": "The journal: one line a trial, synced to disk as soon as it ends. The truth about what ran.",
    "raw/c-NAME/": "The same of a file system made once without what the sweep asks of it, to tell what that changes.",
    "raw/mNNN-NAME/": "One directory a mount: its commands (`commands.json`), their output, what the kernel shows.",
    "raw/tNNNN/": "One directory a trial: the measured command (`argv`), those before it (`commands.json`), output, "
    "the kernel's counters before and after. Never changed.",
    "exclude.yml": "Written by `mountlab exclude`, or by you: trials that do not count, each with the reason.",
    "records.parquet": "What was read from the raw output of each trial: figures, histograms, counters, logs. Derived. "
    "A row is used while its line of the journal and its raw output are those that it was made from.",
    "measurements.parquet": "Every figure of every trial. Derived. `mountlab history` and `catalog` use it where its "
    "stamp holds: hashes of `run.json`, `trials.jsonl` and `exclude.yml`, and the number of the parsers. Otherwise "
    "they read the raw output.",
    "estimates.csv": "Every cell and metric with its interval. Derived.",
    "comparisons.csv": "Every ratio to the baseline with interval and verdict. Derived.",
    "latency_comparisons.csv": "The same of latency percentiles that the answer is not about: a family of their own. "
    "Derived.",
    "condition_changes.csv": "What each file system keeps of a figure in another state or beside a neighbour (a row "
    "with the same `candidate` and `baseline`), and how each ratio to the baseline changes. Only where there are "
    "states or neighbours. Derived.",
    "caveats.csv": "Every reason to doubt a figure. Derived.",
    "why_layers.parquet": "The parts of the latency of each operation, of a run with diagnostic trials. Derived, as "
    "are the next four.",
    "why_work.parquet": "The work that was done for the operations: device I/Os, flushes, commits.",
    "why_traces.parquet": "What each trace holds and has lost, and whether its split is withheld.",
    "why_slowest.parquet": "The slowest operations of each diagnostic trial, piece by piece.",
    "why_stacks.parquet": "Where the processors were, as stacks.",
    "why_sleeps.parquet": "Where threads slept while operations were under way, as stacks.",
    "program.yml": "What each program does to its files, by its system calls: the figures of each workload and file "
    "system. Only where they were recorded (`design.profile`). Derived, as are the next two.",
    "program-fio.yml": "A sweep of fio that does about the same, to begin with and not validated.",
    "program.json": "The same profiles with what the report draws.",
    "derived.json": "Checksums of the derived files, and of what they were made from.",
    "notebooks/": "The notebook that made the report, executed.",
    "report.html": "The report: one page that opens anywhere.",
}
"""What a directory below results/ holds."""

TERMS: Mapping[str, str] = {
    "baseline": "The file system that all others are compared with. A ratio above 1 is a candidate that has more of "
    "the metric than the baseline.",
    "batch": "Many runs, and the reports on them: sweeps, boxes and overrides in one file of `params/batches`.",
    "block": "One pass over every cell, in an order that is drawn again for each block. Sides are compared inside a "
    "block, so that a slow drift of the machine falls on both.",
    "box": "The machine under test, reached over SSH. A file of `params/boxes` names it.",
    "break-even": "Of one run beside one: by how much runs may differ by themselves with the outcome still the same.",
    "bundle": "A run made ready for others: it stands alone, and names of machines and people are replaced in it.",
    "candidate": "A file system that is compared with the baseline.",
    "catalog": "All runs as one table: for the history of a cell, and for SQL.",
    "caveat": "A reason to doubt a figure, computed from the kernel's counters, the trials and the facts of the box: "
    "an error, a warning or a note.",
    "cell": "One file system under one workload, with one level of each factor: what is measured again and again.",
    "claim": "The command that gives a scratch device to Mountlab. It reads the whole device first.",
    "cold, warm": "State of the page cache before a trial: emptied, or filled with the file.",
    "comparison": "The ratio of two cells that differ in the file system only, with interval and verdict.",
    "confidence interval": "See interval.",
    "coverage": "How often intervals of a kind contain the truth, counted in simulation. Of 95 % intervals 95 of 100 "
    "should.",
    "cv": "Coefficient of variation: the standard deviation of the trials by their mean.",
    "decided": "A comparison whose verdict is faster, slower or same.",
    "design": "How often and in which order a sweep is measured: `repeats` or `until`, seed, warm-up.",
    "direct I/O": "Reads and writes past the page cache (`O_DIRECT`).",
    "equivalence": "That two sides differ by less than the smallest effect that matters. It must be shown, by two one- "
    "sided tests; the absence of a difference is not enough.",
    "estimate": "The mean of the trials of a cell, or another figure such as the median, with its interval.",
    "evidence": "What the kernel reports of a file system while it is mounted, kept with the run.",
    "expectation": "What you expect, written into the sweep before you see a figure. The report says which parts the "
    "result confirms, contradicts or leaves open.",
    "factor, level": "A swept option and one of its values. A list in a sweep file is a factor.",
    "faster, slower": "Verdicts: a difference is shown. The interval for all comparisons together lies on one side of "
    "1.",
    "flush": "To make the device keep what was written: `fsync`, `fdatasync`, `sync`. Without one a write measures "
    "memory.",
    "gate": "The comparison of a run with earlier ones that ends with an exit code: passes, fails, cannot tell.",
    "helper": "A program of root's on the box that does for an ordinary user what mounting needs, and nothing else.",
    "ignored option": "A mount option that the kernel took and did nothing with.",
    "interval": "The range in which the true figure lies, with a stated chance, by default 95 %. It is wider with "
    "fewer and noisier trials.",
    "loop device": "A file that the kernel shows as a block device. File systems with `image` lie on one.",
    "mount root": "The directory of the box below which Mountlab makes and mounts everything.",
    "n": "The number of trials that a figure rests on. I/Os are never counted as n.",
    "not usable": "The verdict of a comparison with an error about one of its cells: no other one is given.",
    "page cache": "Memory in which the kernel keeps parts of files. A read that it answers never reaches the disk.",
    "paired": "Compared inside the same block: what the two sides have in common then cancels.",
    "percentile": "p99 is the latency that 99 % of the I/Os of a trial stay below. Its interval comes from trials.",
    "pilot": "A run that exists already, from whose spread the plan says what a design can show.",
    "plan": "What a run would do: every command, device and directory, and how long. It changes nothing.",
    "preset": "A named set of changes in a sweep file, such as `small`.",
    "ratio": "Candidate by baseline, as the mean of the logarithms over blocks, transformed back.",
    "raw output": "What tools and kernel said, kept below `raw/` and never changed. Every figure can be made from it "
    "again.",
    "run": "One execution of a sweep on one box: one directory below `results/`.",
    "run spread": "By how much the level of a run differs by itself: the standard deviation between runs of the same.",
    "same": "A verdict: equivalence is shown.",
    "scratch device": "A whole block device that may be formatted: named by a stable id in the box file, and claimed.",
    "seed": "The number from which the order of trials is drawn. With the same seed it is the same order.",
    "smallest effect": "The smallest difference that matters to you: 2 % where nothing is said.",
    "status": "What became of a trial: `ok`, `timeout`, `failed`, `invalid`, `skipped` or `excluded`.",
    "stopping rule": "`until`: blocks go on until every interval is narrow enough. Intervals are corrected for the "
    "looks.",
    "sweep": "One question: file systems, workloads and a design, in one YAML file of `params/sweeps`.",
    "tool": "A benchmark program: fio, dd, filebench, fs_mark, pg_test_fsync, tree, large-directory, or any command.",
    "trial": "One execution of one cell in one block.",
    "undecided": "A verdict: neither a difference nor equivalence is shown. It does not mean that both are the same.",
    "verdict": "What a comparison shows: faster, slower, same or undecided. The chance of a wrong one is held for all "
    "comparisons of a run together.",
    "warm-up": "A block that is run first, kept and not counted.",
    "workload": "A tool with its options.",
}
"""Every word that reports, plans and pages use in a sense of their own, in the order of the alphabet."""
