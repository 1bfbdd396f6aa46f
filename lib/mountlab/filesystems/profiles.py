"""Profiles of files for ageing a file system: how large they are, which are deleted next, how directories hold them.

No ageing tool is packaged for boxes: Geriatrix and Impressions are published as source only. age.sh makes the files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from types import MappingProxyType

from mountlab.core.shell import script_argv
from mountlab.core.state import Profile


@dataclass(frozen=True)
class SizeClass:
    """Files of `lower` to below `upper` bytes, evenly spread, and the weight of the class among all files."""

    lower: int
    upper: int
    weight: int


@dataclass(frozen=True)
class AgeingProfile:
    """Files of one kind of user, with the publications that the figures come from."""

    name: Profile
    source: str
    sizes: tuple[SizeClass, ...]
    young_share: float
    """The youngest share of the files ..."""
    young_weight: float
    """... and the share of deletions that take one of these; the others take any file. 0: all files alike."""
    files_in_directory: int
    depth: int

    @property
    def arguments(self) -> tuple[str, str, str]:
        """SIZES, YOUNG and TREE of age.sh."""
        return (
            " ".join(f"{size.lower}:{size.upper}:{size.weight}" for size in self.sizes),
            f"{self.young_share}:{self.young_weight}",
            f"{self.files_in_directory}:{self.depth}",
        )


def ageing_argv(directory: str, *, fill: float, churn: float, profile: AgeingProfile, seed: int) -> tuple[str, ...]:
    """Return the command that fills and ages the file system below an empty directory (age.sh)."""
    return script_argv("age.sh", directory, f"{fill:g}", f"{churn:g}", str(seed), *profile.arguments)


def _octaves(weights: tuple[int, ...], first: int) -> tuple[SizeClass, ...]:
    """One class below `first` bytes, then one for each doubling."""
    bounds = (0, *(first << power for power in range(len(weights))))
    return tuple(map(SizeClass, bounds[:-1], bounds[1:], weights))


def _lognormal(mean: float, bound: float, below: float) -> tuple[SizeClass, ...]:
    """Classes, four to an octave, of a lognormal distribution with this mean and this share below a bound.

    The share gives ln(bound) = mu + z sigma, the mean gives ln(mean) = mu + sigma^2 / 2: sigma is the smaller root.
    """
    z = NormalDist().inv_cdf(below)
    sigma = z - math.sqrt(z * z - 2 * math.log(bound / mean))
    logs = NormalDist(math.log(mean) - sigma * sigma / 2, sigma)
    bounds = [round(2 ** (power / 4)) for power in range(18 * 4, 28 * 4 + 1)]
    shares = [logs.cdf(math.log(high)) - logs.cdf(math.log(low)) for low, high in pairwise(bounds)]
    classes = map(SizeClass, bounds[:-1], bounds[1:], (round(1_000_000 * share) for share in shares))
    return tuple(size for size in classes if size.weight)


DEVELOPER = AgeingProfile(
    name="developer",
    source=(
        "sizes and ages on 857 desktops of a software company: Meyer and Bolosky, FAST 2011, as tabulated with"
        " Geriatrix (Kadekodi et al., ATC 2018); deletions fitted to the ages (a ratio of 3.7 of the age that 83 % of"
        " the files have not reached to the median); 10 files in a directory: Agrawal et al., FAST 2009 after FAST 2007"
    ),
    # Tabulated are upper ends: only so is the median the 4 KiB of the paper. Files of 1 and 2 bytes are one class.
    sizes=_octaves(
        (
            100, 60, 30, 30, 100, 100, 170, 220, 400, 680, 1180, 1230, 1150, 1020, 900, 700, 680, 440, 300, 230, 175,
            130, 100, 60, 40, 20, 10, 10,
        ),
        first=1,
    ),
    young_share=0.33,
    young_weight=0.9,
    files_in_directory=10,
    depth=7,
)  # fmt: skip

MAIL = AgeingProfile(
    name="mail",
    source=(
        "sizes of messages, one a file as in a Maildir: a measured mail server (freebsd-net, October 2002), as"
        " tabulated by Buchner, Modelling realistic email traffic, 2009; deletions and directory as in Postmark"
        " (Katcher, Network Appliance TR3022, 1997): any file, 500 in a directory"
    ),
    sizes=(
        SizeClass(900, 2048, 2353),
        *_octaves((0, 2564, 1843, 1198, 578, 511, 283, 244, 150, 125, 147, 4), first=2048)[1:],
    ),
    young_share=0.0,
    young_weight=0.0,
    files_in_directory=500,
    depth=1,
)

MEDIA = AgeingProfile(
    name="media",
    source=(
        "sizes of videos: a mean of 8.4 MB, 98.8 % below 30 MB (Cheng, Dale and Liu, IWQoS 2008), lognormal (Ahsan,"
        " Singh and Ott, arXiv:1408.5777, 2014); deletions as in Postmark (Katcher, 1997): any file; directories are a"
        " choice"
    ),
    sizes=_lognormal(mean=8.4e6, bound=30e6, below=0.988),
    young_share=0.0,
    young_weight=0.0,
    files_in_directory=10,
    depth=3,
)

PROFILES: Mapping[Profile, AgeingProfile] = MappingProxyType({each.name: each for each in (DEVELOPER, MAIL, MEDIA)})
"""By the name that a state of a sweep gives."""
