"""Who used it, as evidence names it: identity texts and the subject each gives."""

from __future__ import annotations

import pytest

from gpuledger.model.identity import IdentityText, program, short_program, subject_label

HEX = "0123456789abcdef" * 4


def test_a_text_survives_its_canonical_json() -> None:
    """Sorted keys, empty fields left out: equal texts give equal bytes, and so equal keys."""
    text = IdentityText(
        user="al", exe="/usr/bin/ollama", command="ollama serve \N{LATIN SMALL LETTER U WITH DIAERESIS}"
    )
    assert text.to_json() == '{"command": "ollama serve \\u00fc", "exe": "/usr/bin/ollama", "user": "al"}'
    assert IdentityText.from_json(text.to_json()) == text


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"service": "xtts", "pod": "a/b", "container": HEX}, "service:xtts"),
        ({"pod": "team-a/web-0", "pod_uid": "u-1", "container": HEX}, "pod:team-a/web-0"),
        ({"pod_uid": "u-1", "slurm_job": "5"}, "pod:u-1"),
        ({"slurm_job": "5", "container": HEX}, "job:5"),
        ({"container": HEX, "unit": "docker.service"}, "container:0123456789ab"),
        ({"container": "lxc-web", "unit": "x.service"}, "container:lxc-web"),
        ({"unit": "ollama.service", "exe": "/usr/bin/ollama"}, "unit:ollama.service"),
    ],
)
def test_the_most_binding_name_wins(fields: dict[str, str], label: str) -> None:
    """Declared service, pod, batch job, container, unit: in this order."""
    assert subject_label(IdentityText(**fields)) == label


def test_a_login_scope_is_no_name() -> None:
    """It would lump a person's programs together: the script and its user are the subject."""
    text = IdentityText(
        unit="session-3.scope", exe="/usr/bin/python3.11", command="python3 /home/al/train.py -x", user="al"
    )
    assert subject_label(text) == "script:/home/al/train.py by al"


def test_who_cannot_be_read_is_said_to_be_unknown() -> None:
    """No blank that reads as a name."""
    assert subject_label(IdentityText()) == "script:unknown program by unknown user"


@pytest.mark.parametrize(
    ("command", "exe", "told"),
    [
        ("python3 -u train.py --epochs 3", "/usr/bin/python3.11", "train.py"),
        (
            "/opt/venv/bin/python -m vllm.entrypoints.api_server",
            "/usr/bin/python3.11",
            "-m vllm.entrypoints.api_server",
        ),
        ("python3 -c print(1)", "/usr/bin/python3.11", "/usr/bin/python3.11"),
        ("bash -x run.sh", "/bin/bash", "run.sh"),
        ("java -jar app.jar", "/usr/bin/java", "app.jar"),
        ("python3 -W ignore", "/usr/bin/python3.11", "/usr/bin/python3.11"),
        ("ollama serve", "/usr/local/bin/ollama", "/usr/local/bin/ollama"),
        ("ollama serve", "", "ollama"),
    ],
)
def test_an_interpreter_is_told_by_what_it_runs(command: str, exe: str, told: str) -> None:
    """The script or module; the executable where there is none; the first word where nothing else was readable."""
    assert program(IdentityText(command=command, exe=exe)) == told


def test_the_short_program_is_the_last_part_of_the_path() -> None:
    """For narrow tables."""
    assert short_program(IdentityText(exe="/usr/local/bin/ollama")) == "ollama"
    assert short_program(IdentityText(command="python3 -m torch.distributed.run")) == "-m torch.distributed.run"
