"""Frozen values of which many thousands are made: as a frozen dataclass makes them, in half the time.

A frozen dataclass sets each field through ``object.__setattr__``, which looks the name up each time. Here the
constructor is written once a class, as dataclasses write theirs, and sets each slot by its own descriptor.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

T = TypeVar("T")


def quickly_made(cls: type[T]) -> type[T]:
    """Give a frozen dataclass with slots and keyword arguments alone a constructor that costs half; all else stays.

    Raises:
        TypeError: the class has what such a constructor would leave out: a ``__post_init__``, a default that is
            made anew each time, or fields that are not slots.
    """
    names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    known: dict[str, Any] = {}
    parameters: list[str] = []
    for field in fields(cls):  # type: ignore[arg-type]
        if not field.init or not field.kw_only or field.default_factory is not MISSING or hasattr(cls, "__post_init__"):
            raise TypeError(f"{cls.__name__}.{field.name} needs the constructor of dataclasses")
        known[f"set_{field.name}"] = getattr(cls, field.name).__set__
        if field.default is MISSING:
            parameters.append(field.name)
        else:
            known[f"default_{field.name}"] = field.default
            parameters.append(f"{field.name}=default_{field.name}")
    body = "; ".join(f"set_{name}(self, {name})" for name in names)
    exec(f"def __init__(self, *, {', '.join(parameters)}): {body}", known)  # noqa: S102 names are the class's own
    made = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {field.name: field.type for field in fields(cls)}  # type: ignore[arg-type]
    type.__setattr__(cls, "__init__", made)
    return cls
