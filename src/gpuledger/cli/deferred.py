"""A verb whose module is imported when it is asked for: nobody waits for the code of the others."""

from __future__ import annotations

import gc
import re
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command


class Deferred(TyperCommand):
    """A verb in the list of the help; the command itself is ``command`` of the module of its name.

    Args:
        words: how it is typed: ``usage`` is :mod:`gpuledger.cli.usage`, ``import nvidia-smi`` is
            :mod:`gpuledger.cli.import_nvidia_smi`.
        short: its sentence in the list.
    """

    def __init__(self, words: str, short: str) -> None:
        super().__init__(words.rsplit(maxsplit=1)[-1], short_help=short, rich_markup_mode=None)
        self._module = f"gpuledger.cli.{re.sub('[ -]', '_', words)}"

    def load(self) -> Any:
        """The command with its options and help."""
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        module = _module(self._module)
        alone.command(self.name, context_settings=getattr(module, "CONTEXT_SETTINGS", None))(module.command)
        return get_command(alone)

    def make_context(self, *given: Any, **more: Any) -> Any:
        """Parse the words after the verb, by the command itself."""
        return self.load().make_context(*given, **more)


def _module(name: str) -> ModuleType:
    """The module, imported once.

    What an import makes stays to the end. Looking through it for garbage, again and again while it grows and
    once more at the end, takes a fifth of the time of a short command (0.1 s, measured with Python 3.11).
    """
    if name in sys.modules:
        return sys.modules[name]
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.freeze()
        gc.enable()
