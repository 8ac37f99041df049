"""TRES strings: GPUs by class, typed and untyped never added, MIG types, shards."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.sources.slurm_tres import held


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


def test_cpus_and_nodes() -> None:
    """As told, and 0 where Slurm shortened them."""
    assert (held("cpu=12,node=2").cpus, held("cpu=12,node=2").nodes) == (12, 2)
    assert held("cpu=1.50K,node=1").cpus == 0


@pytest.mark.parametrize(
    "text", ["gres/gpu", "gres/gpu=", "gres/gpu=many", "gres/gpu=1.5", "=4", "1=4,1001=2", "cpu=1,,", "gres/gpu=-1"]
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
