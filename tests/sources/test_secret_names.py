"""Which names hold secrets, and which only sound like it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.sources.secret_names import Secrecy, secrecy_of


@pytest.mark.parametrize(
    "name",
    ["--password", "--passwd", "--passphrase", "-password", "--db-password", "--db.password", "PGPASSWORD",
     "MYSQL_PWD", "--pw",
     "--token", "--hf-token", "--hf_token", "HF_TOKEN", "--access-token", "--accessToken", "--auth-token",
     "HUGGING_FACE_HUB_TOKEN",
     "--api-key", "--api_key", "--apikey", "OPENAI_API_KEY", "--wandb-api-key", "--key", "--private-key",
     "--encryption-key",
     "--secret", "--client-secret", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN",
     "SECRET_KEY_BASE",
     "--credential", "--credentials", "--creds", "X-Api-Key", "Authorization", "--jwt", "--jwt-secret", "--api-tokens",
     "--license-key", "apiKey", "githubToken", "X-Amz-Signature", "--secret-id", "--new-token"],
)  # fmt: skip
def test_values_of_these_are_secrets(name: str) -> None:
    """Whatever joins the words: dashes, underscores, dots, capitals, or nothing."""
    assert secrecy_of(name) is Secrecy.SURE


@pytest.mark.parametrize(
    "name",
    ["--max-tokens", "--max_new_tokens", "--max-num-batched-tokens", "--tokenizer", "--tokenizer-mode", "--token-limit",
     "--tokens-per-second", "--num-tokens", "--n-tokens", "maxTokens", "--eos-token", "--pad-token", "--eos-token-id",
     "--token-type-ids", "--image-token", "TOKENIZERS_PARALLELISM", "--keyboard", "--key-frames", "--key-file",
     "--keep-alive",
     "--monkey", "--sort-key", "--primary-key", "--public-key", "--num-key-value-heads", "--password-file",
     "--token-file",
     "--password-stdin", "--secret-name", "--passes", "--bypass", "--compass", "--author", "--no-auth", "--no-password",
     "--ask-pass", "--pin-memory",
     "pin_memory", "-pinoffset", "--authority-file", "--spin", "--pinned",
     "--model", "--port", "--passthrough", "--signature-version", "--secretary", "--",
     "-", ""],
)  # fmt: skip
def test_values_of_these_are_not(name: str) -> None:
    """Tokens of a language model, keys of tables and keyboards, files, switches."""
    assert secrecy_of(name) is Secrecy.NO


@pytest.mark.parametrize(
    "name", ["--auth", "--basic-auth", "--gradio-auth", "--pass", "--cookie", "--bearer", "--pin", "SIM_PIN"]
)
def test_these_may_be_either(name: str) -> None:
    """Their value decides: a small number or a switch is none."""
    assert secrecy_of(name) is Secrecy.LIKELY


@pytest.mark.parametrize("name", ["--tokens", "--keys", "tokens"])
def test_these_may_count(name: str) -> None:
    """Any number is none."""
    assert secrecy_of(name) is Secrecy.COUNT


@settings(max_examples=200)
@given(st.text(max_size=60))
def test_any_name_has_an_answer(name: str) -> None:
    """And the same one each time."""
    assert secrecy_of(name) is secrecy_of(name)
