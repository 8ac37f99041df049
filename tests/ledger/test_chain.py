"""The hash chain's canonical form is simple enough to be checked in a few lines elsewhere."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.ledger.chain import GENESIS, heads_json, link_hash, read_heads, seal_root

cells = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=8))
groups = st.lists(
    st.tuples(st.sampled_from(["watch", "driver"]), st.lists(st.lists(cells, max_size=3), max_size=4)), max_size=3
)


@settings(max_examples=100)
@given(groups, st.integers(0, 10**16))
def test_a_link_is_the_hash_of_one_json_array(rows: list, at_us: int) -> None:
    """SHA-256 over the previous hash and one compact JSON array of the link and its rows."""
    array = [["w", 1, 9, at_us], *([kind, *cells] for kind, group in rows for cells in group)]
    text = GENESIS + json.dumps(array, separators=(",", ":"))
    expected = hashlib.sha256(text.encode()).hexdigest()
    assert link_hash(GENESIS, rows, writer="w", first_number=1, last_number=9, committed_at_us=at_us) == expected


def test_long_links_hash_like_short_ones() -> None:
    """Hashing in pieces does not show in the hash."""
    rows = [[number, "x"] for number in range(2501)]
    whole = json.dumps([["w", 1, 2501, 5], *(["k", *row] for row in rows)], separators=(",", ":"))
    expected = hashlib.sha256((GENESIS + whole).encode()).hexdigest()
    assert (
        link_hash(GENESIS, [("k", rows)], writer="w", first_number=1, last_number=2501, committed_at_us=5) == expected
    )


def test_a_float_cannot_be_hashed_as_not_a_number() -> None:
    """What is no JSON is no row."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        link_hash(GENESIS, [("k", [[float("nan")]])], writer="w", first_number=1, last_number=1, committed_at_us=0)  # type: ignore[list-item]


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=5), st.tuples(st.integers(1, 9), st.text("0f", min_size=4, max_size=4))
    )
)
def test_heads_survive_their_text(heads: dict) -> None:
    """Heads written are heads read."""
    assert read_heads(heads_json(heads)) == heads


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"a":1}', '{"a":[1]}', '{ "a":[1,"x"]}', '{"a":["1","x"]}', "null", "[" * 100_000]
)
def test_other_texts_are_no_heads(text: str) -> None:
    """Anything that is not canonical is refused by name."""
    with pytest.raises(ValueError, match="not "):
        read_heads(text)


def test_a_root_depends_on_each_of_its_parts() -> None:
    """Time, heads and the root before all enter the root."""
    roots = {
        seal_root(GENESIS, 1, "{}"),
        seal_root("1" * 64, 1, "{}"),
        seal_root(GENESIS, 2, "{}"),
        seal_root(GENESIS, 1, "{ }"),
    }
    assert len(roots) == 4


def test_rows_that_are_text_already_hash_as_rows_do() -> None:
    """However they are cut."""
    rows = [("w", number, "ü", None) for number in range(1, 6)]
    texts = [json.dumps(["k", *row], separators=(",", ":")) for row in rows]
    words = {"writer": "w", "first_number": 1, "last_number": 5, "committed_at_us": 7}
    whole = link_hash(GENESIS, [("k", rows)], **words)
    assert link_hash(GENESIS, [("k", iter([",".join(texts[:2]), ",".join(texts[2:])]))], **words) == whole
