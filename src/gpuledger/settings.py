"""Settings: one explicit list, each with an environment variable, a default and a sentence.

Read order: command-line option, environment variable, TOML file, default. ``docs/reference/settings.md``
is generated from :data:`SETTINGS`.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuledger.errors import BadInput, Misconfigured


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting.

    Args:
        name: dotted TOML key, ``agent.interval``.
        variable: environment variable.
        default: text, as it would be typed.
        sentence: what it does.
    """

    name: str
    variable: str
    default: str
    sentence: str


SETTINGS: tuple[Setting, ...] = (
    Setting(
        name="ledger",
        variable="GPULEDGER_LEDGER",
        default="",
        sentence="The ledger: a path, sqlite:///PATH, or postgresql://USER@HOST/DATABASE. Unset: "
        "/var/lib/gpuledger/ledger.db for root or where it is readable, else gpuledger/ledger.db in the user's data "
        "directory.",
    ),
    Setting(
        name="host",
        variable="GPULEDGER_HOST",
        default="",
        sentence="The name of this machine in the ledger. Unset: the kernel's host name.",
    ),
    Setting(
        name="archive",
        variable="GPULEDGER_ARCHIVE",
        default="",
        sentence="The folder to which `archive` moves old evidence, and where `verify` and `explain` find it. Unset: "
        "where it was written.",
    ),
    Setting(
        name="agent.interval",
        variable="GPULEDGER_AGENT_INTERVAL",
        default="1s",
        sentence="Time between two looks at the driver; the agent looks more often by itself while the ring fills.",
    ),
    Setting(
        name="agent.flush",
        variable="GPULEDGER_AGENT_FLUSH",
        default="5m",
        sentence="Longest time that watching and living contexts stay unwritten; anything new is written at once.",
    ),
    Setting(
        name="agent.watch",
        variable="GPULEDGER_AGENT_WATCH",
        default="auto",
        sentence="How the agent names processes: ebpf, connector, poll, or auto: the first that this machine lets.",
    ),
    Setting(
        name="agent.enable_accounting",
        variable="GPULEDGER_AGENT_ENABLE_ACCOUNTING",
        default="false",
        sentence="Whether the agent, as root, enables the driver's accounting, and again after a driver reload.",
    ),
)
"""Every setting, in the order of the reference."""


def load_settings(config: Path | None, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Every setting's text by name, from environment, file, or default.

    Raises:
        BadInput: ``bad-settings`` when the file is not TOML or holds an unknown key.
        Misconfigured: ``no-settings-file`` when a named file cannot be read; ``bad-host`` when the name of the
            machine, which every chain of rows carries, is none.
    """
    environment = os.environ if environment is None else environment
    from_file = _read_file(config) if config else {}
    found = {
        setting.name: environment.get(setting.variable) or from_file.get(setting.name, setting.default)
        for setting in SETTINGS
    }
    host = found["host"]
    if not host.isprintable() or host != host.strip() or len(host) > _LONGEST_HOST:
        raise Misconfigured(
            "bad-host", f"host {host[:40]!r} is no name of a machine: one printable line without outer blanks",
            hint="set GPULEDGER_HOST=NAME, or host in the settings file",
        )  # fmt: skip
    return found


_LONGEST_HOST = 253
"""Characters of a host name (RFC 1035, as written)."""


def _read_file(path: Path) -> dict[str, str]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        told = f"{path}: {error.strerror}"
        raise Misconfigured("no-settings-file", told, hint="--config FILE, a TOML file that is there") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput("bad-settings", str(error), path=str(path), hint="the file must be TOML") from None
    flat: dict[str, str] = {}
    for key, value in document.items():
        nested = value.items() if isinstance(value, dict) else [("", value)]
        for name, item in nested:
            dotted = f"{key}.{name}" if name else key
            flat[dotted] = str(item).lower() if isinstance(item, bool) else str(item)
    known = {setting.name for setting in SETTINGS}
    for name in flat:
        if name not in known:
            hint = f"known: {', '.join(sorted(known))}"
            raise BadInput("bad-settings", f"unknown setting {name!r}", path=str(path), hint=hint)
    return flat


_SPAN = re.compile(r"(\d+)(ms|s|m|h)?")
_SPAN_US = {"ms": 1000, "s": 1_000_000, None: 1_000_000, "m": 60_000_000, "h": 3_600_000_000}


def parse_span_us(text: str, *, name: str) -> int:
    """Microseconds of a span as people type it: ``500ms``, ``1s``, ``60``, ``5m``.

    Raises:
        Misconfigured: ``bad-span`` when it is none, or shorter than 10 ms.
    """
    found = _SPAN.fullmatch(text.strip())
    span_us = int(found[1]) * _SPAN_US[found[2]] if found else 0
    if span_us < 10_000:
        raise Misconfigured("bad-span", f"{name}: {text!r} is not a span of 10 ms or more", hint="use 500ms, 1s, 5m")
    return span_us
