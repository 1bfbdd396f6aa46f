"""Garbage is searched for later, and then as before."""

from __future__ import annotations

import gc

import pytest
from mountlab.core.garbage import pause_gc


def test_the_search_for_garbage_goes_on_afterwards_and_after_an_error() -> None:
    with pause_gc():
        assert not gc.isenabled()
        with pause_gc():
            pass
        assert not gc.isenabled(), "the inner one ended what the outer one asked for"
    assert gc.isenabled()
    with pytest.raises(ValueError, match="broken"), pause_gc():
        raise ValueError("broken")
    assert gc.isenabled()


def test_what_was_off_stays_off() -> None:
    gc.disable()
    try:
        with pause_gc():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
