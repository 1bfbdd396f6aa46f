"""Profiles of files for ageing: what their sources publish, worked out from the tables that age.sh gets."""

from __future__ import annotations

from itertools import pairwise
from statistics import NormalDist
from typing import get_args

import pytest
from mountlab.core.state import Profile
from mountlab.filesystems.profiles import DEVELOPER, MAIL, MEDIA, PROFILES, AgeingProfile, ageing_argv

EVERY = pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))


def share_below(profile: AgeingProfile, size: float) -> float:
    """Return the share of files below a size, from classes that are evenly spread."""
    total = sum(each.weight for each in profile.sizes)
    within = (min(1.0, max(0.0, (size - each.lower) / (each.upper - each.lower))) for each in profile.sizes)
    return sum(each.weight * share for each, share in zip(profile.sizes, within, strict=True)) / total


@EVERY
def test_classes_follow_one_another_and_have_files(profile: AgeingProfile) -> None:
    for size, following in pairwise(profile.sizes):
        assert size.upper == following.lower
    assert all(0 <= size.lower < size.upper and size.weight > 0 for size in profile.sizes)
    assert profile.source


def test_the_developer_has_the_published_median_of_4_kib() -> None:
    """Meyer and Bolosky, FAST 2011, section 4.1: half of the files are smaller than 4 KiB."""
    assert share_below(DEVELOPER, 4096) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(("size", "share"), [(2048, 0.2353), (8192, 0.676), (65536, 0.9047), (2**20, 0.9849)])
def test_mail_has_the_published_cumulative_shares(size: int, share: float) -> None:
    assert share_below(MAIL, size) == pytest.approx(share, abs=0.005)


def test_media_has_the_published_mean_share_and_shape() -> None:
    total = sum(size.weight for size in MEDIA.sizes)
    mean = sum(size.weight * (size.lower + size.upper) / 2 for size in MEDIA.sizes) / total
    assert mean == pytest.approx(8.4e6, rel=0.01)
    assert share_below(MEDIA, 30e6) == pytest.approx(0.988, abs=0.001)
    low, middle, high = (share_below(MEDIA, size) for size in (3.4e6, 6.75e6, 13.4e6))
    assert NormalDist().inv_cdf(middle) == pytest.approx(0.0, abs=0.02)
    assert NormalDist().inv_cdf(high) == pytest.approx(-NormalDist().inv_cdf(low), abs=0.03)


def test_the_command_has_all_that_makes_the_files() -> None:
    argv = ageing_argv("/mnt/aged", fill=0.8, churn=10, profile=MAIL, seed=7)
    assert argv[3:8] == ("age.sh", "/mnt/aged", "0.8", "10", "7")
    assert argv[8].startswith("900:2048:2353 2048:4096:2564 ")
    assert argv[9:] == ("0.0:0.0", "500:1")


def test_there_is_a_profile_for_each_name_that_a_sweep_can_give() -> None:
    assert tuple(PROFILES) == get_args(Profile) == tuple(profile.name for profile in PROFILES.values())
