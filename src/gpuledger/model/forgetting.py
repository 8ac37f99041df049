"""What ``forget`` is asked to drop, and what came of it: names go, amounts stand."""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which identity texts are meant: those that fit everything that was given.

    Args:
        user: login name, as the kernel's uid gave it; empty: any.
        subject: as usage prints it, ``unit:ollama.service``; empty: any.
        service: by today's policy; empty: any.
        before_us: their processes were last seen alive before this, microseconds UTC; Missing: at any time.
    """

    user: str = ""
    subject: str = ""
    service: str = ""
    before_us: int | Missing

    @property
    def is_empty(self) -> bool:
        """Whether nothing was given, which would mean everything."""
        return not (self.user or self.subject or self.service) and isinstance(self.before_us, Missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenLine:
    """The texts of one subject and user.

    Args:
        subject, service, user: its names.
        texts: how many texts.
        read_us: when one of them was last read from a living process, microseconds UTC; Missing where no row says.
        quantity: ms of ``gpu.context`` of all time that they name.
        open: contexts that may still be open.
    """

    subject: str
    service: str
    user: str
    texts: int
    read_us: int | Missing
    quantity: int
    open: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetReport:
    """What ``forget`` would drop, or has dropped.

    Args:
        done: whether it was; else this is what would be.
        words: the choice as it was typed, to be typed again.
        lines: by subject, most context time first.
        total: ms of ``gpu.context`` in the whole ledger, named or not: the same before and after.
        dropped: texts deleted; 0 unless done.
        verified: whether the checks of the ledger itself found nothing afterwards; Missing unless done.
        problems: where a name stands that is no identity text.
    """

    done: bool
    words: str
    lines: tuple[ForgottenLine, ...]
    total: int
    dropped: int
    verified: bool | Missing
    problems: tuple[Problem, ...] = ()

    @property
    def texts(self) -> int:
        """How many texts were chosen."""
        return sum(line.texts for line in self.lines)

    @property
    def quantity(self) -> int:
        """Ms of ``gpu.context`` that lose their name."""
        return sum(line.quantity for line in self.lines)

    @property
    def open(self) -> int:
        """Contexts among them that may still be open."""
        return sum(line.open for line in self.lines)
