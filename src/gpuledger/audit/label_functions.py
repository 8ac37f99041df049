"""What the functions that change labels do to a branch: ``label_replace`` of Prometheus, ``label_move`` and its kind.

Each takes a branch and the quoted arguments at their places (empty where an argument is no string).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gpuledger.audit.branches import Branch
from gpuledger.audit.gpu_words import names_place, names_workload

_ALL, _ALL_THERE = frozenset({".*", "(.*)"}), frozenset({".+", "(.+)"})


def _made(branch: Branch, target: str, sources: Sequence[str], by: str, *, always: bool = True) -> Branch:
    """A label made out of others, or out of nothing; not always where a pattern can fail: then what it was may stay."""
    made = dict(branch.stands_for)
    there = [source for source in sources if branch.has(source)]
    if sources and not there:
        return branch
    workload = [source for source in there if branch.carries(source) and (names_workload(source) or source in made)]
    if there and not workload and all(source in branch.pinned for source in there):
        return branch.with_label(target)._replace(pinned=branch.pinned | {target})
    if names_workload(target) and target != "job":
        told = f"out of {', '.join(there)}" if there else "of its own"
        return branch.marked(target, f"{by} makes {target} {told}")
    branch = branch.with_label(target)
    others = tuple(pair for pair in branch.stands_for if pair[0] != target)
    if workload:
        return branch._replace(stands_for=(*others, (target, ", ".join(workload))))
    return branch._replace(stands_for=others) if always else branch


def _label_replace(branch: Branch, quoted: Sequence[str]) -> Branch:
    _, target, replacement, source, pattern, *_ = (*quoted, "", "", "", "", "")
    if not target:
        return branch
    if not replacement:
        return branch.without(frozenset({target}))
    always = pattern in _ALL or (pattern in _ALL_THERE and names_place(source))
    return _made(branch, target, [source] if source and "$" in replacement else [], "label_replace", always=always)


def _label_join(branch: Branch, quoted: Sequence[str]) -> Branch:
    _, target, _, *sources = (*quoted, "", "", "")
    return _made(branch, target, [source for source in sources if source], "label_join") if target else branch


def _label_set(branch: Branch, quoted: Sequence[str]) -> Branch:
    for target, value in zip(quoted[1::2], quoted[2::2], strict=False):
        branch = _made(branch, target, [], "label_set") if value else branch.without(frozenset({target}))
    return branch


def _label_copy(branch: Branch, quoted: Sequence[str]) -> Branch:
    for source, target in zip(quoted[1::2], quoted[2::2], strict=False):
        branch = _made(branch, target, [source], "label_copy")
    return branch


def _label_move(branch: Branch, quoted: Sequence[str]) -> Branch:
    for source, target in zip(quoted[1::2], quoted[2::2], strict=False):
        there = branch.has(source)
        branch = _made(branch, target, [source], "label_move")
        branch = branch.without(frozenset({source})) if there and source != target else branch
    return branch


def _label_del(branch: Branch, quoted: Sequence[str]) -> Branch:
    return branch.without(frozenset(label for label in quoted[1:] if label))


def _label_keep(branch: Branch, quoted: Sequence[str]) -> Branch:
    kept = frozenset(label for label in quoted[1:] if label)
    for label in sorted(kept):
        if names_workload(label) and branch.carries(label):
            branch = branch.marked(label, f"label_keep keeps {label}")
    return branch.only(kept)


def _label_match(branch: Branch, quoted: Sequence[str]) -> Branch:
    _, label, pattern, *_ = (*quoted, "", "", "")
    if names_workload(label) and branch.carries(label):
        return branch._replace(selects=(*branch.selects, (label, f'{label}=~"{pattern}"')))
    return branch


def _sort_by_label(branch: Branch, quoted: Sequence[str]) -> Branch:
    for label in quoted[1:]:
        if names_workload(label) and branch.carries(label):
            branch = branch.marked(label, f"sorted by {label}")
    return branch


def _same(branch: Branch, quoted: Sequence[str]) -> Branch:
    del quoted
    return branch


LABEL_FUNCTIONS: Mapping[str, Callable[[Branch, Sequence[str]], Branch]] = {
    "label_replace": _label_replace,
    "label_join": _label_join,
    "label_set": _label_set,
    "label_copy": _label_copy,
    "label_move": _label_move,
    "label_del": _label_del,
    "label_keep": _label_keep,
    "label_match": _label_match,
    "label_mismatch": _same,
    "label_transform": _same,
    "label_uppercase": _same,
    "label_lowercase": _same,
    "label_map": _same,
    "alias": _same,
    "sort_by_label": _sort_by_label,
    "sort_by_label_desc": _sort_by_label,
    "sort_by_label_numeric": _sort_by_label,
    "sort_by_label_numeric_desc": _sort_by_label,
}
"""By name, lower case."""
