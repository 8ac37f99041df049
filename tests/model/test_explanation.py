"""The way from a number back to its evidence, as a tree of values."""

from __future__ import annotations

from gpuledger.model.explanation import Explanation
from gpuledger.model.missing import Missing


def test_a_node_without_anything_below_is_a_leaf() -> None:
    """No figure, no reference, no child unless given."""
    leaf = Explanation(title="and 3 more contexts")
    assert (leaf.figures, leaf.refs, leaf.children) == ((), (), ())


def test_a_tree_is_equal_by_all_of_it() -> None:
    """Also an absent figure is compared, by its reason."""
    leaf = Explanation(title="the driver's own row", figures=(("gpu_percent", Missing("N/A")),), refs=("driver:a/1",))
    assert Explanation(title="total", children=(leaf,)) == Explanation(title="total", children=(leaf,))
    assert leaf != Explanation(title=leaf.title, figures=(("gpu_percent", 0),), refs=leaf.refs)
