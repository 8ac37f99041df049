"""TRES strings: GPUs by class, typed and untyped never added, MIG types, shards."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.sources.slurm_tres import class_of, held, with_gres


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("", ()),
        ("billing=4,cpu=4,mem=8G,node=1", ()),
        ("gres/gpu=0", ()),
        ("cpu=1,gres/gpu=4,node=1", (("gpu", 4),)),
        ("gres/gpu:a100=4", (("a100", 4),)),
        ("gres/gpu=4,gres/gpu:a100=4", (("a100", 4),)),
        ("gres/gpu:a100_80=4,gres/gpu=4", (("a100_80", 4),)),
        ("gres/gpu=3,gres/gpu:a100=1,gres/gpu:h100=2", (("a100", 1), ("h100", 2))),
        ("gres/gpu:a100=1,gres/gpu:h100=2", (("a100", 1), ("h100", 2))),
        ("gres/gpu=4,gres/gpu:a100=1", (("a100", 1), ("gpu", 3))),
        ("gres/gpu=2,gres/gpu:1g.5gb=2", (("1g.5gb", 2),)),
        ("gres/gpu:nvidia_a100-sxm4-40gb_1g.5gb=1", (("nvidia_a100-sxm4-40gb_1g.5gb", 1),)),
        ("gres/gpumem=0,gres/gpuutil=0,gres/gpu=1", (("gpu", 1),)),
        ("gres/gpu:a100=0,gres/gpu=1", (("gpu", 1),)),
    ],
)  # fmt: skip
def test_devices_by_class(text: str, devices: tuple[tuple[str, int], ...]) -> None:
    """The untyped figure is all of them, the typed ones say what they are."""
    assert held(text).devices == devices
    assert held(text).count == sum(number for _, number in devices)
    assert not held(text).conflict


@pytest.mark.parametrize(
    ("text", "devices"),
    [("gres/gpu=1,gres/gpu:a100=4", (("a100", 1),)), ("gres/gpu=1,gres/gpu:a=1,gres/gpu:b=1", (("gpu", 1),)),
     ("gres/gpu=0,gres/gpu:a=1", ())],
)  # fmt: skip
def test_types_that_exceed_the_whole_are_a_conflict(text: str, devices: tuple[tuple[str, int], ...]) -> None:
    """The whole counts, as in Slurm's own reports, and what does not fit is said."""
    assert held(text).devices == devices
    assert "add up to" in held(text).conflict


def test_parts_of_gpus() -> None:
    """Shards and MPS have no size of their own; beside whole GPUs they add nothing."""
    assert held("cpu=1,gres/shard=3").shards == 3
    assert held("cpu=1,gres/mps=50").mps == 50
    assert held("gres/gpu=1,gres/shard=4,gres/mps=100").shards == 0
    assert held("gres/gpu=1,gres/shard=4,gres/mps=100").mps == 0


def test_parts_of_gpus_by_type() -> None:
    """Typed and untyped are never added here either."""
    assert (held("gres/shard:a=3").shards, held("gres/shard:a=3").parts_of) == (3, "a")
    assert (held("gres/shard=5,gres/shard:a=3").shards, held("gres/shard=5,gres/shard:a=5").parts_of) == (5, "a")
    assert (held("gres/shard:a=3,gres/shard:b=2").shards, held("gres/shard:a=3,gres/shard:b=2").parts_of) == (5, "gpu")
    assert (held("gres/mps:a=30").mps, held("gres/shard=1").parts_of) == (30, "gpu")


@pytest.mark.parametrize(
    ("type_name", "class_name"),
    [
        ("1g.5gb", "gpu/1g.5gb"), ("a100_1g.5gb", "a100/1g.5gb"), ("a100-3g.20gb", "a100/3g.20gb"),
        ("nvidia_a100-sxm4-40gb_1g.5gb", "nvidia_a100-sxm4-40gb/1g.5gb"), ("1G.10GB.me", "gpu/1g.10gb+me"),
        ("h100_1g.10gb+me", "h100/1g.10gb+me"), ("1c.2g.10gb", "gpu/1c.2g.10gb"), ("a100/1g.5gb", "a100/1g.5gb"),
        ("a100", "a100"), ("a100_80gb", "a100_80gb"), ("nvidia_h100_80gb_hbm3", "nvidia_h100_80gb_hbm3"),
        ("gpu", "gpu"),
    ],
)  # fmt: skip
def test_the_class_of_a_type(type_name: str, class_name: str) -> None:
    """A MIG profile stands behind its GPU, as the driver's own names of slices do."""
    assert class_of(type_name) == class_name


@pytest.mark.parametrize(
    ("gres", "tres"),
    [
        ("gpu:2", "cpu=1,gres/gpu=2"), ("gres:gpu:2", "cpu=1,gres/gpu=2"), ("gres/gpu:2", "cpu=1,gres/gpu=2"),
        ("7696487:3", "cpu=1,gres/gpu=3"), ("gpu", "cpu=1,gres/gpu=1"), ("gpu:0", "cpu=1,gres/gpu=0"),
        ("gpu:tesla:1,gpu:kepler:2", "cpu=1,gres/gpu:tesla=1,gres/gpu:kepler=2,gres/gpu=3"),
        ("craynetwork:4,gpu:a100-sxm4-40gb:2(S:0-1,3)", "cpu=1,gres/gpu:a100-sxm4-40gb=2,gres/gpu=2"),
        ("shard:5", "cpu=1,gres/shard=5"), ("mic:1", "cpu=1"), ("(null)", "cpu=1"), ("", "cpu=1"),
    ],
)  # fmt: skip
def test_gpus_of_a_gres_string(gres: str, tres: str) -> None:
    """Old versions' own spelling, with types, places and other devices; where TRES has GPUs, these count."""
    assert with_gres("cpu=1", gres) == tres
    assert held(with_gres("", gres)).count == held(tres).count
    assert with_gres("gres/gpu=1,cpu=1", gres) == "gres/gpu=1,cpu=1"
    assert with_gres("gres/gpumem=0", "gpu:2") == "gres/gpumem=0,gres/gpu=2"


def test_a_gres_by_an_unknown_number_is_refused() -> None:
    """It may be a GPU."""
    with pytest.raises(ValueError, match="by number"):
        with_gres("", "7173747:1")


def test_cpus_and_nodes() -> None:
    """As told, and 0 where Slurm shortened them."""
    assert (held("cpu=12,node=2").cpus, held("cpu=12,node=2").nodes) == (12, 2)
    assert held("cpu=1.50K,node=1").cpus == 0


@pytest.mark.parametrize(
    "text",
    [
        "gres/gpu",
        "gres/gpu=",
        "gres/gpu=many",
        "gres/gpu=1.5",
        "=4",
        "1=4,1001=2",
        "cpu=1,,",
        "gres/gpu=-1",
        '"gres/gpu=1"',
    ],
)
def test_other_strings_are_refused(text: str) -> None:
    """No number of devices is guessed."""
    with pytest.raises(ValueError, match=r"TRES|resources by number|number of devices"):
        held(text)


@given(
    st.dictionaries(st.sampled_from(["a100", "h100", "1g.5gb", "v100"]), st.integers(0, 64), max_size=4),
    st.integers(0, 8),
    st.randoms(),
)
@settings(max_examples=200, deadline=None)
def test_the_count_is_the_whole_whatever_the_types(typed: dict[str, int], rest: int, random: object) -> None:
    """Order does not matter, and the classes add up to ``gres/gpu``."""
    total = sum(typed.values()) + rest
    parts = [f"gres/gpu:{name}={number}" for name, number in typed.items()] + [f"gres/gpu={total}", "cpu=1"]
    random.shuffle(parts)  # type: ignore[attr-defined]
    assert held(",".join(parts)).count == total
