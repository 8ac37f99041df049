"""The JSON of ``sacct --json``, Slurm 21.08 to 25.x: one object a job, its steps inside it.

Text in, rows out; pure. Times are seconds since 1970, so no zone is needed. What changed between versions:
figures are plain or ``{"set": true, "infinite": false, "number": 5}`` (23.02 on), a state is a word or a list
(23.11 on), and what is absent is null, 0, NO_VAL or not there. A dump that ends in the middle keeps the jobs before.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from typing import Any

from gpuledger.errors import BadInput
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.model.problem import Problem
from gpuledger.sources.slurm_rows import HINT, NOT_TOLD, Findings, SlurmRow, SlurmRows
from gpuledger.sources.slurm_sacct import NO_NODES, clean
from gpuledger.sources.slurm_times import LONGEST_SECONDS, NO_VALUE

_BETWEEN = re.compile(r"[\s,\ufeff]*")
_FLAGS = frozenset(
    {"COMPLETING", "CONFIGURING", "STAGE_OUT", "SIGNALING", "POWER_UP_NODE", "RECONFIG_FAIL", "UPDATE_DB"}
)
"""What 23.11 and later list beside a state: flags, not states (slurm job state codes)."""

_WHOLE = re.compile(r'\{\s*"(?:jobs|meta|errors|warnings)"\s*:')
"""How a whole dump begins, and no job: what ``sacct`` writes around its list of jobs."""

_Object = dict[str, Any]


def parse(text: str, *, path: str) -> SlurmRows:
    """The allocations in a dump, each identical one once; steps stand inside them and are no rows.

    Args:
        text: as ``sacct`` printed it, or several of these, one after the other or in a list, as ``jq -s`` puts them;
            of each its object, its list of jobs alone, or one job. Bytes that are no UTF-8 may stand in it as
            surrogates.
        path: the file as the user named it, for messages.

    Raises:
        BadInput: ``not-sacct`` where no jobs are in it.
    """
    dump = _Dump(text, path)
    dump.read()
    return dump.told()


class _Dump:
    """One file as it is read."""

    def __init__(self, text: str, path: str) -> None:
        self._text = text
        self._path = path
        self._findings = Findings(path)
        self._rows: list[SlurmRow] = []
        self._seen: set[bytes] = set()
        self._repeated = 0
        self._decoder = json.JSONDecoder()
        self._line, self._counted = 1, 0
        self._has_jobs = False

    def read(self) -> None:
        place = self._skip(0)
        try:
            while place < len(self._text):
                place = self._document(place)
        except (json.JSONDecodeError, RecursionError):
            message = "the JSON ends or breaks here; the jobs before it are kept"
            self._findings.add(Problem(code="broken-line", message=message), self._line)

    def told(self) -> SlurmRows:
        """What was found.

        Raises:
            BadInput: ``not-sacct`` when that is nothing.
        """
        if not self._rows and self._findings.counts.get("broken-line"):
            message = self._findings.named[0].message
            raise BadInput("not-sacct", message, path=self._path, line=self._line, hint=HINT)
        if not self._has_jobs:
            raise BadInput("not-sacct", "JSON without a list of jobs", path=self._path, hint=HINT)
        return SlurmRows(rows=tuple(self._rows), repeated=self._repeated, problems=self._findings.all())

    def _skip(self, place: int) -> int:
        """The next place that says something; all before it is behind."""
        match = _BETWEEN.match(self._text, place)
        place = match.end() if match else place
        self._line += self._text.count("\n", self._counted, place)
        self._counted = max(place, self._counted)
        return place

    def _decoded(self, place: int) -> tuple[object, int]:
        found, end = self._decoder.raw_decode(self._text, place)
        return found, end

    def _document(self, place: int, *, is_listed: bool = False) -> int:
        """One object, one list of jobs, or one job; an object of a list (``is_listed``) must be one of the two."""
        if self._text[place] == "[":
            return self._jobs(place)
        if self._text[place] != "{":
            raise json.JSONDecodeError("no object", self._text, place)
        began, line = place, self._line
        around: _Object = {}
        has_list = False
        place = self._skip(place + 1)
        while not self._text.startswith("}", place):
            name, place = self._decoded(place)
            place = self._skip(place)
            if not self._text.startswith(":", place) or not isinstance(name, str):
                raise json.JSONDecodeError("no name", self._text, place)
            place = self._skip(place + 1)
            if name == "jobs" and self._text.startswith("[", place):
                place, has_list = self._jobs(place), True
            else:
                around[name], place = self._decoded(place)
                place = self._skip(place)
        if "job_id" in around or (is_listed and not has_list):
            self._job(around, began, place + 1, line)
        self._complained(around)
        return self._skip(place + 1)

    def _jobs(self, place: int) -> int:
        self._has_jobs = True
        place = self._skip(place + 1)
        while not self._text.startswith("]", place):
            if _WHOLE.match(self._text, place):
                place = self._document(place, is_listed=True)
                continue
            line = self._line
            job, end = self._decoded(place)
            if isinstance(job, dict) and isinstance(job.get("jobs"), list) and "job_id" not in job:
                place = self._document(place, is_listed=True)
                continue
            self._job(job, place, end, line)
            place = self._skip(end)
        return self._skip(place + 1)

    def _job(self, job: object, begin: int, end: int, line: int) -> None:
        self._has_jobs = True
        mark = blake2b(self._text[begin:end].encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if mark in self._seen:
            self._repeated += 1
            return
        self._seen.add(mark)
        try:
            self._rows.append(_row(job, line))
        except ValueError as problem:
            self._findings.add(Problem(code="broken-line", message=f"{problem}; it is left out"), line)

    def _complained(self, around: _Object) -> None:
        """What ``sacct`` itself met: after an error its list may not be whole."""
        for what in _said(around.get("errors")):
            message = f"sacct met an error, so its list may not be whole: {what}"
            self._findings.add(Problem(code="sacct-complains", message=message), 0)
        for what in _said(around.get("warnings")):
            self._findings.add(Problem(code="sacct-complains", message=f"sacct warns: {what}"), 0)


def _said(told: object) -> list[str]:
    """The sentences of a list of complaints, whichever way a version writes them."""
    listed = told if isinstance(told, list) else []
    whats = [one.get("description") or one.get("error") if isinstance(one, dict) else one for one in listed]
    return [clean(str(what))[:200] for what in whats]


def _row(job: object, line: int) -> SlurmRow:
    if not isinstance(job, dict):
        raise ValueError("not a job")  # noqa: TRY004 - the caller names the line
    if "job_state" in job:
        raise ValueError("a job as squeue and scontrol print it, and what they forget is not accounting: take sacct's")
    time, state = _inner(job, "time"), _inner(job, "state")
    number = figure(job.get("job_id"))
    if isinstance(number, Missing):
        raise ValueError("a job without job_id")  # noqa: TRY004 - the caller names the line
    allocated = _tres(_inner(job, "tres").get("allocated"))
    return SlurmRow(
        line=line,
        job=_job_id(job, number),
        cluster=_text(job.get("cluster") or _inner(job, "association").get("cluster")),
        user=_text(job.get("user") or _inner(job, "association").get("user")),
        account=_text(job.get("account") or _inner(job, "association").get("account")),
        partition=_text(job.get("partition")),
        qos=_text(job.get("qos")),
        state=_state(state.get("current")),
        submit_us=_moment(time.get("submission")),
        eligible_us=_moment(time.get("eligible")),
        start_us=_moment(time.get("start")),
        end_us=_moment(time.get("end")),
        elapsed_s=_seconds(time.get("elapsed")),
        suspended_s=_seconds(time.get("suspended")),
        restarts=0 if isinstance(restarts := figure(job.get("restart_cnt")), Missing) else restarts,
        allocated=allocated,
        requested=_tres(_inner(job, "tres").get("requested")),
        is_untold=not allocated,
        nodes="" if job.get("nodes") in NO_NODES else _text(job.get("nodes")),
    )


def _inner(job: _Object, name: str) -> _Object:
    found = job.get(name)
    return found if isinstance(found, dict) else {}


def figure(told: object) -> int | Missing:
    """A figure, plain or wrapped; Missing where it is null, not set, infinite, or Slurm's NO_VAL.

    Raises:
        ValueError: something else.
    """
    if isinstance(told, dict):
        # 23.02 leaves "set" out where it is false
        if not told.get("set", "number" in told) or told.get("infinite"):
            return NOT_TOLD
        told = told.get("number")
    if told is None:
        return NOT_TOLD
    if isinstance(told, bool) or not isinstance(told, int):
        raise ValueError(f"{str(told)[:40]!r} is not a whole number")  # noqa: TRY004 - the caller names the line
    is_sentinel = NO_VALUE <= told <= 0xFFFF_FFFF or told >= 0xFFFF_FFFF_FFFF_FFF0
    return NOT_TOLD if is_sentinel or told < 0 else told


def _job_id(job: _Object, number: int) -> str:
    """As ``sacct`` prints it: ``123_4``, ``123_[5-9]``, ``123+0``, or the number."""
    array, het = _inner(job, "array"), _inner(job, "het")
    of_array, task = figure(array.get("job_id")), figure(array.get("task_id"))
    if not isinstance(of_array, Missing) and of_array:
        if not isinstance(task, Missing):
            return f"{of_array}_{task}"
        if waiting := _text(array.get("task")):
            return f"{of_array}_[{waiting.strip('[]')}]"
    of_het, offset = figure(het.get("job_id")), figure(het.get("job_offset"))
    if not isinstance(of_het, Missing) and of_het and not isinstance(offset, Missing):
        return f"{of_het}+{offset}"
    return str(number)


def _state(told: object) -> str:
    """The state's word: of a list the first that is one, for the rest are flags such as COMPLETING."""
    words = told if isinstance(told, list) else [told]
    names = [word.strip().partition(" ")[0].upper() for word in words if isinstance(word, str) and word.strip()]
    if not names:
        raise ValueError("a job without a state")
    return next((name for name in names if name not in _FLAGS), names[0])


def _moment(told: object) -> int | Missing:
    at_s = figure(told)
    if not isinstance(at_s, Missing) and at_s >= NO_VALUE:
        raise ValueError(f"{at_s} is not a time in seconds since 1970")
    return NOT_TOLD if isinstance(at_s, Missing) or at_s == 0 else at_s * SECOND_US


def _seconds(told: object) -> int | Missing:
    found = figure(told)
    return NOT_TOLD if isinstance(found, Missing) or found > LONGEST_SECONDS else found


def _text(told: object) -> str:
    return clean(told) if isinstance(told, str) else ""


def _tres(told: object) -> str:
    """As ``sacct -P`` prints it: ``{"type": "gres", "name": "gpu:a100", "count": 4}`` is ``gres/gpu:a100=4``."""
    if isinstance(told, str):
        return clean(told)
    parts = []
    for one in told if isinstance(told, list) else ():
        if not isinstance(one, dict) or not isinstance(one.get("type"), str):
            raise ValueError("a TRES without a type")  # noqa: TRY004 - the caller names the line
        count = figure(one.get("count"))
        if not isinstance(count, Missing):
            name = _text(one.get("name"))
            parts.append(f"{one['type']}/{name}={count}" if name else f"{one['type']}={count}")
    return ",".join(parts)
