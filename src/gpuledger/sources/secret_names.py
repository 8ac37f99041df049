"""Which names hold secrets: of options, environment variables, headers and JSON keys. Pure.

A name in, how sure we are out. ``--api-key`` and ``HF_TOKEN`` do; ``--max-tokens``, ``--tokenizer``,
``--key-frames`` and ``--keyboard`` do not. Where a name could be either, secrecy wins over prettiness.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache


class Secrecy(IntEnum):
    """How surely a name's value is a secret."""

    NO = 0
    COUNT = 1
    """``--tokens``, ``--keys``: unless the value is a number, a switch, or looks like the next option."""
    LIKELY = 2
    """``--auth``, ``--pin``: unless the value is a switch such as ``true``, a number of at most three
    digits (``ffmpeg -pass 1``, ``--led-pin 18``), or looks like the next option."""
    SURE = 3


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SURE = frozenset({
    "password", "passwords", "passwd", "passphrase", "passcode", "pwd", "secret", "secrets", "credential",
    "credentials", "creds", "pw", "pswd", "apikey", "apikeys", "authkey", "authtoken", "accesskey",
    "accesstoken", "secretkey", "privatekey", "authorization", "jwt", "otp", "signature", "sig", "sas", "pat",
})  # fmt: skip
_SURE_ENDS = (
    "password", "passwd", "passphrase", "secret", "token", "apikey", "authkey", "accesskey", "secretkey",
    "privatekey", "userpass",
)  # fmt: skip
"""Ends of words written together: ``PGPASSWORD``, ``hftoken``, ``mysecret``."""
_LIKELY_LAST = frozenset({"auth", "pass", "cookie", "cookies", "bearer", "pin"})
_COUNT_LAST = frozenset({"tokens", "keys"})

_ABOUT = frozenset({
    "file", "files", "filename", "path", "dir", "directory", "env", "var", "stdin", "url", "uri", "endpoint",
    "type", "format", "mode", "ttl", "expiry", "expires", "expiration", "timeout", "count", "limit", "limits",
    "length", "len", "size", "rate", "policy", "algorithm", "algo", "backend", "provider", "prefix", "pattern",
    "regex", "per", "second", "minute", "required", "enabled", "disabled", "min", "max", "budget", "ratio",
    "index", "position", "width", "dim", "mask", "masking", "padding", "name", "version",
})  # fmt: skip
"""What a name is about when it stands behind the secret word: ``--token-limit``, ``--password-file``."""
_OF_TOKENS = frozenset({"id", "ids", "idx", "type", "types", "embedding", "embeddings", "level"})
_COUNTED = frozenset({
    "max", "min", "num", "n", "nb", "number", "count", "total", "new", "per", "limit", "batched", "batch",
    "generated", "prompt", "completion", "input", "output", "ctx", "context", "image", "video", "audio", "text",
    "eos", "bos", "pad", "unk", "sep", "cls", "mask", "stop", "special", "start", "end", "first", "last",
    "next", "draft", "speculative", "think", "thinking", "reasoning", "decode", "prefill", "vocab", "add",
    "skip", "ignore", "avg", "mean", "sequence", "seq", "chunk", "word", "sub", "virtual",
})  # fmt: skip
"""What makes a token one of a language model: ``--max-tokens``, ``--eos-token``, ``--image-token``."""
_OF_MANY = frozenset({
    "new", "next", "first", "last", "add", "skip", "ignore", "output", "input", "text", "word", "sub", "generated",
    "batch", "batched", "context", "ctx", "completion",
})  # fmt: skip
"""Of those, the ones that mean nothing before a single token: ``--new-token`` may well be a login's."""
_HOLDERS = frozenset({
    "api", "access", "auth", "bearer", "secret", "refresh", "session", "service", "user", "admin", "hf",
    "github", "gitlab", "id", "oauth", "jwt", "private", "client", "bot", "deploy", "personal",
})  # fmt: skip
"""What makes tokens or keys those of a login, in the plural too: ``--api-tokens``."""
_NOT_KEYS = frozenset({
    "primary", "foreign", "sort", "sorted", "public", "pub", "partition", "group", "hot", "cache", "kv",
    "routing", "object", "column", "label", "image", "text", "input", "output", "feature", "target", "prompt",
    "index", "join", "num", "n", "max", "min", "map", "dataset", "lookup", "dict", "json", "field", "row",
    "order", "merge", "query", "value", "attn", "attention", "rename", "by", "message", "messages", "content",
    "response", "caption", "video", "audio", "data", "state", "metric", "param", "host", "known",
})  # fmt: skip
_NO_VALUE = frozenset({"no", "disable", "without", "skip", "not", "never", "print", "show", "ask", "prompt", "require"})
"""Switches that take no value: ``--no-auth``, ``--ask-pass``."""


@lru_cache(maxsize=4096)
def secrecy_of(name: str) -> Secrecy:
    """How surely the value of ``name`` is a secret.

    Args:
        name: an option with its dashes, a variable, a header, a key, dotted or not.
    """
    words = [word.lower() for word in _WORDS.findall(name[:200])]
    if not words or (name.startswith("-") and words[0] in _NO_VALUE):
        return Secrecy.NO
    if {"access", "key", "id"} <= set(words):
        return Secrecy.SURE
    place = next((at for at, word in enumerate(words) if _is_secret_word(word, words)), -1)
    if place < 0:
        if _is_counted(words):
            return Secrecy.NO
        if words[-1] in _COUNT_LAST:
            return Secrecy.COUNT
        return Secrecy.LIKELY if words[-1] in _LIKELY_LAST else Secrecy.NO
    if len(words) > place + 1 and (words[-1] in _ABOUT or (words[place] == "token" and words[-1] in _OF_TOKENS)):
        return Secrecy.NO
    return Secrecy.SURE


def _is_secret_word(word: str, words: list[str]) -> bool:
    if word in _SURE:
        return True
    if word == "token":
        return not set(words) & (_COUNTED - _OF_MANY)
    if word == "tokens":
        return bool(set(words) & _HOLDERS) and not set(words) & _COUNTED
    if word in ("key", "keys"):
        if words[-1] != word:
            return False
        others = set(words[:-1])
        return bool(others & _HOLDERS) or (word == "key" and not others & _NOT_KEYS)
    if not word.endswith(_SURE_ENDS):
        return False
    return not (word.endswith("token") and word.removesuffix("token") in _COUNTED)


def _is_counted(words: list[str]) -> bool:
    last, others = words[-1], set(words[:-1])
    if last == "tokens":
        return bool(others & _COUNTED)
    if last == "keys":
        return bool(others & _NOT_KEYS)
    if last == "pass":
        return bool(
            others & {"two", "one", "single", "multi", "first", "second", "num", "n", "forward", "backward", "by"}
        )
    return False
