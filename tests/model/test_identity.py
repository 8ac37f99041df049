"""Who used it, as evidence names it: identity texts and the subject each gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
        ("python3 -c print(1)", "/usr/bin/python3.11", "/usr/bin/python3.11 -c"),
        ("bash -x run.sh", "/bin/bash", "run.sh"),
        ("java -jar app.jar", "/usr/bin/java", "app.jar"),
        ("python3 -W ignore", "/usr/bin/python3.11", "/usr/bin/python3.11"),
        ("python -u /home/a/p1/run --x", "/usr/bin/python3.11", "/home/a/p1/run"),
        ("python -W ignore -X dev -OO -sEI t.py", "", "t.py"),
        ("python -Wignore -uBm pkg.train a.py", "", "-m pkg.train"),
        ("python -mpkg.train", "", "-m pkg.train"),
        ("python -uc print(1) a.py", "", "python -c"),
        ("python --check-hash-based-pycs never -- -odd.py", "", "-odd.py"),
        ("python - a.py", "/usr/bin/python3", "/usr/bin/python3"),
        ("node --require x.js --inspect --max-old-space-size=9 srv", "", "srv"),
        ("node -r x.js -e run()", "/usr/bin/node", "/usr/bin/node -e"),
        ("node --eval run()", "/usr/bin/node", "/usr/bin/node --eval"),
        ("java -Xmx1g -Da=b -cp x.jar:y com.x.Main arg.py", "/usr/bin/java", "com.x.Main"),
        ("java -p mods -m app/com.x.Main", "", "app/com.x.Main"),
        ("java -Xmx1g -jar app.jar x", "", "app.jar"),
        ("java @options T.java", "", "T.java"),
        ("java -jar", "/usr/bin/java", "/usr/bin/java"),
        ("bash -euo pipefail run", "/bin/bash", "run"),
        ("bash +x -O extglob --rcfile r run", "/bin/bash", "run"),
        ("sh -c cd a; python t.py", "/usr/bin/dash", "/usr/bin/dash -c"),
        ("bash -lc python t.py", "/bin/bash", "/bin/bash -c"),
        ("-bash", "/bin/bash", "/bin/bash"),
        ("bash -s a b", "/bin/bash", "/bin/bash"),
        ("perl -w -I lib -Mstrict run.pl", "", "run.pl"),
        ("perl -ne print", "/usr/bin/perl", "/usr/bin/perl -e"),
        ("ruby -r json -Ilib run", "", "run"),
        ("Rscript --vanilla fit.R", "", "fit.R"),
        ("/usr/lib/R/bin/exec/R --no-echo --file=fit.R --args x", "", "fit.R"),
        ("R --no-echo -f fit.R", "", "fit.R"),
        ("R --args x", "/usr/lib/R/bin/exec/R", "/usr/lib/R/bin/exec/R"),
        ("julia -t 8 --project=. -O3 sim", "", "sim"),
        ("lua -l a x.lua", "", "x.lua"),
        ("php -d a=1 -f x", "", "x"),
        ("fish -C a x", "", "x"),
        ("python", "", "python"),
        ("ollama serve", "/usr/local/bin/ollama", "/usr/local/bin/ollama"),
        ("ollama serve", "", "ollama"),
    ],
)
def test_an_interpreter_is_told_by_what_it_runs(command: str, exe: str, told: str) -> None:
    """The script or module; the executable where there is none; the first word where nothing else was readable."""
    assert program(IdentityText(command=command, exe=exe)) == told


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("python train.py", "/home/al/p1/train.py"),
        ("python -u ./train.py", "/home/al/p1/train.py"),
        ("bash ../run.sh", "/home/al/run.sh"),
        ("bash a/../run.sh", "/home/al/p1/a/../run.sh"),
        ("python /opt/t.py", "/opt/t.py"),
        ("python -m train", "-m train in /home/al/p1"),
        ("java -cp . Main", "Main in /home/al/p1"),
        ("./bin/run", "/home/al/p1/bin/run"),
        ("ollama serve", "ollama"),
        ("C:\\\\a/b.exe", "C:\\\\a/b.exe"),
    ],
)
def test_what_is_relative_is_told_by_its_folder(command: str, told: str) -> None:
    """Where it is known: two folders' ``train.py`` are two programs. A name alone was looked up in PATH."""
    assert program(IdentityText(command=command, cwd="/home/al/p1")) == told


@given(
    st.lists(st.text(max_size=12), max_size=6), st.sampled_from(["python", "bash", "java", "perl", "node", "R", "x"])
)
def test_any_command_has_a_program(words: list[str], first: str) -> None:
    """And never an empty one."""
    text = IdentityText(command=" ".join([first, *words]))
    assert program(text).strip()
    assert short_program(text).strip()


def test_two_projects_are_never_lumped_together() -> None:
    """Same user, same words, another folder."""
    for command in ("python train.py", "python -u run", "python -m train", "java Main", "bash -e run"):
        labels = {
            subject_label(IdentityText(command=command, exe="/usr/bin/x", user="al", cwd=cwd))
            for cwd in ("/home/al/p1", "/home/al/p2")
        }
        assert len(labels) == 2


def test_the_short_program_is_the_last_part_of_the_path() -> None:
    """For narrow tables."""
    assert short_program(IdentityText(exe="/usr/local/bin/ollama")) == "ollama"
    assert short_program(IdentityText(command="python3 -m torch.run", cwd="/home/al/p1")) == "-m torch.run"
    assert short_program(IdentityText(command="java -cp . Main", cwd="/home/al/p1")) == "Main"
