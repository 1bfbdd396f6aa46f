"""Values by a key."""

from __future__ import annotations

from mountlab.core.groups import by_key


def test_values_of_a_key_need_not_be_neighbours_and_keep_their_order() -> None:
    assert by_key([("b", 1), ("a", 2), ("b", 3)]) == {"b": [1, 3], "a": [2]}
    assert list(by_key([("b", 1), ("a", 2)])) == ["b", "a"]
    assert by_key([]) == {}
