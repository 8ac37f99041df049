"""``gpuledger agent`` that names nobody: what the agent costs without any watcher, the base of what watching costs.

In: the words behind ``gpuledger agent``. It is the same agent in all but its watcher, which answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Collection

import gpuledger.cli.agent as verb
from gpuledger.cli.main import main
from gpuledger.model.readings import NamesLook


class Nobody:
    """A watcher that knows no process."""

    method = "poll"
    urgent = None

    def look(self, pids: Collection[int], now_us: int, *, restarted: Collection[int] = ()) -> NamesLook:
        """Nothing."""
        del pids, now_us, restarted
        return NamesLook(method=self.method)

    def close(self) -> None:
        """Nothing to let go of."""


def nobody(*_: object, **__: object) -> tuple[Nobody, tuple[()]]:
    """In place of the choice of a way of naming."""
    return Nobody(), ()


if __name__ == "__main__":
    verb.choose_watcher = nobody  # type: ignore[assignment]
    sys.exit(main(["agent", *sys.argv[1:]]))
