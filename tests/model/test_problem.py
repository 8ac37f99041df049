"""Imperfect evidence as a value."""

from __future__ import annotations

from gpuledger.model.problem import Problem, unknown_name


def test_a_problem_is_told_with_its_place_and_its_code() -> None:
    """The place first, as compilers do; the code last, for scripts."""
    problem = Problem(code="bad-sentinel", message="memory reads 2^64-1", where="GPU-0")
    assert str(problem) == "GPU-0: memory reads 2^64-1 [bad-sentinel]"
    assert str(Problem(code="broken-line", message="cut off")) == "cut off [broken-line]"


def test_the_same_problem_twice_is_one() -> None:
    """The agent says each once for as long as it holds: by equality."""
    assert len({Problem(code="a", message="b"), Problem(code="a", message="b")}) == 1


def test_a_name_that_nothing_knows_stands_beside_those_there_are() -> None:
    """A few of them, sorted; where there are none, that is said."""
    assert str(unknown_name("team", "visoin", ["vision", "nlp", "nlp"])) == (
        "nothing knows a team called 'visoin'; known: nlp, vision [unknown-name]"
    )
    many = unknown_name("pool", "x", map(str, range(10, 21))).message
    assert many.endswith("known: 10, 11, 12, 13, 14, 15, 16, 17 and 3 more")
    assert unknown_name("pool", "x", ()).message == "nothing knows a pool called 'x'; no pool is known at all"
