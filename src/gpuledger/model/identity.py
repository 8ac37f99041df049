"""Who used it, as evidence names it: the text of a process identity, what it launched, and the subject it gives.

Pure. Everyone who asks which script or module an interpreter was given asks :func:`launch_of`.
"""

from __future__ import annotations

import json
import operator
import re
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import PurePosixPath

from gpuledger.model.quickly import quickly_made


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityText:
    """What was read of a process while it lived, secrets already redacted.

    An empty string means that the evidence names none: no unit, no container. Policy patterns match on
    most of these fields (``MATCH_FIELDS``; ``cwd`` is none of them). ``unit``, ``cgroup``, ``uid``,
    ``user``, ``container`` and ``pod`` are kernel facts; ``command`` and ``service`` are claims.

    Args:
        exe: path of the executable.
        command: command line, words joined by spaces, redacted, as typed: relative paths stay relative.
        cwd: working directory when the process was read, absolute; what a relative script is relative to,
            unless the process has gone elsewhere meanwhile. Empty where it could not be read.
        user: login name of the real uid, or ``uid:N`` where it has none.
        uid: real user id as text.
        cgroup: the most telling cgroup path.
        unit: systemd unit, ending in ``.service`` or ``.scope``.
        container: container id (64 hex, LXC name, ...).
        runtime: docker, containerd, cri-o, podman, lxc, ...
        image: container image, where a source knows it.
        pod_uid: Kubernetes pod UID.
        pod: ``namespace/name``, where a source knows it.
        namespace: Kubernetes namespace, where a source knows it.
        slurm_job: batch job id.
        slurm_account: batch account, where a source knows it.
        service: a service name declared by the owner (a pid map).
        workload: the control plane's id of a workload.
        team, project: as the control plane or batch system says.
        labels: JSON object of the labels of a workload's transition, sorted by name.
    """

    exe: str = ""
    command: str = ""
    cwd: str = ""
    user: str = ""
    uid: str = ""
    cgroup: str = ""
    unit: str = ""
    container: str = ""
    runtime: str = ""
    image: str = ""
    pod_uid: str = ""
    pod: str = ""
    namespace: str = ""
    slurm_job: str = ""
    slurm_account: str = ""
    service: str = ""
    workload: str = ""
    team: str = ""
    project: str = ""
    labels: str = ""

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, empty fields left out."""
        filled = [head + _quoted(value) for head, value in zip(_HEADS, _values(self), strict=True) if value]
        return f"{{{', '.join(filled)}}}"

    @classmethod
    def from_json(cls, text: str) -> IdentityText:
        """The inverse of :meth:`to_json`."""
        return cls(**json.loads(text))


_SORTED = tuple(sorted(field.name for field in fields(IdentityText)))
_HEADS = tuple(f'"{name}": ' for name in _SORTED)
_values = operator.attrgetter(*_SORTED)
_quoted = json.encoder.encode_basestring_ascii  # as ``json.dumps`` writes it, which makes an encoder for each text


class Launched(StrEnum):
    """What a command line starts."""

    PROGRAM = "program"
    """The executable itself."""
    SCRIPT = "script"
    MODULE = "module"
    """A Python module, ``-m``."""
    CLASS = "class"
    """A Java class, found on the class path, or ``module/class``."""
    CODE = "code"
    """Code on the command line, such as ``-c``."""
    INPUT = "input"
    """An interpreter that was given nothing, or reads its input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A command line, read.

    Args:
        what: what it starts.
        name: the script, module or class as typed, the option that took the code, or the program's first word.
        rest: the words after it.
    """

    what: Launched
    name: str = ""
    rest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """How one interpreter reads its options, from its manual; letters may stand together (``-uc``).

    Args:
        value: letters that take the rest of the word, or else the next word.
        glued: letters that take the rest of the word, and no other.
        code: letters that take code.
        script: letters that take the script, where the first plain word is not it.
        module: letters that take a module.
        long_value: whole options that take the next word.
        long_code: whole options that take code.
        stdin: letters after which plain words are arguments.
        has_clusters: False where one dash introduces a whole name (``java -cp``).
    """

    value: str = ""
    glued: str = ""
    code: str = ""
    script: str = ""
    module: str = ""
    long_value: tuple[str, ...] = ()
    long_code: tuple[str, ...] = ()
    stdin: str = ""
    has_clusters: bool = True


_SHELL = _Options(value="oO", code="c", stdin="s", long_value=("--rcfile", "--init-file"))
_PYTHON = _Options(value="WXQ", code="c", module="m", long_value=("--check-hash-based-pycs",))
_NODE = _Options(
    value="rC", code="ep", long_code=("--eval", "--print"),
    long_value=("--require", "--import", "--loader", "--experimental-loader", "--conditions", "--watch-path",
                "--env-file", "--title"),
)  # fmt: skip
_JAVA = _Options(
    has_clusters=False,
    long_value=("-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path", "--add-modules",
                "--add-exports", "--add-opens", "--add-reads", "--limit-modules", "--enable-native-access", "--source"),
)  # fmt: skip
_R = _Options(code="e", script="f", value="gd", long_value=("--gui", "--debugger"))
_GRAMMARS: tuple[tuple[re.Pattern[str], _Options], ...] = (
    (re.compile(r"(?:python|pypy)[\d.]*t?"), _PYTHON),
    (re.compile(r"(?:ba|da|z|k|a)?sh"), _SHELL),
    (re.compile(r"fish"), _Options(code="c", value="Cdf", long_code=("--command",), long_value=("--init-command",))),
    (re.compile(r"perl[\d.]*"), _Options(value="I", glued="MmixlCD0FV", code="eE")),
    (re.compile(r"ruby[\d.]*"), _Options(value="rICE", glued="WKTx0Fi", code="e")),
    (re.compile(r"node(?:js)?"), _NODE),
    (re.compile(r"java"), _JAVA),
    (re.compile(r"Rscript|R"), _R),
    (
        re.compile(r"julia"),
        _Options(
            value="JLCHpt", glued="Og", code="eE", long_code=("--eval", "--print"),
            long_value=("--sysimage", "--load", "--cpu-target", "--home", "--procs", "--threads"),
        ),
    ),
    (re.compile(r"lua[\d.]*|luajit[\d.-]*"), _Options(value="lj", glued="O", code="e")),
    (re.compile(r"php[\d.]*"), _Options(value="dczS", code="rBRE", script="fF")),
)  # fmt: skip
"""The interpreters that are known, by the last part of their path, and how each reads its options."""
_JAVA_FILE = re.compile(r"\S+\.(?:jar|java)")


def launch_of(text: IdentityText) -> Launch:
    """What a command line starts, its interpreter's options skipped.

    A title that a process wrote over its command line (``VLLM::EngineCore``) reads as a program.
    """
    words = text.command.split()
    if not words:
        return Launch(what=Launched.PROGRAM)
    options = _options_of(words[0])
    if options is None:
        return Launch(what=Launched.PROGRAM, name=words[0], rest=tuple(words[1:]))
    position = 1
    while position < len(words):
        word, after = words[position], tuple(words[position + 1 :])
        if word in ("--", "-"):
            found = _plain(options, after) if word == "--" else None
            return found or Launch(what=Launched.INPUT, rest=after)
        if not word.startswith("-") and not (options is _SHELL and word.startswith("+")):
            if options is _JAVA and word.startswith("@"):  # a file of arguments
                position += 1
                continue
            return _plain(options, (word, *after)) or Launch(what=Launched.INPUT)
        taken = _option(options, word, after)
        if isinstance(taken, Launch):
            return taken
        position += taken
    return Launch(what=Launched.INPUT)


def is_interpreter(path: str) -> bool:
    """Whether a program is told by the script it is given and not by its own name."""
    return _options_of(path) is not None


def placed(path: str, cwd: str) -> str:
    """A path as typed made absolute; as typed where the working directory is not known.

    Only leading ``..`` are resolved: behind a name they may follow a link.
    """
    if not cwd or path.startswith("/"):
        return path
    folder, rest = PurePosixPath(cwd), PurePosixPath(path)
    while rest.parts and rest.parts[0] == "..":
        folder, rest = folder.parent, PurePosixPath(*rest.parts[1:])
    return str(folder.joinpath(rest))


def in_folder(name: str, cwd: str) -> str:
    """A module or class, kept apart from its namesake in another folder: ``train in /home/al/p1``."""
    return f"{name} in {cwd}" if cwd else name


def _options_of(path: str) -> _Options | None:
    name = path.rsplit("/", 1)[-1].removeprefix("-")  # a login shell is called -bash
    return next((options for pattern, options in _GRAMMARS if pattern.fullmatch(name)), None)


def _plain(options: _Options, words: tuple[str, ...]) -> Launch | None:
    """The first word that is no option, and what follows."""
    if not words:
        return None
    is_class = options is _JAVA and not _JAVA_FILE.fullmatch(words[0])
    return Launch(what=Launched.CLASS if is_class else Launched.SCRIPT, name=words[0], rest=words[1:])


def _option(options: _Options, word: str, after: tuple[str, ...]) -> Launch | int:
    """What an option launches, or how many words it is long."""
    if word in options.long_code or word.partition("=")[0] in options.long_code:
        return Launch(what=Launched.CODE, name=word.partition("=")[0])
    if options is _JAVA and word in ("-jar", "-m", "--module"):
        kind = Launched.SCRIPT if word == "-jar" else Launched.CLASS
        return Launch(what=kind, name=after[0], rest=after[1:]) if after else Launch(what=Launched.INPUT)
    if options is _R and word.startswith("--file="):  # what Rscript turns into
        return Launch(what=Launched.SCRIPT, name=word.removeprefix("--file="), rest=after)
    if options is _R and word == "--args":
        return Launch(what=Launched.INPUT, rest=after)
    if word in options.long_value:
        return 2
    if word.startswith("--") or not options.has_clusters:
        return 1
    letters = word[1:]
    for place, letter in enumerate(letters):
        glued = letters[place + 1 :]
        if letter in options.code:
            return Launch(what=Launched.CODE, name=f"-{letter}")
        if letter in options.module or letter in options.script:
            kind = Launched.MODULE if letter in options.module else Launched.SCRIPT
            if glued:
                return Launch(what=kind, name=glued, rest=after)
            return Launch(what=kind, name=after[0], rest=after[1:]) if after else Launch(what=Launched.INPUT)
        if letter in options.stdin:
            return Launch(what=Launched.INPUT, rest=after)
        if letter in options.value:
            # a shell's cluster goes on after its o: `-eo pipefail`, and `-oe pipefail` too
            return 2 if not glued or options is _SHELL else 1
        if letter in options.glued:
            return 1
    return 1


def subject_label(text: IdentityText) -> str:
    """The subject of an identity as ``kind:value``.

    The most binding name wins: a workload of a control plane, a declared service, pod, batch job, container, a
    ``.service`` unit,
    else the script (or program) and its user. A login or terminal ``.scope`` is no name: it would
    lump a person's programs together.
    """
    if text.workload:
        return f"workload:{text.workload}"
    if text.service:
        return f"service:{text.service}"
    if text.pod or text.pod_uid:
        return f"pod:{text.pod or text.pod_uid}"
    if text.slurm_job:
        return f"job:{text.slurm_job}"
    if text.container:
        return f"container:{text.container[:12] if len(text.container) == 64 else text.container}"
    if text.unit.endswith(".service"):
        return f"unit:{text.unit}"
    return f"script:{program(text)} by {text.user or 'unknown user'}"


def program(text: IdentityText) -> str:
    """What runs: two programs of one user that differ in file or folder never share this name.

    The script that an interpreter runs, absolute where the working directory is known; ``-m module in
    FOLDER``; the interpreter and ``-c`` for code on the command line; else the executable, else the
    command's first word.
    """
    launch = launch_of(text)
    match launch.what:
        case Launched.SCRIPT:
            return placed(launch.name, text.cwd)
        case Launched.MODULE:
            return in_folder(f"-m {launch.name}", text.cwd)
        case Launched.CLASS:
            return in_folder(launch.name, text.cwd)
        case Launched.CODE:
            return f"{_executable(text)} {launch.name}"
        case Launched.PROGRAM | Launched.INPUT:
            return _executable(text)


def short_program(text: IdentityText) -> str:
    """The last path component of :func:`program`, for narrow tables; a module or class without its folder."""
    launch = launch_of(text)
    if launch.what is Launched.MODULE:
        return f"-m {launch.name}"
    if launch.what is Launched.CLASS:
        return launch.name
    return PurePosixPath(program(text)).name or program(text)


def _executable(text: IdentityText) -> str:
    if text.exe:
        return text.exe
    first = text.command.split(maxsplit=1)[0] if text.command.strip() else ""
    # a name without a slash was looked up in PATH, and is relative to nothing
    return (placed(first, text.cwd) if "/" in first and "\\" not in first else first) or "unknown program"
