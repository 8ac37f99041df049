"""The policy file: one YAML document of owners, service rules and quotas, understood with its line numbers.

In: the text as the person wrote it. Out: a ``Policy``, and a ``Problem`` for each part that is kept but
not acted on. The document is read as nodes, never constructed into objects, so that every refusal
names its line and nothing in the file can run.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from gpuledger.errors import BadInput, Misconfigured
from gpuledger.model.missing import Missing
from gpuledger.model.moments import parse_moment
from gpuledger.model.policy import MATCH_FIELDS, HostOwner, Policy, ServiceRule, UserOwner
from gpuledger.model.problem import Problem
from gpuledger.model.shares import NOT_GIVEN as NO_SHARES
from gpuledger.sources import policy_pools, policy_quotas, policy_rates
from gpuledger.sources.policy_shares import parse_shares
from gpuledger.sources.yaml_nodes import MappingReader, compose

ACTED_ON: tuple[str, ...] = (
    "effective_from", "services", "owners", "pools", "billing", "quotas", "shares", "rates", "money",
)  # fmt: skip
"""Top-level keys that this version acts on."""

LONGEST_PATTERN = 1000
"""Characters. A pattern is run on every identity; the longest sensible one is a fraction of this."""

LONGEST_TEXT = 1_000_000
"""Characters of a document: some thousands of users fit many times over."""

_LATEST_US = 253_370_764_800_000_000
"""The first instant of the year 9999: later ones cannot be printed in every zone."""

_RESERVED = re.compile(r"-|forgotten|unattributed(?::.*)?")
_RESERVED_HINT = "`-`, `forgotten` and `unattributed` are the ledger's own words; choose another name"


def read(path: Path) -> str:
    """The text of a policy file.

    Raises:
        Misconfigured: ``no-policy-file`` when it cannot be opened.
        BadInput: ``policy-not-text`` when it is not UTF-8, ``policy-too-large`` beyond :data:`LONGEST_TEXT`.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(4 * LONGEST_TEXT + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise Misconfigured("no-policy-file", f"{path}: {reason}", hint="gpuledger apply FILE") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if len(raw) > 4 * LONGEST_TEXT:
            raise _too_large(str(path)) from None
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadInput(
            "policy-not-text",
            f"byte {error.start} is not UTF-8 text; a policy is a YAML document",
            path=str(path),
            line=line,
            hint=f"file {path}",
        ) from None
    if len(text) > LONGEST_TEXT:
        raise _too_large(str(path))
    return text


def parse(
    text: str, *, path: str, now_us: int, is_stored: bool = False, overlapping_rates: bool = False
) -> tuple[Policy, list[Problem]]:
    """Understand a policy document.

    Args:
        text: the whole document.
        path: the file as the user named it; errors carry it with the line.
        now_us: what ``effective_from`` means where the document gives none.
        is_stored: whether it was parsed before without an error.
        overlapping_rates: whether two rates may price the same line, for who tells of each.

    Raises:
        BadInput: ``policy-not-yaml``, ``policy-empty``, ``policy-not-mapping``, ``policy-unknown-key``,
            ``policy-duplicate-key``, ``policy-missing-key``, ``policy-bad-value``, ``policy-bad-pattern``,
            ``policy-bad-time``, ``policy-overlapping-rates`` or ``policy-too-large``; each names the line.
    """
    if len(text) > LONGEST_TEXT:
        raise _too_large(path)
    document = compose(text, path=path, is_stored=is_stored)
    document.refuse_unknown(ACTED_ON)
    owners = document.mapping("owners")
    if owners:
        owners.refuse_unknown(("users", "namespaces", "hosts"))
    effective_from_us = _effective_from(document, now_us)
    problems: list[Problem] = []
    try:
        rates = policy_rates.rates(document, effective_from_us=effective_from_us, overlapping=overlapping_rates)
    except BadInput as error:
        if not is_stored:
            raise
        # versions before rates were acted on were stored with whatever stood there
        rates = Missing(f"the rates of this version cannot be read: {error.message}")
        problems.append(Problem(code="policy-unused", message=f"its rates are not acted on: {error.message}"))
    pools, unused = policy_pools.pools(document, path=path, is_stored=is_stored)
    policy = Policy(
        effective_from_us=effective_from_us,
        services=tuple(_service(rule) for rule in document.mappings("services")),
        users={name: _user(entry) for name, entry in _named(owners, "users")},
        namespaces={name: _namespace(entry) for name, entry in _named(owners, "namespaces")},
        hosts={name: _host(entry) for name, entry in _named(owners, "hosts")},
        pools=pools,
        shares=parse_shares(shares) if (shares := document.mapping("shares")) else NO_SHARES,
        quotas=policy_quotas.quotas(document),
        zone=policy_quotas.billing_zone(document, is_stored=is_stored),
        rates=rates,
    )
    return policy, [*problems, *unused]


def _effective_from(document: MappingReader, now_us: int) -> int:
    written = document.moment_text("effective_from")
    if not written:
        return now_us
    try:
        at_us = parse_moment(written, now_us=now_us)
    except Misconfigured as error:
        raise document.error("policy-bad-time", error.message, key="effective_from", hint=error.hint) from None
    if not 0 <= at_us < _LATEST_US:
        raise document.error(
            "policy-bad-time", f"{written!r} lies outside 1970 to 9998", key="effective_from", hint="check the year"
        )
    return at_us


def _service(rule: MappingReader) -> ServiceRule:
    rule.refuse_unknown(("service", "team", "project", "match"))
    service = rule.text("service", required=True)
    if _RESERVED.fullmatch(service):
        raise rule.error("policy-bad-value", f"a service cannot be called {service!r}", "service", _RESERVED_HINT)
    match = rule.mapping("match", required=True)
    assert match is not None
    match.refuse_unknown(MATCH_FIELDS)
    if not match.names:
        raise rule.error("policy-bad-value", "an empty `match` would match every process", "match", _MATCH_HINT)
    return ServiceRule(
        service=service,
        team=rule.text("team"),
        project=rule.text("project"),
        match={name: _pattern(match, name) for name in match.names},
    )


_MATCH_HINT = f"match on at least one of {', '.join(MATCH_FIELDS)}"


def _pattern(match: MappingReader, name: str) -> re.Pattern[str]:
    written = match.text(name, required=True, printable=False)
    if len(written) > LONGEST_PATTERN:
        message = f"the pattern is {len(written):,} characters long, more than {LONGEST_PATTERN:,}"
        raise match.error("policy-bad-pattern", message, name, "split it into several rules")
    try:
        with warnings.catch_warnings():
            # Python only warns of a pattern that will mean something else one day; a policy is kept for years.
            warnings.simplefilter("error")
            return re.compile(written)
    except (re.error, OverflowError, RecursionError, FutureWarning, DeprecationWarning) as error:
        message = f"{written!r} is not a regular expression that can be kept: {error}"
        hint = 'in double quotes YAML needs two backslashes: "ollama\\\\.service"'
        raise match.error("policy-bad-pattern", message, name, hint) from None


def _named(owners: MappingReader | None, key: str) -> list[tuple[str, MappingReader]]:
    entries = owners.mapping(key) if owners else None
    return entries.entries() if entries else []


def _user(entry: MappingReader) -> UserOwner:
    entry.refuse_unknown(("team", "project", "roles"))
    return UserOwner(team=entry.text("team"), project=entry.text("project"), roles=entry.texts("roles"))


def _namespace(entry: MappingReader) -> str:
    entry.refuse_unknown(("team",))
    return entry.text("team", required=True)


def _host(entry: MappingReader) -> HostOwner:
    entry.refuse_unknown(("owner", "region", "pool"))
    return HostOwner(owner=entry.text("owner"), region=entry.text("region"), pool=entry.text("pool"))


def _too_large(path: str) -> BadInput:
    return BadInput(
        "policy-too-large",
        f"more than {LONGEST_TEXT:,} characters; a policy is a document that people read",
        path=path,
        hint="check that this is the policy file",
    )
