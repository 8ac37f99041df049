"""The order in which recording rules can be followed: what is read before who reads it, and the rings among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def ordered(needs: Mapping[str, Sequence[str]]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Names so that each stands behind those that it needs, as far as there is such an order.

    Args:
        needs: of each name, the names that it reads.

    Returns:
        All names, and each ring that was met: names that read each other, the first again at its end.
    """
    order: list[str] = []
    rings: list[tuple[str, ...]] = []
    done: set[str] = set()
    for start in needs:
        if start in done:
            continue
        path: dict[str, Iterator[str]] = {start: iter(needs[start])}
        while path:
            name = next(reversed(path))
            further = next((each for each in path[name] if each not in done), None)
            if further is None:
                path.pop(name)
                done.add(name)
                order.append(name)
            elif further in path:
                names = list(path)
                rings.append((*names[names.index(further) :], further))
            else:
                path[further] = iter(needs.get(further, ()))
    return order, rings
