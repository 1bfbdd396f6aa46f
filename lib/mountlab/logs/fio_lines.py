"""The lines of fio's human output, of versions 1 to 3."""

from __future__ import annotations

import re
from collections.abc import Sequence

HEADER = re.compile(r"^\s*+(?:\S.*: \(g=\d+\): rw=|hostname=.*, be=\d)")
VERSION = re.compile(r"^\s*+fio[- ]\d+\.\d\S*\s*$")
STARTING = re.compile(r"^\s*+(?:<[^<>]+> )?Starting (?P<number>\d{1,9}) (?:process|thread)")
ANSWER = re.compile(r"^hostname=.*, be=\d")
JOB = re.compile(
    r"^\s*+(?P<name>.*): \(groupid=(?P<group>\d{1,9}), jobs=(?P<clones>\d{1,9})\): "
    r"err= ?(?P<error>-?\d{1,9})(?P<why>.*): pid=\d+"
)
NUMBER = r"\d{1,20}(?:\.\d{1,6})?"
COUNT = rf"{NUMBER} ?[kKMGTPE]?"
"""A count as fio's num2str prints it; before 2.1 with a blank where there is no unit."""
AMOUNT = rf"{NUMBER} ?[kKMGTPE]?i?(?:B|bit)?"
"""Bytes, or bits (unit_base=1). fio forgets the unit where it adds up its clients: 'BW=3808Mi (3993M)'."""
TIME = r"(?P<unit>nsec|usec|msec|sec)"
OLD_SIDE = re.compile(
    rf"^\s*+(?P<side>read|write|trim|mixed) ?: io=(?P<moved>{AMOUNT}), bw=(?P<rate>{AMOUNT})/s, "
    rf"iops=(?P<iops>{COUNT}), runt= *(?P<ms>\d{{1,12}})msec$"
)
SIDE = re.compile(
    rf"^\s*+(?P<side>read|write|trim|mixed): IOPS=(?P<iops>{COUNT}), BW=(?P<rate>{AMOUNT})(?:/s)? "
    rf"\((?P<again>{AMOUNT})(?:/s)?\)\((?P<moved>{AMOUNT})/(?P<ms>\d{{1,12}})msec\)(?:; .*)?$"
)
LOOSE = re.compile(r"^\s*+(?P<side>read|write|mixed) ?: *(?:IOPS=|io=) *\d")
"""Results, in the notes of people often all that is left of a run."""
LOOSE_TOTAL = re.compile(r"^\s*+(?:READ|WRITE|MIXED): *(?:bw=|io=) *\d")
DETAIL = re.compile(r"^\s*+(?:$|(?:slat|clat|lat|sync|bw) |iops +:|\||\d{1,3}\.\d+th=)")
"""What stands between the reads and the writes of one job."""
LOOKS_LIKE_A_SIDE = re.compile(r"^\s*+(read|write|trim|mixed) ?: *(?:IOPS|io)=")
LATENCY = re.compile(
    rf"^\s*+(?P<kind>slat|clat|lat|sync) \({TIME}\): min= *{COUNT}, max= *{COUNT}, "
    rf"avg= *(?P<mean>{NUMBER}|-?nan), (?:st)?dev= *(?:{NUMBER}|-?nan)$"
)
POINTS = re.compile(rf"^\s*+(?P<kind>clat|lat|slat|sync) percentiles \({TIME}\):$")
POINT = re.compile(r"(\d{1,3}\.\d+)th=\[ *(\d{1,12})\]")
POINT_LINE = re.compile(r"^\s*+\|?(?:\s*+\d{1,3}\.\d+th=\[ *\d{1,12}\],?)+$")
LOOKS_LIKE_POINTS = re.compile(r"^\s*+(?:\||\d{1,3}\.\d+th=)")
CPU = re.compile(
    r"^\s*cpu +: usr=(?P<user>\d{1,6}\.\d+|-?nan)%, sys=(?P<system>\d{1,6}\.\d+|-?nan)%, ctx=(?P<switches>\d{1,15})"
    r"(?:, majf=(?P<major>\d{1,15}), minf=(?P<minor>\d{1,15}))?$"
)
ISSUED = re.compile(
    r"^\s*issued(?: rwts?| r/w(?:/d)?)? *: total=(?:r=)?(?P<read>\d{1,15})[,/](?:w=)?(?P<write>\d{1,15})"
    r"(?:[,/](?:d=)?\d{1,15})?(?:,(?P<sync>\d{1,15}))?,? short=[\d,/rwd=]*(?:,? drop\w*=[\d,/rwd=]*)?$"
)
LOOKS_LIKE_FIGURES = re.compile(
    r"^\s*+(?:(?:slat|clat|lat|sync) *\(\w*\) *: *min\b|(?:slat|clat|lat|sync) percentiles \("
    r"|cpu +: *usr=|issued\b.*: *total=)"
)
"""How lines of figures begin. `lat (usec) : 2=0.01%` and the latencies of a priority are none: they are shares."""
STATUS = re.compile(r"^\s*Run status group (\d+) \(all jobs\):$")
OLD_TOTAL = re.compile(
    rf"^\s*+(?P<side>READ|WRITE|TRIM|MIXED): io=(?P<moved>{AMOUNT}), aggrb=(?P<rate>{AMOUNT})/s, "
    rf"minb={AMOUNT}/s, maxb={AMOUNT}/s, mint=\d+msec, maxt=(?P<ms>\d{{1,12}})msec$"
)
TOTAL = re.compile(
    rf"^\s*+(?P<side>READ|WRITE|TRIM|MIXED): bw=(?P<rate>{AMOUNT})/s \((?P<again>{AMOUNT})/s\), \S+ \(\S+\), "
    rf"io=(?P<moved>{AMOUNT}) \((?P<moved_again>{AMOUNT})\), run= *\d+-(?P<ms>\d{{1,12}})msec$"
)
LOOKS_LIKE_A_TOTAL = re.compile(r"^\s*+(READ|WRITE|TRIM|MIXED): *(?:bw|io)=")
CLIENT = re.compile(r"^<([^<>]+)> ")


def sums_again(lines: Sequence[str]) -> set[int]:
    """Return the lines (from 0) at which sums begin that are of another run than those above them: above all jobs, and
    of a group and a direction that was given."""
    begins: set[int] = set()
    given: set[tuple[str, str]] = set()
    group, begin = "0", None
    for number, line in enumerate(lines):
        if status := STATUS.match(line.rstrip()):
            group, begin = status[1], number
        elif total := LOOKS_LIKE_A_TOTAL.match(line):
            sums = group, total[1]
            if sums in given:
                begins.add(number if begin is None else begin)
                given = set()
            given.add(sums)
            begin = None
        elif JOB.match(line) or LOOSE.match(line) or HEADER.match(line):
            break
    return begins
