"""A sieve lets through whatever an expression finds, and little more."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mountlab.publish.identities.known import Identity
from mountlab.publish.identities.patterns import PATTERNS
from mountlab.publish.identities.pseudonyms import Pseudonyms
from mountlab.publish.secret_forms import expressions
from mountlab.publish.sieve import Sieve

SOUGHT = [*expressions(), *(pattern.compiled for pattern in PATTERNS)]
KNOWN = Pseudonyms([Identity("host", "vm"), Identity("place", "/srv/my data"), Identity("serial", "S3Z-9.NB_0K")])
SIEVE = Sieve((*expressions(), *KNOWN.expressions()))


def passes(sieve: Sieve, text: str) -> bool:
    ((_, may_hold),) = sieve.sift([text], lambda text: text.encode(errors="surrogatepass"))
    return may_hold


@pytest.mark.slow
@given(st.sampled_from(SOUGHT).flatmap(st.from_regex))
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_an_expression_matches_passes(text: str) -> None:
    assert passes(SIEVE, text)


@pytest.mark.parametrize(
    "name", ["host=vm", "root@vm:", "%2Fsrv%2Fmy%20data", "/srv/my\\040data/x", "s3z9_nb0k", "é, host=vm"]
)
def test_a_known_name_passes_in_each_form_that_is_replaced(name: str) -> None:
    assert KNOWN.text(name) != name
    assert passes(SIEVE, name)


def test_counters_do_not_pass() -> None:
    assert not passes(SIEVE, "nr_free_pages 5743210\nvmstat 8:0 sda 1234567890 12.5\n" * 20)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (re.compile(r"(\w)\1"), "aa"),  # RE2 has no references
        (re.compile(r"a{,2}b"), "aab"),  # and takes this by the letter
        (re.compile("a b", re.VERBOSE), "ab"),
        (re.compile(r"a.b", re.DOTALL), "a\nb"),
        (re.compile("end$"), "the end\n"),
        (re.compile(r"x\sy"), "x\x1cy"),
        (re.compile(r"a{50,1024}"), "a" * 60),
        (re.compile(r"(?<![^a])b(?!c)"), "ab"),
    ],
)
def test_what_re2_takes_otherwise_passes(expression: re.Pattern[str], text: str) -> None:
    assert expression.search(text)
    assert passes(Sieve([expression]), text)
