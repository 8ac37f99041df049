"""Identity text: found again while it is there, gone without a trace once forgotten."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.errors import Corrupt, Unavailable
from gpuledger.ledger import Ledger, verify, verify_ledger
from gpuledger.ledger import texts as room
from gpuledger.ledger.texts import digest_of, text_key
from gpuledger.model.identity import IdentityText
from gpuledger.model.rows import ProcessIdentity

EVERY_STORE = True

OLLAMA = IdentityText(exe="/usr/bin/ollama", unit="ollama.service", uid="997")
SECRET = IdentityText(exe="/usr/bin/python3", command="python3 payroll-of-the-third-floor.py")


def test_a_key_is_a_salted_hash() -> None:
    """SHA-256 over the salt's bytes and the JSON, so that two rows of one text differ."""
    assert text_key(b"\x00\xff", b"{}") == hashlib.sha256(b"\x00\xff{}").hexdigest()
    assert digest_of(b"{}") == hashlib.sha256(b"{}").hexdigest()


def test_a_key_is_made_by_what_verifies_it(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, make) -> None:
    """One formula of the key and one of the digest, for who writes and who checks: they cannot drift apart."""
    for name in ("text_key", "digest_of"):
        other = partial(lambda formula, *parts: formula(*parts)[::-1], getattr(room, name))
        monkeypatch.setattr(room, name, other)
        monkeypatch.setattr(verify, name, other)
    key = ledger.key_of(OLLAMA)
    ledger.append([make.identity(text_key=key)], writer="w", at_us=1)
    assert ledger.texts() == {key: OLLAMA}
    assert verify_ledger(ledger) == []


def test_a_text_is_stored_with_the_first_row_that_names_it(ledger: Ledger, make) -> None:
    """Asking for a key writes nothing; appending a row that names it does; the key stays the same."""
    key = ledger.key_of(OLLAMA)
    assert ledger.key_of(OLLAMA) == key
    assert ledger.texts() == {}
    ledger.append([make.watch()], writer="w", at_us=1)
    assert ledger.texts() == {}
    ledger.append([make.identity(text_key=key)], writer="w", at_us=2)
    assert ledger.texts() == {key: OLLAMA}
    assert ledger.key_of(OLLAMA) == key


def test_records_and_corrections_name_texts_too(ledger: Ledger, make) -> None:
    """A subject is a key as well."""
    one, two = ledger.key_of(OLLAMA), ledger.key_of(SECRET)
    ledger.append([make.record(subject=one), make.correction(subject=two)], writer="w", at_us=1)
    assert ledger.texts([one, two, "unattributed:between-samples"]) == {one: OLLAMA, two: SECRET}
    assert ledger.texts([two]) == {two: SECRET}
    assert ledger.texts([]) == {}


def test_a_stored_text_is_found_by_the_next_process(ledger: Ledger, place: Path, make) -> None:
    """After a restart the same program has the same subject."""
    key = ledger.key_of(OLLAMA)
    ledger.append([make.identity(text_key=key)], writer="w", at_us=1)
    with Ledger.open(place, mode="append") as other:
        assert other.key_of(OLLAMA) == key
    with Ledger.open(place, mode="read") as reader:
        assert reader.key_of(OLLAMA) == key
        assert reader.texts([key]) == {key: OLLAMA}


def test_a_failed_append_keeps_the_text_for_the_next(ledger: Ledger, make) -> None:
    """What was not committed is still waiting."""
    key = ledger.key_of(OLLAMA)
    for _ in range(2):
        try:
            ledger.append([make.identity(text_key=key), make.watch(living=2**63)], writer="w", at_us=1)
        except OverflowError:
            assert ledger.texts() == {}
    ledger.append([make.identity(text_key=key)], writer="w", at_us=2)
    assert ledger.texts() == {key: OLLAMA}


def test_a_text_named_only_by_a_known_row_is_not_stored(ledger: Ledger, make) -> None:
    """Only rows that were added bring their texts."""
    ledger.append([make.identity(text_key="k")], writer="w", at_us=1)
    key = ledger.key_of(OLLAMA)
    appended = ledger.append([make.identity(text_key=key)], writer="w", at_us=2)
    assert (appended.known, ledger.texts()) == (1, {})
    assert [problem.code for problem in appended.conflicts] == ["conflict"]


def test_two_keys_for_one_text_both_stand(ledger: Ledger, place: Path, make) -> None:
    """Two processes meeting a text at once store it twice; later ones agree on one of the two."""
    with Ledger.open(place, mode="append") as other:
        keys = {ledger.key_of(OLLAMA), other.key_of(OLLAMA)}
        assert len(keys) == 2
        ledger.append([make.identity(1, text_key=ledger.key_of(OLLAMA))], writer="a", at_us=1)
        other.append([make.identity(2, text_key=other.key_of(OLLAMA))], writer="b", at_us=1)
    assert ledger.texts() == dict.fromkeys(keys, OLLAMA)
    with Ledger.open(place, mode="read") as reader:
        assert reader.key_of(OLLAMA) == min(keys)


def test_many_texts_are_read_in_pieces(ledger: Ledger, make) -> None:
    """More keys than fit one statement."""
    keys = [ledger.key_of(IdentityText(exe=f"/bin/{number}")) for number in range(1201)]
    rows = [make.identity(number, text_key=key) for number, key in enumerate(keys)]
    ledger.append(rows, writer="w", at_us=1)
    assert len(ledger.texts(keys)) == len(ledger.texts()) == 1201


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_forgotten_text_leaves_no_byte(ledger: Ledger, place: Path, make) -> None:
    """Deleted from the pages, the log, and the lookup; amounts, chain and seals stand."""
    key = ledger.key_of(SECRET)
    keep = ledger.key_of(OLLAMA)
    ledger.append([make.record(subject=key), make.record(1, subject=keep)], writer="w", at_us=1)
    ledger.seal(2, writer="w")
    lost = (b"payroll-of-the-third-floor", digest_of(SECRET.to_json().encode()).encode())

    def bytes_on_disk() -> bytes:
        return b"".join(path.read_bytes() for path in place.parent.iterdir())

    assert all(text in bytes_on_disk() for text in lost)
    assert ledger.forget([key, "never-there"]) == (1, "")
    assert not any(text in bytes_on_disk() for text in lost)
    assert ledger.texts() == {keep: OLLAMA}
    assert key.encode() in bytes_on_disk()
    assert verify_ledger(ledger) == []
    assert ledger.key_of(SECRET) != key


def test_what_another_process_forgot_gets_a_new_key(ledger: Ledger, place: Path, make) -> None:
    """A remembered key counts only while its text is there: what is read anew is named again, the old stays gone."""
    key = ledger.key_of(OLLAMA)
    ledger.append([make.identity(1, text_key=key)], writer="w", at_us=1)
    assert ledger.key_of(OLLAMA) == key
    with Ledger.open(place, mode="append") as other:
        assert other.forget([key])[0] == 1
    again = ledger.key_of(OLLAMA)
    assert again != key
    ledger.append([make.identity(2, text_key=again)], writer="w", at_us=2)
    assert ledger.texts() == {again: OLLAMA}
    assert verify_ledger(ledger) == []


def test_rows_made_before_a_text_was_forgotten_stay_nameless(ledger: Ledger, place: Path, make) -> None:
    """They were read before, so nothing brings the text back."""
    key = ledger.key_of(OLLAMA)
    ledger.append([make.identity(1, text_key=key)], writer="w", at_us=1)
    waiting = make.identity(2, text_key=ledger.key_of(OLLAMA))
    with Ledger.open(place, mode="append") as other:
        other.forget([key])
    ledger.append([waiting], writer="w", at_us=2)
    assert ledger.texts() == {}


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_log_that_somebody_reads_is_said_and_emptied_later(ledger: Ledger, place: Path, make) -> None:
    """The text is deleted, and not yet gone from the log: forgetting is not called done."""
    key = ledger.key_of(SECRET)
    ledger.append([make.identity(text_key=key)], writer="w", at_us=1)
    with (
        Ledger.open(place, mode="append", busy_timeout_ms=50) as other,
        Ledger.open(place, mode="read") as reader,
    ):
        with reader.snapshot():
            assert reader.texts() == {key: SECRET}
            with pytest.raises(Unavailable, match="write-ahead log"):
                other.forget([key])
        assert other.forget([]) == (0, "")
    assert b"payroll" not in b"".join(path.read_bytes() for path in place.parent.iterdir())


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize("round_number", range(4))
def test_many_forgotten_texts_leave_no_byte(ledger: Ledger, place: Path, make, round_number: int) -> None:
    """Whatever pages the texts had moved through before they were deleted: keys are random, so each round differs."""
    texts = [IdentityText(exe=f"/opt/secret-{number:04}/run", command="x" * (number % 700)) for number in range(1500)]
    rows = [make.identity(number, text_key=ledger.key_of(text)) for number, text in enumerate(texts)]
    for start in range(0, len(rows), 100):
        ledger.append(rows[start : start + 100], writer="w", at_us=start)
    kept = {number for number in range(1500) if number % 7 == round_number}
    ledger.forget([row.text_key for number, row in enumerate(rows) if number not in kept])
    left = b"".join(path.read_bytes() for path in place.parent.iterdir())
    assert {number for number in range(1500) if b"/opt/secret-%04d/run" % number in left} == kept
    assert {number for number, text in enumerate(texts) if digest_of(text.to_json().encode()).encode() in left} == kept
    assert verify_ledger(ledger) == []


def test_a_text_that_cannot_be_read_is_damage(ledger: Ledger, place: Path, bare) -> None:
    """Whatever stands in the place of the JSON, it is said by key."""
    for number, json in enumerate(["", "[]", '{"exe": 1', '{"unknown": "field"}', "null"]):
        with bare(place) as connection:
            connection.execute("DELETE FROM identity_text")
            connection.execute("INSERT INTO identity_text VALUES (?, '', '', ?)", (f"k{number}", json))
        with pytest.raises(Corrupt, match=f"k{number} is damaged"):
            ledger.texts()


@settings(max_examples=30, deadline=None)
@given(
    st.builds(
        IdentityText, exe=st.text(max_size=5), command=st.text(st.characters(), max_size=9), user=st.text(max_size=3)
    )
)
def test_any_text_comes_back(tmp_path_factory, text: IdentityText) -> None:
    """Also one with characters that no encoding likes."""
    with Ledger.open(tmp_path_factory.mktemp("texts") / "l.db", mode="append") as ledger:
        key = ledger.key_of(text)
        row = ProcessIdentity(host="h", boot_id="", pid=1, start_ticks=1, started_at_us=1, seen_at_us=1, method="poll",
                              grade="kernel", text_key=key)  # fmt: skip
        ledger.append([row], writer="w", at_us=1)
        assert ledger.texts() == {key: text}
