"""Text to samples: every line is a sample, a comment, or told; and the same as prometheus_client reads."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from exporter_texts import escaped
from gpuledger.audit.exposition import MOST_UNREAD, Exposition, decode, read_exposition

NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,20}", fullmatch=True)
LABEL_NAMES = st.from_regex(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]{0,12}", fullmatch=True)
"""Two underscores in front are Prometheus' own, and its client refuses them."""
LINE_ENDS = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters=LINE_ENDS), max_size=20)
VALUES = st.one_of(
    st.integers(-(10**18), 10**18).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["NaN", "+Inf", "-Inf", "1e9", "0.714", "17592186044415"]),
)
SAMPLES = st.lists(st.tuples(NAMES, st.dictionaries(LABEL_NAMES, TEXTS, max_size=5), VALUES), min_size=1, max_size=8)


def read(text: str) -> Exposition:
    return read_exposition(text, path="scrape")


def told(found: Exposition) -> list[tuple[str, str]]:
    return [(problem.code, problem.where) for problem in found.unread]


def rendered(samples: list[tuple[str, dict[str, str], str]]) -> str:
    lines = []
    for name, labels, value in samples:
        block = ",".join(f'{label}="{escaped(text)}"' for label, text in labels.items())
        lines.append(f"{name}{{{block}}} {value}" if labels else f"{name} {value}")
    return "\n".join(lines) + "\n"


@settings(max_examples=60)
@given(SAMPLES)
def test_rendered_samples_come_back(samples: list[tuple[str, dict[str, str], str]]) -> None:
    """Names, labels with every escape, their order, and figures to the last digit; each with its line."""
    found = read(rendered(samples))
    assert [(each.name, dict(each.labels), each.value) for each in found.samples] == samples
    assert [list(each.labels) for each in found.samples] == [list(labels) for _, labels, _ in samples]
    assert [each.line for each in found.samples] == list(range(1, len(samples) + 1))
    assert not found.unread


@settings(max_examples=60)
@given(SAMPLES)
def test_it_reads_what_prometheus_client_reads(samples: list[tuple[str, dict[str, str], str]]) -> None:
    """Another reader of the same format, line for line."""
    text = rendered(samples)
    theirs = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    ours = read(text).samples
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert dict(mine.labels) == other.labels
        assert math.isnan(float(mine.value)) == math.isnan(other.value)
        assert float(mine.value) == float(other.value) or math.isnan(other.value)


@settings(max_examples=60)
@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    """What is no sample is told; nothing stops the reading."""
    found = read(text)
    lines = [line for line in text.split("\n") if line.strip() and not line.strip().startswith("#")]
    assert bool(lines) == bool(found.samples or found.unread or found.holders)


@settings(max_examples=60)
@given(st.binary(max_size=200))
def test_any_bytes_are_text_or_told(content: bytes) -> None:
    """Bytes that are no UTF-8 are replaced, with their lines."""
    text, problems = decode(content)
    assert isinstance(text, str)
    assert all(problem.code == "not-utf8" for problem in problems)


def test_titles_and_rulers_are_told_and_the_rest_is_read() -> None:
    """People keep several outputs in one file, with headings."""
    found = read("Node one\n\n--------\n# TYPE up gauge\nup 1\n\nNode two\nand more\nup 0\n")
    assert [(each.value, each.line) for each in found.samples] == [("1", 5), ("0", 9)]
    assert told(found) == [("not-a-sample", "scrape:1"), ("ruler", "scrape:3"), ("not-a-sample", "scrape:7")]
    assert "2 lines are no samples: `Node two`" in found.unread[2].message


def test_comments_describe_metrics_and_are_no_problem() -> None:
    """HELP, TYPE, UNIT and words of people; a metric described twice means two scrapes in one text."""
    found = read("# A note of mine\n# HELP up Whether.\n# TYPE up gauge\nup 1\n# TYPE up gauge\nup 1\n")
    assert (found.types, found.scrapes, found.unread) == ({"up": "gauge"}, 2, ())


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('a{b="c"} 1 1764442800000', "1"),
        ('a{b="c"} 1.5 # {trace_id="x"} 0.5', "1.5"),
        ('a{b="c"} 2 1764442800.123 # {trace_id="x"} 0.5 1764442800.1', "2"),
        ('  a{b="c"} 3', "3"),
        ('a{b="c"} 4\r', "4"),
        ('a{b="c",} 5', "5"),
        ('a { b = "c" } 6', "6"),
        ('{"a", b="c"} 7', "7"),
        ('{"a.b", b="c"} 8', "8"),
        ('a{b="c"} 9  # same value', "9"),
        ('{__name__="a", b="c"} 10', "10"),
        ('a{b="c"} => 11 @[1764442800.123]', "11"),
    ],
)
def test_the_forms_of_one_sample(line: str, value: str) -> None:
    """Times, exemplars, blanks, quoted names, remarks, and what promtool prints."""
    found = read(line + "\n")
    assert [(each.name.replace(".b", ""), dict(each.labels), each.value) for each in found.samples] == [
        ("a", {"b": "c"}, value)
    ]
    assert not found.unread


@pytest.mark.parametrize("line", ["a{b=c} 1", 'a{b="c"} one', "a b c", "{} {}", '{"metric"}', "a{", "a{b} 1", "= 4"])
def test_broken_lines_are_told(line: str) -> None:
    """One place each, and the lines around it are read."""
    found = read(f"up 1\n{line}\nup 0\n")
    assert [each.value for each in found.samples] == ["1", "0"]
    assert told(found) == [("not-a-sample", "scrape:2")]


def test_a_cut_last_line_is_told_as_cut() -> None:
    """The text format ends each line; what has no end may lack digits."""
    cut = read('up 1\nused{gpu="0",UUID="GPU-')
    assert told(cut) == [("cut-line", "scrape:2")]
    short = read('up 1\nused{gpu="0"} 12')
    assert [each.value for each in short.samples] == ["1", "12"]
    assert [note.code for note in short.notes] == ["open-end"]
    assert not read("up 1\n# EOF").notes


def test_elided_labels_are_read_as_far_as_they_go() -> None:
    """As reporters write them: what is hidden is said once."""
    found = read('  a{pod="x", gpu="0",...} 0.714  # Same\n  a{pod="y", gpu="0",...} 0.714\n')
    assert [dict(each.labels) for each in found.samples] == [{"pod": "x", "gpu": "0"}, {"pod": "y", "gpu": "0"}]
    assert [note.code for note in found.notes] == ["elided-labels"]


def test_a_log_is_told_line_by_line() -> None:
    """Lines of a log that are no mapping are not read, and said to be a log's."""
    found = read('time="2024-04-05T13:49:04Z" level=info msg="Starting"\ntime="x" level=info msg="Up"\n')
    assert told(found) == [("log-line", "scrape:1")]


def test_what_is_not_read_is_bounded() -> None:
    """A hundred thousand broken lines give two hundred places and one sentence with the number of the rest."""
    found = read("".join(f"up {number}\nbroken\n" for number in range(1000)))
    assert len(found.unread) == MOST_UNREAD + 1
    assert "800 more lines in 800 places" in found.unread[-1].message


def test_bytes_that_are_no_text_are_told_by_line() -> None:
    """A pod's name in Latin-1, and a file of PowerShell's."""
    text, problems = decode(b'up 1\na{pod="caf\xe9"} 2\n')
    assert [each.value for each in read(text).samples] == ["1", "2"]
    assert "line 2" in problems[0].message
    assert decode("up 1\n".encode("utf-16"))[0] == "up 1\n"
    assert decode(b"\xef\xbb\xbfup 1\n") == ("up 1\n", ())


def test_samples_with_the_same_labels_share_them() -> None:
    """A scrape repeats a set of labels for each metric: they are read once."""
    found = read('a{gpu="0"} 1\nb{gpu="0"} 2\n')
    assert found.samples[0].labels is found.samples[1].labels


@pytest.mark.parametrize(
    "line",
    [
        "a " + "1" * 100_000 + "x",
        "{}" + " " * 100_000 + "x",
        "a{" + "} " * 50_000,
        'a{b="' + '\\"' * 50_000,
        "a{" + 'b="c",' * 20_000 + "} x",
        "Device to pod mapping: map[" + "a" * 100_000 + "]",
        "Device to pod mapping: map[" * 4_000,
        "a 1" + " # {" * 25_000,
        '{"' * 50_000,
        "[" * 100_000,
    ],
    ids=["digits", "blanks", "braces", "quotes", "labels", "device", "logs", "exemplars", "names", "json"],
)
def test_no_line_costs_its_length_squared(line: str) -> None:
    """A hostile line of 100 KB takes a blink; squared it would take minutes."""
    began = time.process_time()
    read(line + "\n")
    assert time.process_time() - began < 2


def test_more_samples_than_are_judged_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded, and what was left out has its lines."""
    monkeypatch.setattr("gpuledger.audit.exposition.MOST_SAMPLES", 3)
    found = read("up 1\nup 2\nup 3\nup 4\nup 5\n")
    assert [each.value for each in found.samples] == ["1", "2", "3"]
    assert told(found) == [("too-many-samples", "scrape:4")]
    assert "lines 4 to 6 were not judged" in found.unread[0].message


def test_a_line_longer_than_any_sample_is_told() -> None:
    """A pod name of megabytes would fill every message."""
    found = read(f'A{{pod="{"x" * 70_000}"}} 1\nB 2\n')
    assert [sample.name for sample in found.samples] == ["B"]
    assert told(found) == [("not-a-sample", "scrape:1")]
