"""What a comment is for: the object that it stands in."""

from __future__ import annotations

import textwrap

from gpuledger.audit.waiver_places import MOST_AROUND, around, covered
from gpuledger.model.findings import Where

RULES = textwrap.dedent(
    """\
    groups:
    - name: g   # 2
      rules:
      - alert: a  # 4
        expr: x
        annotations: {s: y}  # 6
        # 7

      # 9
      - alert: b
        expr: |
          z
          # 13
    # 14
    """
)


def test_entries_of_lists_are_the_objects_of_yaml() -> None:
    """A comment further in than the dash is of that entry, one at the dash of none but the outer."""
    found = around(RULES, [2, 4, 6, 7, 9, 13, 14])
    assert found[4] == found[6] == found[7] == ((4, 6), (2, 12))
    assert found[2] == found[9] == ((2, 12),)
    assert found[13] == ((10, 12), (2, 12))
    assert found[14] == ()


def test_braces_are_the_objects_of_json() -> None:
    """Braces in strings are none, and the whole file is no object that anybody means."""
    text = '{"panels": [\n{"targets": [\n{"expr": "a{}}"}],\n"description": "x {"},\n{"b": 1}],\n"description": "y"}'
    assert around(text, [4, 6]) == {4: ((2, 4),)}


def test_only_the_nearest_objects_are_told() -> None:
    """However deep it stands."""
    text = "".join(f"{' ' * depth}- a{depth}:\n" for depth in range(40)) + " " * 41 + "# x\n"
    assert len(around(text, [41])[41]) == MOST_AROUND
    deep = '{"a":\n' * 40 + '"x"' + "}" * 40
    assert len(around(deep, [41])[41]) == MOST_AROUND
    assert around(text, []) == {}


def _places(*found: tuple[int, str]) -> list[tuple[Where, str]]:
    return [(Where(path="f", line=line, name=name), "") for line, name in found]


def test_a_comment_below_the_expression_is_still_of_its_rule() -> None:
    """And not of the next one, which nobody signed."""
    places = _places((5, "alert a"), (11, "alert b"))
    held = around(RULES, [6, 7, 9])
    for line, name in ((6, "alert a"), (7, "alert a"), (9, "alert b")):
        assert {where.name for where in covered(line, held[line], places, "w")} == {name}
    assert {where.name for where in covered(7, (), places, "w")} == {"alert b"}


def test_a_comment_below_several_rules_of_its_object_covers_none() -> None:
    """Nobody can tell which; all queries of one panel are one."""
    assert covered(9, ((1, 9),), _places((2, "a"), (4, "b")), "w") == frozenset()
    assert len(covered(9, ((1, 9),), _places((2, "p / A"), (4, "p / B")), "w")) == 2
