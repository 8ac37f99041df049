"""Verifying: whatever somebody with write permission does to the file past the triggers, is found."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gpuledger.errors import Corrupt, GpuledgerError
from gpuledger.ledger import CHECKS, Ledger, verify_ledger
from gpuledger.ledger.chain import seal_root
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory, make) -> bytes:
    """The file of a ledger of two writers, some links, and two seals."""
    place = tmp_path_factory.mktemp("honest") / "ledger.db"
    with Ledger.open(place, mode="append") as ledger:
        key = ledger.key_of(IdentityText(exe="/usr/bin/ollama"))
        ledger.append([*make.one_of_each(), make.identity(9, text_key=key)], writer="box.agent", at_us=1)
        ledger.append([make.driver(n) for n in range(10, 20)], writer="box.agent", at_us=2)
        ledger.append([make.watch(n) for n in range(10, 20)], writer="box.import", at_us=3)
        ledger.seal(4, writer="box.agent")
        ledger.append([make.driver(n) for n in range(20, 30)], writer="box.agent", at_us=5)
        ledger.seal(6, writer="box.agent")
    return place.read_bytes()


@pytest.fixture
def sealed(place: Path, honest: bytes) -> Path:
    """That ledger, closed, to be tampered with."""
    place.write_bytes(honest)
    return place


def tamper(place: Path, *statements: str, drop: bool = True) -> None:
    """Run statements with every trigger dropped, then put the triggers back as they were."""
    with closing(sqlite3.connect(place, isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers if drop else ():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, sql in triggers if drop else ():
            connection.execute(sql)


def found(place: Path, **options: str) -> dict[str, list[str]]:
    """Codes of the findings, each with the places it names."""
    codes: dict[str, list[str]] = {}
    with Ledger.open(place, mode="read") as ledger:
        for finding in verify_ledger(ledger, **options):
            assert finding.sentence
            codes.setdefault(finding.code, []).append(finding.where)
    return codes


def test_an_honest_ledger_has_no_findings(sealed: Path) -> None:
    """Nothing to say about a ledger that nobody touched, by a reader or by its writer."""
    assert found(sealed) == {}
    with Ledger.open(sealed, mode="append") as ledger:
        assert verify_ledger(ledger) == []


def test_dropping_and_restoring_triggers_alone_changes_nothing(sealed: Path) -> None:
    """The tampering below is what is found, not its tools."""
    tamper(sealed)
    assert found(sealed) == {}


def test_every_check_is_titled_and_described() -> None:
    """Checks are read by people: title, description, and a code of its own."""
    assert len({check.code for check in CHECKS}) == len(CHECKS)
    for check in CHECKS:
        assert check.title
        assert check.description.endswith(".")


_INTRUDER = "'box.intruder'"
_COPY = """SELECT {writer}, {number}, host, device, source, method, interval_ms, since_us, 0, status, readings,
new_rows, living, detail FROM watch WHERE writer = 'box.import' AND number = 10"""


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE driver_record SET context_ms = context_ms + 1 WHERE number = 15",
        "UPDATE driver_record SET memory_percent = 0 WHERE number = 15",
        "UPDATE usage_record SET quantity = 0",
        "UPDATE usage_record SET subject = 'unattributed:watch-gap'",
        "UPDATE policy SET document = 'money: never'",
        "UPDATE watch SET status = 'ok ' WHERE writer = 'box.import' AND number = 3",
        "DELETE FROM driver_record WHERE number = 15",
        "DELETE FROM usage_correction",
        "DELETE FROM watch WHERE writer = 'box.import' AND number = 10",
        "UPDATE driver_record SET number = 999 WHERE number = 15",
        "UPDATE driver_record SET writer = 'box.import' WHERE number = 15",
        "UPDATE watch SET writer = 'zz' WHERE writer = 'box.import'",
        "UPDATE watch SET writer = 'aa' WHERE writer = 'box.import'",
        "UPDATE link SET committed_at_us = 0 WHERE writer = 'box.import'",
        "UPDATE link SET writer = 'box.other' WHERE writer = 'box.import'",
        "UPDATE link SET last_number = last_number - 1 WHERE writer = 'box.import'",
        "DELETE FROM link WHERE writer = 'box.import'",
        "DELETE FROM link WHERE first_number = 15",
        f"INSERT INTO watch {_COPY.format(writer='writer', number=11)}",
        f"INSERT INTO watch {_COPY.format(writer=_INTRUDER, number=1)}",
    ],
)  # fmt: skip
def test_the_chain_shows_every_change(sealed: Path, statement: str) -> None:
    """A row or link changed, deleted, added, renumbered or given to another writer."""
    tamper(sealed, statement)
    assert "chain" in found(sealed)


def test_rows_that_changed_places_are_found(sealed: Path) -> None:
    """Two rows of one link, swapped."""
    tamper(
        sealed,
        "UPDATE driver_record SET number = 999 WHERE number = 15",
        "UPDATE driver_record SET number = 15 WHERE number = 16",
        "UPDATE driver_record SET number = 16 WHERE number = 999",
    )
    assert found(sealed) == {"chain": ["box.agent/15"]}


def test_a_row_inserted_without_a_link_is_found(sealed: Path) -> None:
    """What the triggers allow, the chain does not."""
    tamper(
        sealed,
        "INSERT INTO policy VALUES ('box.agent', 4711, 7, 0, 0, 'x', 'x')",
        "INSERT INTO policy VALUES ('zz', 1, 8, 0, 0, 'x', 'x')",
        drop=False,
    )
    assert found(sealed) == {"chain": ["policy:box.agent/4711", "policy:zz/1"]}


def test_a_tail_cut_off_is_found_by_the_seal(sealed: Path) -> None:
    """Rows and links taken off together leave a whole chain, which a later seal does not know."""
    tamper(
        sealed,
        "DELETE FROM watch WHERE writer = 'box.import'",
        "DELETE FROM link WHERE writer = 'box.import'",
    )
    assert found(sealed) == {"seals": ["seal:box.agent/25", "seal:box.agent/36"]}


def test_a_tail_cut_off_with_its_seals_is_found_by_a_kept_root(sealed: Path) -> None:
    """When even the seals go, only a root kept elsewhere tells."""
    with Ledger.open(sealed, mode="read") as ledger:
        root = ledger.latest_root()
    assert not isinstance(root, Missing)
    assert found(sealed, kept_root=root) == {}
    tables = ("driver_record", "seal")
    cuts = [f"DELETE FROM {table} WHERE writer = 'box.agent' AND number > 25" for table in tables]
    tamper(sealed, *cuts, "DELETE FROM link WHERE writer = 'box.agent' AND first_number > 25")
    assert found(sealed) == {}
    assert found(sealed, kept_root=root) == {"seals": [root]}


def test_a_seal_taken_out_is_found(sealed: Path) -> None:
    """The one after it no longer follows."""
    tamper(sealed, "DELETE FROM seal WHERE number = 25")
    assert "seal:box.agent/36" in found(sealed)["seals"]


def test_a_seal_that_was_changed_is_found(sealed: Path) -> None:
    """Its root does not fit its heads any more; heads that cannot be read are no crash."""
    tamper(sealed, 'UPDATE seal SET heads = \'{"box.agent":[1,"x"]}\' WHERE number = 25')
    assert "seal:box.agent/25" in found(sealed)["seals"]
    tamper(sealed, "UPDATE seal SET heads = '[' WHERE number = 25")
    assert "seal:box.agent/25" in found(sealed)["seals"]


def test_a_forged_seal_does_not_hide_a_shorter_chain(sealed: Path) -> None:
    """Heads that go back in time are told from those that go on."""
    with closing(sqlite3.connect(sealed)) as connection:
        root, at_us = connection.execute("SELECT previous_root, at_us FROM seal WHERE number = 36").fetchone()
    forged = seal_root(root, at_us, "{}")
    tamper(sealed, f"UPDATE seal SET heads = '{{}}', root = '{forged}' WHERE number = 36")
    assert found(sealed)["seals"] == ["seal:box.agent/36", "seal:box.agent/36"]


def test_changed_text_is_found_and_forgotten_text_is_not(sealed: Path) -> None:
    """The key stands for the text; without the text there is nothing to compare."""
    tamper(sealed, 'UPDATE identity_text SET json = \'{"exe": "/usr/bin/other"}\'')
    assert list(found(sealed)) == ["texts"]
    tamper(sealed, "UPDATE identity_text SET salt = 'no hex'")
    assert list(found(sealed)) == ["texts"]
    tamper(sealed, "DELETE FROM identity_text", drop=False)
    assert found(sealed) == {}


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER watch_no_update",
        "DROP TRIGGER link_no_delete",
        "DROP INDEX driver_record_ended",
        "DROP TABLE usage_correction",
        "CREATE TRIGGER quiet AFTER INSERT ON watch BEGIN DELETE FROM identity_text; END",
        "CREATE UNIQUE INDEX one_only ON watch (host)",
        "ALTER TABLE watch ADD COLUMN extra TEXT",
        "ALTER TABLE watch RENAME COLUMN detail TO notes",
    ],
)
def test_a_changed_schema_is_found(place: Path, statement: str) -> None:
    """A missing or replaced trigger, index, table or column, and additions that could interfere."""
    Ledger.open(place, mode="append").close()
    tamper(place, statement, drop=False)
    assert "schema" in found(place)


def test_a_trigger_that_looks_like_ours_is_found(sealed: Path) -> None:
    """Same name, another body."""
    tamper(
        sealed,
        "DROP TRIGGER watch_no_update",
        "CREATE TRIGGER watch_no_update BEFORE UPDATE ON watch BEGIN SELECT 1; END",
        drop=False,
    )
    assert found(sealed) == {"schema": ["watch_no_update"]}


def test_what_others_add_beside_our_tables_is_theirs(sealed: Path) -> None:
    """A view or table of a dashboard tool is nobody's business here."""
    tamper(sealed, "CREATE VIEW mine AS SELECT * FROM watch", "CREATE TABLE notes (x)", drop=False)
    assert found(sealed) == {}


def test_writable_schema_is_found(sealed: Path) -> None:
    """A table made lax by editing its definition, so that a float could come in."""
    tamper(
        sealed,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, ') STRICT, WITHOUT ROWID', ') WITHOUT ROWID') "
        "WHERE name = 'usage_record'",
        "PRAGMA writable_schema = RESET",
        drop=False,
    )
    tamper(sealed, "UPDATE usage_record SET quantity = 0.5")
    findings = found(sealed)
    assert "usage_record" in findings["schema"]
    assert "usage_record.quantity" in findings["chain"]


def test_a_key_that_stands_twice_is_found(place: Path, make) -> None:
    """With the unique key edited away, a row could be counted twice."""
    with Ledger.open(place, mode="append") as ledger:
        ledger.append([make.policy(1), make.policy(2)], writer="w", at_us=1)
    tamper(place, "PRAGMA ignore_check_constraints = ON", "UPDATE policy SET version = 3 WHERE version = 2")
    assert list(found(place)) == ["chain"]
    with closing(sqlite3.connect(place, isolation_level=None)) as connection:
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE tbl_name = 'policy' AND type = 'trigger'"
        ).fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("CREATE TABLE lax (writer TEXT, number INTEGER, version INTEGER, effective_from_us INTEGER, "
                           "applied_at_us INTEGER, document TEXT, document_hash TEXT)")  # fmt: skip
        connection.execute(
            "INSERT INTO lax SELECT writer, number, 1, effective_from_us, applied_at_us, document, document_hash "
            "FROM policy"
        )
        connection.execute("DROP TABLE policy")
        connection.execute("ALTER TABLE lax RENAME TO policy")
    assert {"schema", "chain", "keys"} <= set(found(place))


def test_a_derived_column_that_does_not_follow_is_found(sealed: Path) -> None:
    """Range scans go by it, so it is checked apart from the chain."""
    tamper(sealed, "UPDATE driver_record SET ended_at_us = 0 WHERE number = 15")
    assert found(sealed)["derived"] == ["driver:box.agent/15"]


def test_damage_in_one_check_does_not_stop_the_others(sealed: Path) -> None:
    """A table that is gone: named by each check that needs it, and the rest still run."""
    tamper(sealed, "UPDATE identity_text SET json = '{}'")
    tamper(sealed, "DROP TABLE seal", drop=False)
    assert {"schema", "chain", "seals", "texts"} <= set(found(sealed))


def _positions(whole: bytes) -> Iterator[int]:
    """Bytes of the header, some of every page, and some of stored rows and definitions."""
    yield from range(16, 100, 4)
    yield from range(100, len(whole), 4001)
    for word in (b"GPU-a", b"start:", b"box.import", b"CREATE TRIGGER", b"/usr/bin/ollama"):
        yield whole.index(word) + 2
        yield whole.rindex(word) + 3


@pytest.mark.parametrize(
    "change", [lambda byte: byte ^ 1, lambda byte: byte ^ 0x80, lambda byte: 0], ids=["low bit", "high bit", "zero"]
)
def test_a_flipped_byte_never_ends_in_a_traceback(sealed: Path, tmp_path: Path, change: Callable[[int], int]) -> None:
    """Anywhere in the file: an error by name when opening, findings, or a byte that nothing is stored in."""
    whole = sealed.read_bytes()
    noticed = tried = 0
    codes = set()
    for position in _positions(whole):
        if change(whole[position]) == whole[position]:
            continue
        copy = tmp_path / "flipped.db"
        copy.write_bytes(whole[:position] + bytes([change(whole[position])]) + whole[position + 1 :])
        tried += 1
        try:
            noticed += bool(found(copy))
        except GpuledgerError as error:
            noticed += 1
            codes.add(error.code)
    assert tried > 20
    assert noticed > 12
    assert codes <= {"ledger-damaged", "not-a-ledger", "ledger-newer", "ledger-older", "no-ledger"}


@pytest.mark.parametrize(
    "word", [b"GPU-a", b"start:", b"Tesla T4", b"box.import", b"late-evidence", b"/usr/bin/ollama"]
)
def test_a_flipped_letter_of_a_row_is_always_found(sealed: Path, word: bytes) -> None:
    """Wherever a stored word stands, in a row or in an index, one wrong letter does not pass."""
    whole = sealed.read_bytes()
    places = [position for position in range(len(whole)) if whole.startswith(word, position)]
    assert places
    for position in places[:: max(1, len(places) // 8)]:
        sealed.write_bytes(whole[:position] + bytes([whole[position] ^ 2]) + whole[position + 1 :])
        assert found(sealed), position


@pytest.mark.parametrize("keep", [0.02, 0.3, 0.5, 0.9, 0.999])
def test_a_half_written_file_is_found(sealed: Path, keep: float) -> None:
    """A copy that broke off: damaged when opened, or by the checks; never a traceback, never silence."""
    whole = sealed.read_bytes()
    sealed.write_bytes(whole[: int(len(whole) * keep)])
    try:
        codes = set(found(sealed))
    except Corrupt as error:
        codes = {error.code}
    assert codes
