"""The built-in service rules: the common GPU programs by name, so that a first answer needs no policy.

In: the text of an identity. Out: a service, or none. Only the name of the program that runs decides: the
unit, the executable, the first word, the script or module an interpreter was given. A word further along
(``vim whisper.py``, ``grep vllm``) never does. Programs that run somebody's own work (torchrun, Ray,
Jupyter) keep that work apart in the name, so that two people's jobs are never lumped together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from gpuledger.model.identity import IdentityText, Launched, in_folder, is_interpreter, launch_of, placed


class Apart(StrEnum):
    """What keeps the work of a wrapping program apart."""

    NOTHING = "nothing"
    USER = "user"
    SCRIPT = "script"
    TASK = "task"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """One built-in rule. Any pattern that matches the whole of its name decides.

    Args:
        service: the name it gives.
        program: names of programs, compared with the last path component and the title a process gives itself.
        module: Python modules run with ``-m``.
        unit: systemd units.
        path: paths of programs or scripts, where the name alone is too common.
        image: container images, registry and tag left out.
        apart: what is added to the name.
    """

    service: str
    program: str = ""
    module: str = ""
    unit: str = ""
    path: str = ""
    image: str = ""
    apart: Apart = Apart.NOTHING


BUILT_INS: tuple[BuiltIn, ...] = (
    # ollama runs llama-server as its child, so it stands before llama.cpp and claims by unit and path.
    BuiltIn(
        service="ollama",
        program=r"ollama|ollama_llama_server|ollama-runner",
        unit=r"ollama(@.*)?\.service",
        path=r".*/ollama/(?:.*/)?(?:llama-server|ollama_llama_server|runner)|/tmp/ollama\d*/.*",
        image=r"ollama/ollama",
    ),
    # The engine renames itself; comm is cut to 15 characters (VLLM::EngineCor).
    BuiltIn(
        service="vllm",
        program=r"vllm|VLLM::\S*",
        module=r"vllm(\..*)?",
        unit=r"vllm(@.*)?\.service",
        image=r"vllm/vllm-openai",
    ),
    BuiltIn(
        service="tgi",
        program=r"text-generation-(?:server|launcher|router|benchmark)",
        module=r"text_generation_server(\..*)?",
        image=r"huggingface/text-generation-inference",
    ),
    BuiltIn(
        service="sglang",
        program=r"sglang|sglang::\S*",
        module=r"sglang(\..*)?",
        unit=r"sglang(@.*)?\.service",
        image=r"lmsysorg/sglang",
    ),
    BuiltIn(
        service="triton",
        program=r"tritonserver|triton_python_backend_stub",
        unit=r"triton(?:server)?(@.*)?\.service",
        image=r"nvidia/tritonserver",
    ),
    BuiltIn(
        service="whisper",
        program=r"whisper|whisperx|whisper-(?:cli|server|stream|bench|ctranslate2)|(?:wyoming-)?faster-whisper(?:-server)?",
        module=r"(?:whisper|whisperx|faster_whisper|wyoming_faster_whisper|faster_whisper_server)(\..*)?",
        unit=r"(?:faster-)?whisper(@.*)?\.service",
        path=r".*/whisper\.cpp/(?:.*/)?(?:main|server|stream|command|bench)",
    ),
    BuiltIn(
        service="llama.cpp",
        program=r"llama-(?:server|cli|bench|run|batched|embedding|perplexity|mtmd-cli)",
        module=r"llama_cpp(\..*)?",
        path=r".*/llama\.cpp/(?:.*/)?(?:main|server)",
        image=r"ggml-org/llama\.cpp",
    ),
    BuiltIn(
        service="comfyui",
        program=r"comfyui",
        unit=r"comfyui(@.*)?\.service",
        path=r"(?:.*/)?ComfyUI/main\.py",
    ),
    BuiltIn(
        service="jupyter",
        program=r"jupyter|jupyter-\S+|jupyterhub-singleuser|ipykernel_launcher\.py",
        module=r"(?:ipykernel|ipykernel_launcher|jupyter|jupyterlab|notebook)(\..*)?",
        apart=Apart.USER,
    ),
    BuiltIn(
        service="ray",
        program=r"raylet|ray|ray::\S*",
        path=r".*/ray/_private/workers/default_worker\.py",
        apart=Apart.TASK,
    ),
    BuiltIn(
        service="torchrun",
        program=r"torchrun",
        module=r"torch\.distributed\.(?:run|launch|elastic\..*)",
        apart=Apart.SCRIPT,
    ),
)
"""Every built-in rule; the first that fits decides."""


def built_in_service(text: IdentityText) -> str:
    """The service that a built-in rule gives, or empty.

    ``ollama`` and other servers are named alone; ``torchrun:train.py by alice``, ``ray:Trainer.step by
    alice`` and ``jupyter by alice`` keep the work they run apart.
    """
    launch = _launch(text)
    if not _may_fit(text, launch):
        return ""
    for rule in BUILT_INS:
        if _fits(rule, text, launch):
            return _apart(rule, text, launch)
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    """What was started: the paths that can name the program, the module, and the words that follow."""

    paths: tuple[str, ...]
    module: str
    rest: tuple[str, ...]


_DELETED = " (deleted)"
"""What the kernel appends to ``/proc/PID/exe`` when the file has been replaced."""


def _launch(text: IdentityText) -> _Launch:
    launch = launch_of(text)
    exe = text.exe.removesuffix(_DELETED)
    match launch.what:
        case Launched.PROGRAM:
            first = launch.name.removesuffix(":")  # setproctitle writes "ollama: serving"
            # A title (VLLM::EngineCore) stands over an interpreter's executable; otherwise both name the program.
            own = () if first and is_interpreter(exe) else (exe,)
            return _Launch(paths=(first, *own) if first else own, module="", rest=launch.rest)
        case Launched.MODULE:
            return _Launch(paths=(), module=launch.name, rest=launch.rest)
        case Launched.SCRIPT:
            return _Launch(paths=_script_paths(text, launch.name), module="", rest=launch.rest)
        case Launched.CLASS | Launched.CODE | Launched.INPUT:
            return _Launch(paths=(), module="", rest=())


def _script_paths(text: IdentityText, script: str) -> tuple[str, ...]:
    """A script as typed, in the folder it was typed in, and in the home of the interpreter that runs it."""
    paths = [script, placed(script, text.cwd)]
    first = text.command.split(maxsplit=1)[0]
    if "/ComfyUI/" in first and "/" not in script:
        # `cd ComfyUI; ../ComfyUI/venv/bin/python main.py` names itself by the interpreter's home.
        paths.append(first.split("/ComfyUI/")[0] + "/ComfyUI/" + script)
    return tuple(dict.fromkeys(paths))


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns if pattern))


_ANY_PROGRAM = _any_of(rule.program for rule in BUILT_INS)
_ANY_PATH = _any_of(rule.path for rule in BUILT_INS)
_ANY_MODULE = _any_of(rule.module for rule in BUILT_INS)
_ANY_UNIT = _any_of(rule.unit for rule in BUILT_INS)
_ANY_IMAGE = _any_of(rule.image for rule in BUILT_INS)


def _may_fit(text: IdentityText, launch: _Launch) -> bool:
    """Whether any rule fits at all: most programs are nobody's, and a month names thousands."""
    return (
        any(_ANY_PROGRAM.fullmatch(_name(path)) or _ANY_PATH.fullmatch(path) for path in launch.paths)
        or bool(launch.module and _ANY_MODULE.fullmatch(launch.module))
        or bool(text.unit and _ANY_UNIT.fullmatch(text.unit))
        or bool(text.image and _ANY_IMAGE.fullmatch(_image_name(text.image)))
    )


def _fits(rule: BuiltIn, text: IdentityText, launch: _Launch) -> bool:
    return (
        (bool(rule.program) and any(re.fullmatch(rule.program, _name(path)) for path in launch.paths))
        or (bool(rule.path) and any(re.fullmatch(rule.path, path) for path in launch.paths))
        or _matches(rule.module, launch.module)
        or _matches(rule.unit, text.unit)
        or _matches(rule.image, _image_name(text.image))
    )


def _matches(pattern: str, value: str) -> bool:
    return bool(pattern and value) and re.fullmatch(pattern, value) is not None


def _apart(rule: BuiltIn, text: IdentityText, launch: _Launch) -> str:
    by = f" by {text.user}" if text.user else ""
    match rule.apart:
        case Apart.NOTHING:
            return rule.service
        case Apart.USER:
            work = ""
        case Apart.SCRIPT:
            work = _script(launch.rest, text.cwd)
        case Apart.TASK:
            work = next((path[5:] for path in launch.paths if path.startswith("ray::") and path[5:]), "")
    return f"{rule.service}:{work}{by}" if work else f"{rule.service}{by}"


def _script(words: tuple[str, ...], cwd: str) -> str:
    """The script that a launcher was given, absolute where the folder is known; ``-m module`` counts too."""
    for position, word in enumerate(words):
        if word in ("-m", "--module") and position + 1 < len(words):
            return in_folder(words[position + 1], cwd)
        if re.fullmatch(r"[^-\s]\S*\.py", word):
            return placed(word, cwd)
    return ""


def _name(path: str) -> str:
    # A title such as ray::train/step is a name, not a path.
    return path if "::" in path else path.rsplit("/", 1)[-1]


def _image_name(image: str) -> str:
    """``nvcr.io/nvidia/tritonserver:24.01-py3@sha256:...`` is ``nvidia/tritonserver``: owner and name."""
    plain = image.split("@", 1)[0]
    owner_and_name = plain.rsplit("/", 2)[-2:]
    return "/".join((*owner_and_name[:-1], owner_and_name[-1].split(":", 1)[0]))
