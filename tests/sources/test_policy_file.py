"""The policy file: what it understands, and that every refusal names its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.errors import BadInput, Misconfigured
from gpuledger.model.missing import Missing
from gpuledger.model.moments import parse_moment
from gpuledger.model.policy import MATCH_FIELDS, HostOwner, PoolRule, UserOwner
from gpuledger.sources import policy_file

NOW_US = 1_790_000_000_000_000

WHOLE = r"""
effective_from: 2026-11-01T00:00:00Z
services:
  - {service: ollama, team: home, match: {unit: "ollama\\.service"}}
  - {service: xtts,   team: home, project: voice, match: {command: "voice-clone", user: "^al$"}}
owners:
  users:      {alice: {team: vision, roles: [student]}, "1000": {project: p}}
  namespaces: {team-a: {team: vision}}
  hosts:      {lab-3: {owner: prof-x, region: eu, pool: shared}}
pools:
  shared: {source: kubelet, starts: allocated, replicas: 4}
  strict: {release: confirmed}
billing: {zone: Europe/Berlin}
quotas:
  - {team: vision, class: "H100*", device_hours: 2000, per: month}
shares: {half_life: 7d, class_weights: {"H100*": 2}, tree: {vision: {shares: 40, users: {alice: 1}}}}
rates:
  currency: EUR
  cards:
    - {meter: mig.memory, class: "*/1g.10gb", rate: "0.03", unit: GiB-hour, basis: memory}
"""


def refused(text: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        policy_file.parse(text, path="site.yaml", now_us=NOW_US)
    return caught.value


def test_whole_document_is_understood() -> None:
    """A document with every known part gives services and owners, and says which parts it does not act on."""
    policy, problems = policy_file.parse(WHOLE, path="site.yaml", now_us=NOW_US)
    assert policy.effective_from_us == parse_moment("2026-11-01", now_us=0)
    assert [rule.service for rule in policy.services] == ["ollama", "xtts"]
    assert policy.services[0].match["unit"].search("ollama.service")
    assert not policy.services[0].match["unit"].search("ollamaXservice")
    assert (policy.services[1].team, policy.services[1].project) == ("home", "voice")
    assert policy.users == {
        "alice": UserOwner(team="vision", roles=("student",)),
        "1000": UserOwner(project="p"),
    }
    assert policy.namespaces == {"team-a": "vision"}
    assert policy.hosts == {"lab-3": HostOwner(owner="prof-x", region="eu", pool="shared")}
    assert policy.pools == {"shared": PoolRule(source="kubelet"), "strict": PoolRule(is_release_confirmed=True)}
    assert policy.pool_of("", "lab-3") == policy.pool_of("shared", "elsewhere") == "shared"
    assert policy.pool_of("", "elsewhere") == ""
    assert [(problem.code, problem.where) for problem in problems] == [("policy-unused", "site.yaml:11")] * 2
    assert ["`starts`" in problems[0].message, "`replicas`" in problems[1].message] == [True, True]
    assert [(quota.name, quota.limit) for quota in policy.quotas] == [("vision", 2000)]
    assert policy.zone == "Europe/Berlin"


def test_effective_now_where_nothing_is_written() -> None:
    """Owners hold from the moment of applying unless the document dates them."""
    policy, problems = policy_file.parse("owners: {}", path="p", now_us=NOW_US)
    assert policy.effective_from_us == NOW_US
    assert problems == []


@pytest.mark.parametrize("written", ["2026-11-01", "2026-11", "2026-11-01 00:00:00", "'2026-11-01T01:00:00+01:00'"])
def test_effective_from_in_every_spelling(written: str) -> None:
    """YAML's own times, quoted times, and months are the same moment."""
    policy, _ = policy_file.parse(f"effective_from: {written}", path="p", now_us=NOW_US)
    assert policy.effective_from_us == parse_moment("2026-11-01", now_us=0)


def test_money_never_is_kept() -> None:
    """It switches every price off, and is acted on."""
    policy, problems = policy_file.parse("money: never", path="p", now_us=NOW_US)
    assert (problems, policy.rates.never) == ([], True)


def test_rates_of_stored_versions_that_nobody_read() -> None:
    """They were stored before rates were acted on: told, and the rest of the version holds."""
    text = "owners: {users: {al: {team: t}}}\nrates: {currency: EUR, cards: [{meter: gpu.context}]}"
    assert refused(text).code == "policy-bad-value"
    policy, problems = policy_file.parse(text, path="p", now_us=NOW_US, is_stored=True)
    assert isinstance(policy.rates, Missing)
    assert [problem.code for problem in problems] == ["policy-unused"]
    assert policy.users["al"].team == "t"


RULE = "services:\n  - service: a\n    match: {unit: x}\n"

REFUSALS = [
    ("", "policy-empty", 0, "empty"),
    ("# only a comment\n", "policy-empty", 0, "empty"),
    ("~", "policy-empty", 0, "empty"),
    ("- a\n- b\n", "policy-not-mapping", 1, "a list"),
    ("hello", "policy-not-mapping", 1, "text"),
    ("services: [", "policy-not-yaml", 1, "flow node"),
    ("a: b\nc: d: e\n", "policy-not-yaml", 2, "mapping values"),
    ("a: 1\n\x00\x01", "policy-not-yaml", 2, "U+0000"),
    ("a: *nowhere", "policy-not-yaml", 1, "undefined alias"),
    ("---\na: 1\n---\nb: 2\n", "policy-not-yaml", 3, "another document"),
    (RULE + "colour: blue\n", "policy-unknown-key", 4, "unknown key 'colour' in the policy"),
    (RULE + "    colour: blue\n", "policy-unknown-key", 4, "in entry 1 of `services`"),
    ("services:\n- service: a\n  match:\n    colour: x\n", "policy-unknown-key", 4, "in `match`"),
    ("owners:\n  usrs: {}\n", "policy-unknown-key", 2, "in `owners`"),
    ("owners:\n  users:\n    al: {tean: x}\n", "policy-unknown-key", 3, "in `al`"),
    ("services: []\nservices: []\n", "policy-duplicate-key", 2, "first on line 1"),
    ("owners:\n  users:\n    a: {}\n    b: {}\n    a: {}\n", "policy-duplicate-key", 5, "'a' stands twice"),
    ("quotas:\n- {a: 1, a: 2}\n", "policy-duplicate-key", 2, "stands twice"),
    ("services: {}", "policy-bad-value", 1, "`services` must be a list, not a mapping"),
    ("services:\n- x\n", "policy-bad-value", 2, "entry 1 of `services` must be a mapping"),
    ("services:\n- team: x\n  match: {unit: x}\n", "policy-missing-key", 2, "lacks `service`"),
    ("services:\n- service: x\n", "policy-missing-key", 2, "lacks `match`"),
    ("services:\n- service: x\n  match: {}\n", "policy-bad-value", 3, "match every process"),
    ("services:\n- service: x\n  match: {unit: ''}\n", "policy-bad-value", 3, "empty text"),
    ("services:\n- service: x\n  match: {unit: 3}\n", "policy-bad-value", 3, "not the int '3'"),
    ("services:\n- service: x\n  match: {unit: '('}\n", "policy-bad-pattern", 3, "unterminated"),
    ("services:\n- service: x\n  match: {unit: '[[a]'}\n", "policy-bad-pattern", 3, "nested set"),
    ("services:\n- service: x\n  match: {unit: 'a{99999999999999999999}'}\n", "policy-bad-pattern", 3, "too large"),
    (f"services:\n- service: x\n  match: {{unit: '{'a' * 1001}'}}\n", "policy-bad-pattern", 3, "1,001 characters"),
    ('services:\n- service: "\\e[2J"\n  match: {unit: x}\n', "policy-bad-value", 2, "one printable line"),
    ("services:\n- service: unattributed:x\n  match: {unit: x}\n", "policy-bad-value", 2, "cannot be called"),
    ("services:\n- service: '-'\n  match: {unit: x}\n", "policy-bad-value", 2, "cannot be called"),
    ("owners:\n  users:\n    al: {team: no}\n", "policy-bad-value", 3, "the bool 'no'"),
    ("owners:\n  users:\n    al: {roles: student}\n", "policy-bad-value", 3, "`roles` must be a list"),
    ("owners:\n  users:\n    al: {roles: [[a]]}\n", "policy-bad-value", 3, "not a list"),
    ("owners:\n  users:\n    al: x\n", "policy-bad-value", 3, "`al` must be a mapping"),
    ('owners:\n  users: {"a\\nb": {}}\n', "policy-bad-value", 2, "is not a name"),
    ("owners:\n  namespaces: {a: {}}\n", "policy-missing-key", 2, "lacks `team`"),
    ("owners:\n", "policy-bad-value", 1, "nothing"),
    ("effective_from: soon\n", "policy-bad-time", 1, "not a time"),
    ("effective_from: 12\n", "policy-bad-value", 1, "the int '12'"),
    ("effective_from: 0001-01-01\n", "policy-bad-time", 1, "outside 1970"),
    ("money: !!python/object/apply:os.system [ls]\n", "policy-bad-value", 1, "tag"),
    ("? [a, b]\n: c\n", "policy-bad-value", 1, "a key must be a name, not a list"),
    ("money: x\n<<: {money: y}\n", "policy-bad-value", 2, "merge"),
]


@pytest.mark.parametrize(("text", "code", "line", "said"), REFUSALS)
def test_refusal_names_file_line_and_reason(text: str, code: str, line: int, said: str) -> None:
    """Whatever is wrong with a document, the error says what, where, and what to do, and exits with 2."""
    error = refused(text)
    assert (error.code, error.line) == (code, line)
    assert said in error.message
    assert error.message.startswith(f"site.yaml:{line}: " if line else "site.yaml: ")
    assert error.hint
    assert error.exit_status == 2


def test_unknown_key_lists_the_known() -> None:
    """The hint of an unknown key holds the keys that would be understood there."""
    assert refused("services: [{service: a, match: {colour: x}}]").hint == f"known keys here: {', '.join(MATCH_FIELDS)}"


@pytest.mark.parametrize(
    "bomb",
    [
        "[" * 5000,
        "- " * 5000 + "x",
        "a: &a [*a]",
        "pools: &a [1,1,1,1,1,1,1,1,1,1]\n"
        + "".join(
            f"{key}: &{new} [{','.join([f'*{old}'] * 10)}]\n"
            for key, new, old in (
                ("billing", "b", "a"),
                ("quotas", "c", "b"),
                ("shares", "d", "c"),
                ("rates", "e", "d"),
                ("money", "f", "e"),
            )
        ),
        "# " + "x" * policy_file.LONGEST_TEXT,
    ],
    ids=["brackets", "dashes", "recursive-alias", "billion-laughs", "long"],
)
def test_bombs_are_refused(bomb: str) -> None:
    """A few bytes that unfold to millions of values, or exhaust the stack, are refused in time."""
    assert refused(bomb).code == "policy-too-large"


def test_alias_that_stands_for_little_is_fine() -> None:
    """An ordinary alias is understood as what it stands for."""
    policy, _ = policy_file.parse("owners:\n  users: {a: &v {team: v}, b: *v}\n", path="p", now_us=NOW_US)
    assert policy.users["a"] == policy.users["b"] == UserOwner(team="v")


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.sampled_from("services:owners[]{}-&*!|>'\"\\\n\t ,#%@`~0azé\x00\ud800"), max_size=60))
def test_any_text_is_understood_or_refused(text: str) -> None:
    """No text of any kind raises anything but a refusal that names the file."""
    try:
        policy_file.parse(text, path="p", now_us=NOW_US)
        said = "p"
    except BadInput as error:
        said = error.message
    assert said.startswith("p")


def test_read_gives_the_text(tmp_path: Path) -> None:
    """A file is read as UTF-8, its byte-order mark dropped."""
    path = tmp_path / "site.yaml"
    path.write_bytes("\ufeffmoney: never # ü".encode())
    assert policy_file.read(path) == "money: never # ü"


def test_read_refuses_binary_junk_with_its_line(tmp_path: Path) -> None:
    """Bytes that are no text are refused with the line they stand on."""
    path = tmp_path / "junk"
    path.write_bytes(b"a: b\n\xff\xfe\x00")
    with pytest.raises(BadInput) as caught:
        policy_file.read(path)
    assert (caught.value.code, caught.value.line) == ("policy-not-text", 2)


@pytest.mark.parametrize("byte", [b"x", b"\xff"])
def test_read_refuses_what_is_too_large(tmp_path: Path, byte: bytes) -> None:
    """A disk image given by mistake is not read to its end."""
    path = tmp_path / "disk.img"
    path.write_bytes(b"a" * 10 + byte * (4 * policy_file.LONGEST_TEXT + 10))
    with pytest.raises(BadInput) as caught:
        policy_file.read(path)
    assert caught.value.code in ("policy-too-large", "policy-not-text")


def test_read_says_which_file_is_not_there(tmp_path: Path) -> None:
    """A missing file or a folder is named with the system's own reason."""
    with pytest.raises(Misconfigured, match="No such file") as caught:
        policy_file.read(tmp_path / "none.yaml")
    assert caught.value.code == "no-policy-file"
    with pytest.raises(Misconfigured, match="Is a directory"):
        policy_file.read(tmp_path)
