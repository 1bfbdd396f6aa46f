"""Values of mount options, compared by what they mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.filesystems.option_values import nodes, same_compression, same_nodes, same_policy, with_default
from rows import every_row

SETS = st.frozensets(st.integers(0, 40), min_size=1)


def as_ranges(numbers: frozenset[int]) -> str:
    """As the kernel prints a set of nodes (%*pbl): ranges in ascending order."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][-1] == number - 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ",".join(str(each[0]) if len(each) == 1 else f"{each[0]}-{each[-1]}" for each in found)


@pytest.mark.slow
@given(SETS, st.randoms(use_true_random=False))
def test_a_list_of_nodes_is_a_set(numbers: frozenset[int], random: object) -> None:
    listed = [*numbers, *list(numbers)[:2]]
    random.shuffle(listed)  # type: ignore[attr-defined]
    assert same_nodes(",".join(map(str, listed)), as_ranges(numbers))
    assert nodes(as_ranges(numbers)) == numbers


@given(SETS, SETS)
def test_other_nodes_are_another_list(ours: frozenset[int], theirs: frozenset[int]) -> None:
    assert same_nodes(as_ranges(ours), as_ranges(theirs)) == (ours == theirs)


@every_row(
    ("text", "found"),
    [
        ("0-7:1/2", {0, 2, 4, 6}),
        ("0-7:2/4,9", {0, 1, 4, 5, 9}),
        ("", set()),
        ("3-1", set()),
        ("0,", {0}),
        ("x", None),
        ("1-", None),
        ("-1", None),
        ("0-3:1/0", None),
        ("0-99999999999", None),
        ("all", None),
    ],
)
def test_regions_of_nodes(text: str, found: set[int] | None) -> None:
    """bitmap_parselist (lib/bitmap-str.c): of every group of nodes the first ones."""
    assert nodes(text) == (None if found is None else frozenset(found))


@given(st.text(max_size=20), st.text(max_size=20))
def test_no_text_stops_a_comparison(asked: str, shown: str) -> None:
    assert same_policy(asked, shown) in (True, False)
    assert same_compression(asked, shown) in (True, False)
    assert with_default("5")(asked, "5") in (True, False)
    assert with_default("5")("5", shown) in (True, False)
