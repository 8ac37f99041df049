"""Secrets never leave the source, and what is none stays readable."""

from __future__ import annotations

import shlex
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.sources.redaction import LONGEST_COMMAND, REDACTED, redact

SECRET = "Zq7-value_9"


@pytest.mark.parametrize(
    "command",
    ["x --password {}", "x --password={}", "x --api-key {}", "x --api-key={}", "x --hf-token {} --model m",
     "x --auth user:{}",
     "HF_TOKEN={} python a.py", "env AWS_SECRET_ACCESS_KEY={} x", "x OPENAI_API_KEY={}",
     "docker run -e HF_TOKEN={} img",
     "x -eHF_TOKEN={}", "x --env=HF_TOKEN={}", "x --build-arg TOKEN={}", "x +wandb.api_key={}",
     "x --set auth.password={},b=1",
     "java -Ddb.password={}", "curl -H 'Authorization: Bearer {}' http://h", "curl -H Authorization:{}",
     "x -H 'X-Api-Key: {}'",
     "curl -u me:{} http://h", "curl --user me:{} x", "curl -ume:{} x", "mysql -p{} -h db", "mysqldump --password={}",
     "sshpass -p {} ssh h", "sshpass -p{} ssh h", "redis-cli -a {}", "docker login -u me -p {}", "sudo mysql -p{}",
     "psql postgres://u:{}@h/db", "x redis://:{}@h:6379/0", "git clone https://{}@github.com/x",
     "x 'http://h/?token={}&x=1'",
     "bash -c 'export HF_TOKEN={}; python t.py --epochs 3'", "bash -c 'python t.py --api-key {} --epochs 3'",
     "bash -c 'python t.py --api-key \"{} with blanks\" --epochs 3'",
     "bash -c 'curl -H \"Authorization: Bearer {}\" h'",
     "x '{{\"model\": \"m\", \"api_key\": \"{}\"}}'", "x '{{\"api_key\":\"{}\"}}'", "x 'api_key: {}'",
     "x --token --password {}",
     "x Authorization: Bearer {} --n 1", "x '--password={} with blanks'", "x --password '{} with blanks'",
     "x --password= {}",
     "x Bearer {}", "x --gradio-auth me:{}", "x --cookie {}", "x --password '-{}'", "x --token '--{}'",
     "sh -c 'sh -c \"x --token {}\"'",
     # code and JSON
     "python3 -c \"import os; os.environ['OPENAI_API_KEY']='{}'; import vllm\"",
     "python3 -c \"import os; os.environ['OPENAI_API_KEY'] = '{} with blanks' ; import vllm\"",
     "python3 -c \"os.environ['HF_TOKEN']='{}'\"",
     "python3 -c \"print('it'); os.environ.setdefault('HF_TOKEN','{}')\"",
     "python3 -c \"import os; os.environ.setdefault('HF_TOKEN', '{} x'); go()\"",
     "python3 -c \"import os; os.putenv('HF_TOKEN', '{} x'); go()\"",
     "python3 -c \"from a import b; b(c={{'api_key': '{} x'}})\"",
     "python3 -c \"from a import b; b(auth=('me', '{}'))\"",
     "python3 -c \"from a import b; b(api_keys=['me', '{}'])\"",
     "python3 -c \"from a import b; token: str = 'x' + '{} y'\"", "python3 -c \"# don't; token = '{} y'\"",
     "python3 -c \"import subprocess; subprocess.run(['x', '--token', '{}'])\"",
     "python3 -c \"import r; r.get(u, headers={{'Authorization': 'Basic {}'}})\"",
     "python3 -c \"import r; r.get(u, headers=dict(Authorization='Foo {}'))\"",
     "node -e \"process.env['HF_TOKEN'] = '{}'; go()\"", "ruby -e \"h = {{'token' => '{}'}}; go\"",
     "x '{{\"a\": {{\"token\": \"{} y\"}}, \"b\": 1}}'", "x '{{\\\"token\\\": \\\"{} y\\\"}}'",
     # blanks around the sign, across words and inside one
     "x TOKEN = {} y", "x TOKEN ={} y", "x TOKEN= {} y", "x 'run TOKEN = {} y'", "x \"token\": \"{}\"",
     "x {{'token' : {}}}", "sh -c 'export HF_TOKEN={}; python t.py'", "sh -c 'HF_TOKEN = {} ; python t.py'",
     "sh -c 'export HF_TOKEN=\"{} y\"; python t.py'",
     # logins in URLs, headers, programs
     "x https://user:p/{}@host/", "x https://user:{}/w@host/", "x https://user:p@{}@host/a", "x https://u:12345{}/@h/",
     "curl -H 'Authorization: Basic {}' h", "x Authorization:Basic {}", "sh -c 'curl -H \"Authorization: Foo {}\" h'",
     "zip -P {} a b", "zip -P{} a b", "unzip -P {} a", "7z x -p{} a", "unrar x -hp{} a", "openssl enc -k {}",
     "x --passphrase {}", "x --pin {}", "x --card-pin={}", "x --auth '--token {}'", "x --password '-x secret {}'"],
)  # fmt: skip
def test_a_secret_is_gone_wherever_it_is_given(command: str) -> None:
    """Options, assignments, headers, keys, URLs, programs that are known, nested command lines."""
    text = redact(shlex.split(command.format(SECRET)))
    assert SECRET not in text
    assert REDACTED in text


@pytest.mark.parametrize(
    "secret",
    ["hf_" + "aB3" * 11, "sk-" + "aB3-" * 9, "sk-ant-api03-" + "x9Y" * 9, "ghp_" + "aB3" * 12,
     "github_pat_" + "aB3_" * 9,
     "glpat-" + "aB3" * 7, "AKIA" + "ABCD1234EFGH5678", "AIza" + "aB3" * 12, "xoxb-1234567890-" + "aB3" * 6,
     "nvapi-" + "aB3" * 9,
     "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "gsk_" + "aB3" * 12, "npm_" + "aB3" * 12],
)  # fmt: skip
def test_a_secret_is_known_by_its_shape(secret: str) -> None:
    """Where no name gives it away: as a bare word, glued to another, in a nested command line."""
    for command in ([secret], ["x", f"--thing={secret}"], ["sh", "-c", f"run {secret} now"], ["x", f"a/{secret}/b"]):
        assert secret not in redact(command)


@pytest.mark.parametrize(
    "command",
    ["vllm serve m --max-tokens 100 --tokenizer x --max_new_tokens 5 --token-limit 3 --eos-token </s>",
     "vllm serve m --tokens-per-second 9 --key-frames 2 --keyboard us --kv-cache-dtype fp8 --num-key-value-heads 8",
     "python train.py --max_tokens=100 --pin-memory --no-auth --model meta/llama --port 8000 --data-key image",
     "TOKENIZERS_PARALLELISM=false CUDA_VISIBLE_DEVICES=0,1 PWD=/home/u python -m torch.distributed.run train.py",
     "ffmpeg -pass 1 -i in.mp4 -passlogfile y out.mp4", "docker run -p 8080:80 --gpus all img:tag", "python -p 1",
     "curl http://host:8080/path@v1", "git clone git@github.com:x/y", "git clone ssh://git@host/x",
     "bash --login run.sh",
     "bash -c 'python t.py --epochs 3 && echo done'", "x --tokens 100 --auth none --keys 3 --use-auth --model m",
     "ray::train.step", "C:\\Windows\\explorer.exe /select:x", "python -c 'print(1, 2)'",
     "x --image-token <image> a=b", "x --author me --authority-file /a/b --num-tokens 5 --tokens 4096 --keys 12345",
     "gmx mdrun -pin on -pinoffset 0 --led-pin 18", "docker run img@sha256:" + "0f" * 32,
     "docker run reg:5000/img@sha256:" + "0f" * 32, "x http://reg:5000/img@sha256:" + "0f" * 32,
     "docker logs -f " + "0f" * 32, "git show -p " + "0f1" * 13 + "a", "x --revision " + "0f1" * 13 + "a",
     "x --integrity sha512-" + "aB3" * 28, "x --device GPU-8c1f5e2a-7d40-4b6e-9a53-0f6d2c9b7e11",
     "vllm serve --model meta-llama/Meta-Llama-3.1-405B-Instruct-FP8-dynamic",
     "vllm serve --model meta-llama/Meta-Llama-3-405B-Instruct-FP8-dynamic-W8A8",
     "x --out /data/Run1A/Exp2B/CheckPoint3C/WithALongName/Step4D", "python -c 'x = tok.eos_token; n = max_tokens = 5'",
     "sh -c 'mkdir -p a ; zip -r a.zip b'", "python train.py --key-frames 3 --keyboard us --tokenizer x"],
)  # fmt: skip
def test_what_is_no_secret_stays_as_it_is(command: str) -> None:
    """Word for word."""
    words = command.split(" ") if "\\" in command else shlex.split(command)
    assert redact(words) == " ".join(words)


def test_what_is_around_a_secret_stays() -> None:
    """The program and its other options still name what ran."""
    assert (
        redact(["python", "t.py", "--api-key", "abc", "--epochs", "3"]) == "python t.py --api-key [redacted] --epochs 3"
    )
    assert redact(["HF_TOKEN=abc", "python", "t.py"]) == "HF_TOKEN=[redacted] python t.py"
    assert redact(["bash", "-c", "mysql -pabc -h db"]) == "bash -c mysql -p[redacted] -h db"
    assert redact(["x", "postgres://u:pw@h/db"]) == "x postgres://u:[redacted]@h/db"


@pytest.mark.parametrize("command", ["x --auth {}", "x --pin {}", "x --pass={}", "x --cookie {}", "x 'y auth = {}'"])
def test_a_long_number_may_be_a_secret(command: str) -> None:
    """From four digits on; a small one is a switch, a pin of a chip or ffmpeg's pass."""
    assert REDACTED in redact(shlex.split(command.format("12345678")))
    assert REDACTED in redact(shlex.split(command.format("1234")))
    assert REDACTED not in redact(shlex.split(command.format("123")))


def test_random_characters_behind_an_option_are_a_secret() -> None:
    """Although the option's name tells nothing; elsewhere, and in hexadecimal, they stay."""
    blob = "q7RzB2xLk9TfW4mVn8YpD3sHc6JgA1eUo5Xi0ZbQ+w="
    for words in (
        ["x", "-k", blob],
        ["x", "--thing", blob],
        ["x", f"--thing={blob}"],
        ["sh", "-c", f"x -k '{blob}' y"],
    ):
        assert blob not in redact(words)
    assert redact(["wandb", "login", "0f1" * 13 + "a"]) == "wandb login [redacted]"
    assert redact(["x", blob]) == f"x {blob}"


def test_code_around_a_secret_stays() -> None:
    """As far as it can be told where the value ends."""
    code = "import os; os.environ['OPENAI_API_KEY'] = 'a b' ; import vllm"
    assert (
        redact(["python3", "-c", code])
        == "python3 -c import os; os.environ['OPENAI_API_KEY'] = [redacted] ; import vllm"
    )
    assert redact(["x", "TOKEN", "=", "abc", "--n", "1"]) == "x TOKEN = [redacted] --n 1"
    assert redact(["x", "https://u:p/w@host/a"]) == "x https://u:[redacted]@host/a"


def test_a_switch_that_sounds_like_a_secret_takes_nothing_away() -> None:
    """The next option shows that it had no value."""
    assert redact(["x", "--use-auth", "--model", "m"]) == "x --use-auth --model m"


def test_long_command_lines_are_cut_after_redaction() -> None:
    """At 4,096 bytes, never in a way that shows a secret, and no character is cut in two."""
    for length in range(4060, 4110):
        text = redact(["x" * length, "--password", SECRET * 50])
        assert len(text.encode()) <= LONGEST_COMMAND
        assert SECRET[:4] not in text
    assert redact(["é" * 5000]).encode().decode() == "é" * (LONGEST_COMMAND // 2)
    assert SECRET[:4] not in redact(["x" * 9000 + "--password=" + SECRET])


def test_control_characters_do_not_reach_a_terminal() -> None:
    """A process chooses its own title."""
    assert redact(["a\x1b[31mb\nc"]) == "a [31mb c"


_SECRET_OPTIONS = st.sampled_from([
    "--password", "--token", "--api-key", "--hf-token", "--secret", "--client-secret", "--credentials",
    "--passphrase", "-token",
    "--access-token", "--db.password", "--wandb_api_key", "--private-key", "--apiKey",
])  # fmt: skip
_PLAIN_WORDS = st.sampled_from(
    ["--epochs", "3", "train.py", "--max-tokens", "100", "--lr=0.1", "-v", "a b", "'", '"', "=", ":"]
)
_SECRETS = st.text(min_size=1, max_size=30).map(lambda text: f"Qz7{text}7zQ")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("client -phunter2 db", "client -p[redacted] db"),
        ("/opt/mysql8/bin/mysql.real -u root -pSECRET", "/opt/mysql8/bin/mysql.real -u root -p[redacted]"),
        ("sh -c 'client -pSECRET'", "sh -c client -p[redacted]"),
        ("app -u bob:SECRET x", "app -u bob:[redacted] x"),
        ("app --user bob:12345", "app --user bob:[redacted]"),
        ("app --user=bob:SECRET", "app --user=bob:[redacted]"),
        ("app --proxy-user bob:SECRET", "app --proxy-user bob:[redacted]"),
        ("app https://bob:SECRET@h/x", "app https://bob:[redacted]@h/x"),
        ("f(auth=('me', 'Qz7) 7zQ'))", "f(auth=[redacted]"),
    ],
)
def test_what_programs_take_that_nobody_listed(command: str, shown: str) -> None:
    """As mysql and curl take it: a password behind -p in one word, a user with a password behind -u."""
    words = [command] if command.startswith("f(") else shlex.split(command)
    assert redact(words) == shown


@pytest.mark.parametrize(
    "command",
    ["gcc -pthread -pg -pie", "ffmpeg -preset fast -pix_fmt yuv420p -profile:v high", "ssh -p2222 h", "x -p8080",
     "docker run -p 5000:5000 -p5000:5000 -u 1000:1000 img", "nmap -p1-100 h", "mkdir -p/tmp/x", "python -u train.py",
     "app -u http://h:80/x", "app -a 0.0.0.0:11434", "app -a localhost:6379", "app -u bob", "psql -U bob -p5432"],
)  # fmt: skip
def test_what_only_looks_like_it_stays(command: str) -> None:
    """Words, ports, ids, paths and addresses."""
    assert redact(command.split()) == command


@settings(max_examples=200, deadline=None)
@given(st.lists(_PLAIN_WORDS, max_size=6), _SECRET_OPTIONS, _SECRETS, st.lists(_PLAIN_WORDS, max_size=6), st.booleans())
def test_no_secret_behind_a_secret_option_ever_appears(
    before: list[str], option: str, secret: str, after: list[str], joined: bool
) -> None:
    """Whatever it is made of, and whatever stands around it."""
    words = [f"{option}={secret}"] if joined else [option, secret]
    text = redact([*before, *words, *after])
    assert "Qz7" not in text
    assert "7zQ" not in text


_SETTINGS = st.sampled_from([
    "os.environ['HF_TOKEN']={}", 'os.environ["HF_TOKEN"] = {}', "os.environ.setdefault('HF_TOKEN', {})",
    "d={{'api_key': {}}}",
    "f(token={})", "f(auth=('me', {}))", "password: str = {}", "export HF_TOKEN={}", "TOKEN = {}",
    "run(['x', '--token', {}])",
    "curl -H {} --api-key {}",
])  # fmt: skip
_CODE = st.sampled_from(["import os", "x = 1", "print('a b')", 'y = "c"', "f(1)", "z = d['k']", "", "# it is"])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(_CODE, max_size=4),
    _SETTINGS,
    st.text(st.characters(exclude_characters="'\"\\\n"), max_size=20),
    st.sampled_from("'\""),
    st.lists(_CODE, max_size=4),
    st.sampled_from(["; ", ";", "\n"]),
)
def test_no_secret_in_code_ever_appears(
    before: list[str], setting: str, inside: str, quote: str, after: list[str], between: str
) -> None:
    """Quoted as code quotes, with blanks, signs and brackets in it, whatever statements stand around it."""
    secret = f"Qz7{inside}7zQ"
    first = "'Accept: x'" if setting.startswith("curl") else f"{quote}{secret}{quote}"
    line = setting.format(first, f"{quote}{secret}{quote}")
    text = redact(["python3", "-c", between.join([*before, line, *after])])
    assert "Qz7" not in text
    assert "7zQ" not in text


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters="'\"\\"), max_size=20), st.booleans())
def test_no_password_in_a_url_ever_appears(inside: str, nested: bool) -> None:
    """Slashes, colons and @s in it too."""
    url = f"https://user:Qz7{inside}7zQ@host/path"
    text = redact(["sh", "-c", f"curl {url} -o x"] if nested else ["curl", url])
    assert "Qz7" not in text
    assert "7zQ" not in text


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=60), max_size=10))
def test_any_command_gives_text(command: list[str]) -> None:
    """Printable, bounded, and the same each time."""
    text = redact(command)
    assert text.isprintable()
    assert len(text.encode()) <= LONGEST_COMMAND
    assert text == redact(command)


@pytest.mark.parametrize(
    "word",
    ["a" * 10**6, "'\"" * 10**5 + " x", "eyJ" * 10**5, "a=" * 10**5, "a://" * 10**5, "--" * 10**5, " " * 10**5 + "x",
     "sk-" * 10**5,
     "x:" * 10**5, "token=(" * 10**4, "token='" * 10**4, "token = " * 10**4, "aB3" * 10**5, "-k=" * 10**4,
     "t" + " " * 10**4,
     "token,'" * 10**4, "'token' : [" * 10**4, "http://u:/" * 10**4, "token=Bearer " * 10**4, "token=+" * 10**4,
     '"' * 10**5, "\\'" * 10**5, "http://a:" * 10**4, "@ http://a:/" * 10**4],
)  # fmt: skip
def test_a_hostile_word_takes_no_time(word: str) -> None:
    """A process chooses its own command line, and must not slow the agent."""
    began = time.process_time()
    redact([word, word])
    redact(["sh", "-c", word + " y"])
    assert time.process_time() - began < 2
