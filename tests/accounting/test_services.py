"""The built-in service rules: what they name, and what they must leave alone."""

from __future__ import annotations

import pytest

from gpuledger.accounting.services import BUILT_INS, built_in_service
from gpuledger.model.identity import IdentityText

CASES = [
    # ollama: by unit, by program, its children by path
    ("ollama", {"unit": "ollama.service", "exe": "/usr/lib/ollama/llama-server", "command": "llama-server --port 1"}),
    ("ollama", {"exe": "/usr/local/bin/ollama", "command": "/usr/local/bin/ollama runner --mlx-engine --model x"}),
    ("ollama", {"command": "ollama serve"}),
    ("ollama", {"exe": "/tmp/ollama123/runners/cuda_v12/ollama_llama_server", "command": "ollama_llama_server"}),
    ("ollama", {"exe": "/usr/local/lib/ollama/llama-server", "command": "/usr/local/lib/ollama/llama-server"}),
    ("ollama", {"exe": "/usr/local/bin/ollama (deleted)", "command": ""}),
    ("ollama", {"image": "docker.io/ollama/ollama:latest", "command": "/bin/app"}),
    # vLLM: the server, its engine under its own title, and that title cut to 15 characters
    ("vllm", {"exe": "/usr/bin/python3.12", "command": "/usr/bin/python3 /usr/local/bin/vllm serve Qwen/Q --port 8"}),
    ("vllm", {"exe": "/usr/bin/python3.12", "command": "python -u -m vllm.entrypoints.openai.api_server --model x"}),
    ("vllm", {"exe": "/usr/bin/python3.12", "command": "VLLM::EngineCore"}),
    ("vllm", {"exe": "/usr/bin/python3.12", "command": "VLLM::Worker_TP0"}),
    ("vllm", {"exe": "/usr/bin/python3.12", "command": "VLLM::EngineCor"}),
    ("vllm", {"image": "vllm/vllm-openai:v0.9@sha256:00", "command": "/entry"}),
    ("llama.cpp", {"exe": "/opt/llama.cpp/build/bin/llama-server", "command": "./llama-server -m a.gguf"}),
    ("llama.cpp", {"command": "llama-cli -m a.gguf"}),
    ("tgi", {"command": "text-generation-server download-weights x"}),
    ("tgi", {"command": "/usr/local/bin/text-generation-launcher --model-id x"}),
    ("tgi", {"command": "/usr/bin/python3 /opt/conda/bin/text-generation-server serve x"}),
    ("sglang", {"command": "sglang::scheduler_TP0"}),
    ("sglang", {"command": "python3 -m sglang.launch_server --model x"}),
    ("triton", {"command": "/opt/tritonserver/bin/tritonserver --model-repository=/models"}),
    ("triton", {"image": "nvcr.io/nvidia/tritonserver:24.01-py3", "command": "x"}),
    ("comfyui", {"command": "python3 /home/al/ComfyUI/main.py --listen"}),
    ("comfyui", {"command": "/home/al/ComfyUI/venv/bin/python main.py --listen"}),
    ("comfyui", {"unit": "comfyui.service", "command": "python main.py"}),
    ("whisper", {"command": "/usr/bin/python3 /home/al/.local/bin/whisper a.wav --model large"}),
    ("whisper", {"command": "whisper-cli -f a.wav"}),
    ("whisper", {"command": "/opt/whisper.cpp/build/bin/main -f a.wav"}),
    ("whisper", {"command": "python3 -m wyoming_faster_whisper --uri tcp://0.0.0.0:1"}),
    ("whisper", {"command": "faster-whisper-server"}),
    # wrapping programs keep the work apart
    ("jupyter by al", {"command": "/usr/bin/python3 -m ipykernel_launcher -f /run/k.json", "user": "al"}),
    ("jupyter by bo", {"command": "/usr/bin/python3 /usr/local/bin/jupyter-lab", "user": "bo"}),
    ("ray:Trainer.step() by al", {"exe": "/usr/bin/python3.11", "command": "ray::Trainer.step()", "user": "al"}),
    ("ray by al", {"command": "/opt/ray/core/src/ray/raylet/raylet --node", "user": "al"}),
    ("torchrun:train.py by al", {"command": "/usr/bin/python3 /opt/bin/torchrun --nproc 2 train.py -x", "user": "al"}),
    ("torchrun:/a/t.py by al", {"command": "python -m torch.distributed.run /a/t.py", "user": "al"}),
    ("torchrun:pkg.main by al", {"command": "python -m torch.distributed.launch -m pkg.main", "user": "al"}),
    ("torchrun", {"command": "torchrun --help"}),
    ("torchrun:/h/p1/t.py by al", {"command": "torchrun t.py", "user": "al", "cwd": "/h/p1"}),
    ("torchrun:t in /h/p1 by al", {"command": "torchrun -m t", "user": "al", "cwd": "/h/p1"}),
    # the interpreter's options, and the folder a script was started in
    ("vllm", {"command": "python -W ignore -uIm vllm.entrypoints.api_server", "cwd": "/"}),
    ("vllm", {"command": "bash -e /opt/bin/vllm serve"}),
    ("comfyui", {"command": "python main.py --listen", "cwd": "/home/al/ComfyUI"}),
]


@pytest.mark.parametrize(("service", "fields"), CASES)
def test_common_programs_are_named(service: str, fields: dict[str, str]) -> None:
    """Each common GPU program is named as its users call it."""
    assert built_in_service(IdentityText(**fields)) == service


OTHERS = [
    {},
    {"command": "vim whisper.py"},
    {"command": "grep -r vllm ."},
    {"command": "python train_whisper.py --ollama", "exe": "/usr/bin/python3"},
    {"command": "python /home/al/whisper/finetune.py"},
    {"command": "python /home/al/ollama/client.py"},
    {"command": "/home/al/ComfyUI/venv/bin/python train.py"},
    {"command": "python main.py"},
    {"command": "python -c import_vllm"},
    {"command": "python"},
    {"command": "python -m mypackage.vllm"},
    {"command": "python -uc import_vllm /x/vllm"},
    {"command": "python -W vllm"},
    {"command": "bash -c torchrun", "exe": "/usr/bin/bash"},
    {"unit": "my-ollama-proxy.service", "command": "/opt/proxy"},
    {"image": "evil/ollama", "command": "/x"},
]


@pytest.mark.parametrize("fields", OTHERS)
def test_anything_else_is_left_to_its_subject(fields: dict[str, str]) -> None:
    """A name further along the command line, or in a path, is no name of the program."""
    assert built_in_service(IdentityText(**fields)) == ""


def test_two_peoples_jobs_are_never_lumped_together() -> None:
    """The same script under torchrun, by two users, is two services."""
    names = {built_in_service(IdentityText(command="torchrun train.py", user=user)) for user in ("al", "bo")}
    assert len(names) == 2


def test_every_rule_says_how_it_is_recognised() -> None:
    """No rule is without a pattern, and none gives a name twice."""
    names = [rule.service for rule in BUILT_INS]
    assert len(set(names)) == len(names)
    for rule in BUILT_INS:
        assert rule.program or rule.module or rule.unit or rule.path or rule.image
