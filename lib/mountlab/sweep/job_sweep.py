"""The sweep file that a job file of fio becomes."""

from __future__ import annotations

import json
import math
import textwrap

from mountlab.core.units import MIB

_TEXT = """\
# From a job file of fio, {file}. The comments in `jobs` say what is not as it was there.
#
#     mountlab sweep check {name}     is the file valid, and what would be measured; needs no box
#     mountlab plan {name}            every command, and how long it takes; changes nothing
#     mountlab run {name}             measure, then write the report

# The title of the report.
question: {question}

# Where it runs: a name of params/boxes (`mountlab box list`). `--box` takes another one.
box: local

# The file system that the others are compared with.
baseline: ordered

# What is measured: change these. The page File systems has all types. The jobs need {space} MiB on each.
filesystems:
  ordered: {{type: ext4, image: {image}MiB, options: [data=ordered]}}   # on a loop image that Mountlab makes
  writeback: {{type: ext4, image: {image}MiB, options: [data=writeback]}}
  # xfs: {{type: xfs, image: {image}MiB}}
  # home: {{type: dir, path: /home/me}}                     # a directory that exists; needs no root

# What is run on each. The page Tools of the documentation has the options beside `jobs`.
workloads:
  jobs:
    tool: fio
    jobs: |
{jobs}
# How often. A block holds each cell (a workload on a file system) once, in random order.
design:
  repeats: 5   # blocks
  warmup: 1    # blocks before these, which are not counted
"""


def job_sweep(name: str, file: str, jobs: str, space_bytes: int) -> str:
    """Return the text of a small valid sweep with the jobs. `space_bytes`: of their files on each file system."""
    space = math.ceil(space_bytes / MIB)
    question = json.dumps(f"Does data=writeback pay for the jobs of {file}?", ensure_ascii=False)
    indented = textwrap.indent(jobs, " " * 6)
    # A quarter more, for what the file system itself keeps, and never less than a small one.
    image = max(256, 64 * math.ceil((space * 1.25 + 128) / 64))
    return _TEXT.format(name=name, file=file, question=question, jobs=indented, space=space, image=image)
