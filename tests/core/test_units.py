"""Text to base units and back. Trap: MB against MiB, `4k`, and parsers that know only some units."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core.errors import ParameterError
from mountlab.core.units import (
    SIZE_UNITS,
    TIME_UNITS,
    base_unit,
    format_bytes,
    format_seconds,
    kernel_bytes,
    parse_bytes,
    parse_percent,
    parse_seconds,
    scale_for,
    significant,
)
from rows import every_row

THIN = "\u2009"


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_bytes_written_as_text_are_read_back_exactly(n: int) -> None:
    assert parse_bytes(format_bytes(n)) == n


@every_row(("n", "text"), [(0, "0B"), (1023, "1023B"), (5 << 10, "5KiB"), (3 << 20, "3MiB"),
                                       (7 << 30, "7GiB"), (3 << 40, "3TiB"), (1 << 50, "1024TiB")])  # fmt: skip
def test_bytes_are_written_in_the_largest_unit_that_keeps_them_exact(n: int, text: str) -> None:
    assert format_bytes(n) == text


@every_row(
    ("text", "expected"),
    [
        ("0", 0),
        ("4096", 4096),
        ("64m", 2**26),
        ("65536K", 2**26),
        ("1G", 2**30),
        ("0x100", 256),
        ("0X10k", 16384),
        (" 5 ", 5),
        ("5q", None),
        ("m", None),
        ("", None),
        ("-1", None),
        ("1.5k", None),
        ("64MiB", 64 * 2**20),
        ("50%", None),
    ],
)
def test_sizes_are_read_as_the_kernel_reads_them(text: str, expected: int | None) -> None:
    assert kernel_bytes(text) == expected


@every_row(
    ("text", "expected"),
    [
        ("0B", 0),
        ("1B", 1),
        ("64KiB", 65536),
        ("64 KiB", 65536),
        (" 64KiB ", 65536),
        ("1.5GiB", 1610612736),
        ("10MB", 10_000_000),
        ("10MiB", 10_485_760),
        ("4kB", 4000),
        ("2TiB", 2 * 1024**4),
        ("1TB", 10**12),
        ("0.5KiB", 512),
        ("1GB", 10**9),
    ],
)
def test_sizes_are_read_with_decimal_and_binary_units_told_apart(text: str, expected: int) -> None:
    assert parse_bytes(text) == expected


@every_row("name", SIZE_UNITS)
def test_every_unit_of_size_is_read(name: str) -> None:
    power = "BkMGT".index(name[0].replace("K", "k"))
    assert parse_bytes(f"3{name}") == 3 * (1024 if "i" in name else 1000) ** power


@every_row(
    ("got", "kind"),
    [
        ("4k", "str"),
        ("4K", "str"),
        ("4096", "str"),
        (4096, "int"),
        (True, "bool"),
        (None, "NoneType"),
        (1.5, "float"),
        (90, "int"),
        ("", "str"),
        ("KiB", "str"),
        ("1e3B", "str"),
        ("64kib", "str"),
        ("64Kib", "str"),
        ("1,5GiB", "str"),
        ("64KiB/s", "str"),
        (["64KiB"], "list"),
        ("1 2KiB", "str"),
        ("64KiB\n64KiB", "str"),
    ],
)
def test_a_size_without_a_known_unit_is_refused(got: object, kind: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_bytes(got, where="x.yml: workloads.w.bs")
    error = caught.value
    assert error.what == "a number with its unit is needed"
    assert error.where == "x.yml: workloads.w.bs"
    assert error.got == f"{got!r} ({kind})"
    assert "such as '64KiB'" in error.allowed
    assert all(unit in error.allowed for unit in SIZE_UNITS)
    assert error.next_step


def test_4k_is_told_why_it_is_ambiguous() -> None:
    with pytest.raises(ParameterError, match=r"4k is 4KiB \(4096 B\) to some readers and 4kB \(4000 B\) to others"):
        parse_bytes("4k")


def test_a_number_that_yaml_made_is_told_to_be_quoted() -> None:
    """YAML reads 1:30 as the integer 90."""
    with pytest.raises(ParameterError, match="in quotes if YAML reads it as something else"):
        parse_seconds(90)


@pytest.mark.parametrize(("text", "shown"), [("0.3B", "0.3 B"), ("0.0001KiB", "0.1024 B"), ("1.0001kB", "1000.1")])
def test_a_fraction_of_a_byte_is_refused(text: str, shown: str) -> None:
    with pytest.raises(ParameterError, match="whole number of bytes") as caught:
        parse_bytes(text, where="here")
    assert shown in caught.value.got
    assert caught.value.where == "here"


@every_row(
    ("text", "expected"),
    [
        ("60s", 60.0),
        ("500ms", 0.5),
        ("2min", 120.0),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("10us", 1e-5),
        ("7 ns", 7e-9),
        ("1.5s", 1.5),
        ("0s", 0.0),
    ],
)
def test_times_are_read(text: str, expected: float) -> None:
    assert parse_seconds(text) == expected


@every_row("got", ["60", 60, "1:30", "60sec", "-1s", False, "1KiB"])
def test_a_time_without_a_known_unit_is_refused(got: object) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_seconds(got)
    assert caught.value.allowed == f"text such as '60s'; units {', '.join(TIME_UNITS)}"


@every_row(
    ("value", "text"),
    [
        (0, "0B"),
        (1, "1B"),
        (1023, "1023B"),
        (1024, "1KiB"),
        (1536, "1536B"),
        (2**20, "1MiB"),
        (6 * 2**30, "6GiB"),
        (1536.0, "1.50 KiB"),
        (0.0, "0 B"),
        (512.0, "512 B"),
        (3.2e9, "2.98 GiB"),
    ],
)
def test_whole_bytes_are_written_exactly_and_means_to_three_digits(value: float, text: str) -> None:
    assert format_bytes(value) == text


@every_row(
    ("seconds", "text"),
    [
        (0, "0 ns"),
        (5e-9, "5.00 ns"),
        (1.5e-6, "1.50 µs"),
        (0.012, "12.0 ms"),
        (1.0, "1.00 s"),
        (35.71, "35.7 s"),
        (119.0, "119 s"),
        (120, "2 min"),
        (125, "2 min 5 s"),
        (math.nan, "nan"),
    ],
)
def test_durations_are_written_with_a_readable_unit(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@every_row(
    ("value", "digits", "text"),
    [
        (0, 3, "0"),
        (1, 3, "1.00"),
        (12.345, 3, "12.3"),
        (1234567, 3, f"1{THIN}234{THIN}567"),
        (0.00012345, 3, "0.000123"),
        (-5.0, 3, "−5.00"),
        (math.inf, 3, "∞"),
        (-math.inf, 3, "−∞"),
        (math.nan, 3, "n/a"),
        (2.5, 1, "2"),
        (999.6, 3, f"1{THIN}000"),
        (1e-12, 2, "0.0000000000010"),
    ],
)
def test_significant_digits_never_turn_into_an_exponent(value: float, digits: int, text: str) -> None:
    assert significant(value, digits) == text


@given(st.floats(min_value=1e-9, max_value=1e15), st.integers(1, 6))
def test_a_shown_figure_is_within_half_a_unit_of_its_last_digit(value: float, digits: int) -> None:
    shown = float(significant(value, digits).replace(THIN, ""))
    decimals = max(0, digits - 1 - math.floor(math.log10(value)))
    assert abs(shown - value) <= 0.5001 * 10**-decimals


@every_row(
    ("unit", "largest", "shown", "text"),
    [
        ("B/s", 3.2e9, "GB/s", "3.20"),
        ("B/s", 60.1e6, "MB/s", "60.1"),
        ("B/s", 0, "B/s", "0"),
        ("s", 2e-5, "µs", "20.0"),
        ("s", 8.2e-13, "ns", "0.000820"),
        ("s", 0, "s", "0"),
        ("s", 3.0, "s", "3.00"),
        ("1/s", 14581.2, "k/s", "14.6"),
        ("1/s", 2.5e6, "M/s", "2.50"),
        ("B", 5e5, "kB", "500"),
        ("?", 12.0, "?", "12.0"),
    ],
)
def test_a_column_is_scaled_by_its_largest_value(unit: str, largest: float, shown: str, text: str) -> None:
    scale = scale_for(unit, largest)
    assert (scale.unit, scale.show(largest)) == (shown, text)


def test_a_size_beyond_every_file_system_is_refused() -> None:
    with pytest.raises(ParameterError, match="a size beyond every file system") as caught:
        parse_bytes("9" * 400 + "GiB", where="x")
    assert caught.value.allowed == "less than 8 EiB"


@every_row(
    ("unit", "base"),
    [
        ("B", ("B", 1)),
        ("KiB", ("B", 1024)),
        ("MB/s", ("B/s", 1e6)),
        ("MiB/s", ("B/s", 1048576)),
        ("MB/ms", ("B/s", 1e9)),
        ("kB/min", ("B/s", 1000 / 60)),
        ("1/s", ("1/s", 1)),
        ("1/h", ("1/s", 1 / 3600)),
        ("us", ("s", 1e-6)),
        ("min", ("s", 60)),
        ("1", ("1", 1)),
        ("%", ("1", 0.01)),
    ],
)
def test_units_of_figures_and_what_one_of_each_is(unit: str, base: tuple[str, float]) -> None:
    found = base_unit(unit)
    assert found is not None
    assert found[0] == base[0]
    assert found[1] == pytest.approx(base[1], rel=1e-15)


@every_row("unit", ["", "KB/s", "KB", "K", "1/", "/s", "s/s", "B/", "mb/s", "ops/s", "µs", "1/B", " s"])
def test_other_units_are_unknown(unit: str) -> None:
    """Trap: KB/s that means KiB/s."""
    assert base_unit(unit) is None


@every_row(
    ("text", "share"), [("3%", 0.03), ("0.03", 0.03), (0.03, 0.03), ("2.5 %", 0.025), (" 95% ", 0.95), ("0%", 0.0)]
)
def test_a_percentage_is_read_as_a_share(text: str, share: float) -> None:
    assert parse_percent(text) == share


@every_row(
    ("text", "share"),
    [("10", 0.1), ("10%", 0.1), ("0.1", 0.1), ("1", 0.01), ("1.0", 0.01), ("2.5", 0.025), ("0.5", 0.5), ("0", 0.0)],
)
def test_on_a_command_line_a_number_from_one_on_is_a_percentage(text: str, share: float) -> None:
    assert parse_percent(text, bare=True) == share


@every_row("text", ["ten", "%", "3%%", "1e1", "010", ""])
def test_on_a_command_line_what_is_no_percentage_is_refused_with_what_is_meant(text: str) -> None:
    with pytest.raises(ParameterError, match="a percentage is needed") as caught:
        parse_percent(text, where="--worse-than", bare=True)
    assert (caught.value.where, caught.value.got) == ("--worse-than", f"{text!r} (str)")
    assert caught.value.allowed == "10%, 10 or 0.1, which are the same"
    assert "a number without it is a percentage from 1 on, and a share below 1" in caught.value.next_step


@every_row("text", ["3", "3 percent", "%", "3%%", "1e1%", 3, True, None])
def test_a_share_without_its_sign_is_refused(text: object) -> None:
    with pytest.raises(ParameterError, match="a percentage is needed") as caught:
        parse_percent(text, where="s.yml: design.until.half_width")
    assert caught.value.where == "s.yml: design.until.half_width"
    assert caught.value.got == f"{text!r} ({type(text).__name__})"
    assert "'3%'" in caught.value.allowed
    assert "the sign %" in caught.value.next_step
