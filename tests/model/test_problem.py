"""Imperfect evidence as a value."""

from __future__ import annotations

from gpuledger.model.problem import Problem


def test_a_problem_is_told_with_its_place_and_its_code() -> None:
    """The place first, as compilers do; the code last, for scripts."""
    problem = Problem(code="bad-sentinel", message="memory reads 2^64-1", where="GPU-0")
    assert str(problem) == "GPU-0: memory reads 2^64-1 [bad-sentinel]"
    assert str(Problem(code="broken-line", message="cut off")) == "cut off [broken-line]"


def test_the_same_problem_twice_is_one() -> None:
    """The agent says each once for as long as it holds: by equality."""
    assert len({Problem(code="a", message="b"), Problem(code="a", message="b")}) == 1
