"""``gpuledger migrate``."""

from __future__ import annotations

from gpuledger.ledger.schema import SCHEMA_VERSION
from postgres_server import APPLICATION, OWNER


def test_a_file_says_that_it_does_so_by_itself(gpuledger, tmp_path) -> None:
    """And is made."""
    done = gpuledger("migrate")
    assert (done.status, "brought up to date by whoever opens it to append" in done.out) == (0, True)
    assert (tmp_path / "box.db").exists()
    assert gpuledger("migrate", "--application", "al", "--format", "json").error["code"] == "no-roles"


def test_a_server_in_three_formats(gpuledger, postgres) -> None:
    """Tables, then grants; the password is nowhere."""
    url = postgres.url(OWNER, postgres.new_database())
    done = gpuledger("migrate", "--ledger", url)
    assert f"tables of version {SCHEMA_VERSION} made" in done.out
    assert f"{APPLICATION}: adds and reads rows" in done.out
    assert "secret" not in done.out + done.err
    again = gpuledger("migrate", "--ledger", url, "--application", APPLICATION, "--reader", OWNER, "--format", "json")
    assert again.json["before"] == SCHEMA_VERSION
    assert [role["role"] for role in again.json["granted"]] == [APPLICATION, OWNER]
    assert "[role-too-strong]" in again.err
    assert gpuledger("migrate", "--ledger", url, "--format", "csv").out.splitlines()[1] == f"{APPLICATION},True,True"


def test_the_application_is_told_what_the_owner_types(gpuledger, postgres) -> None:
    """Without tables no verb goes on; after migrate all do."""
    database = postgres.new_database()
    url = postgres.url(APPLICATION, database)
    for words in (("usage",), ("meter",), ("policy",), ("verify",)):
        done = gpuledger(*words, "--ledger", url, "--format", "json")
        assert (done.status, done.error["code"]) == (5, "ledger-outdated")
        assert "gpuledger migrate" in done.error["hint"]
    gpuledger("migrate", "--ledger", postgres.url(OWNER, database))
    assert gpuledger("verify", "--ledger", url).status == 0
