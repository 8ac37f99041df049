"""Takes secrets out of command lines before anything else sees them.

Words of a command in, text out; pure. Redacted are the values of options, assignments, subscripts, keys
and headers whose names hold secrets (``secret_names``; reading them in code is ``named_values``'s work);
what a few well-known programs take without a telling name (``mysql -pSECRET``, ``curl -u user:SECRET``);
passwords in URLs; and values whose shape gives them away (``hf_...``, ``sk-...``, JWTs, forty or more
mixed characters behind an option). Words that are whole command lines themselves (``bash -c "..."``,
process titles) are read the same way. In doubt the value goes, since what is written stays.

Hexadecimal alone is no such shape: container ids, commits, digests and device UUIDs name what ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from gpuledger.sources.secret_names import Secrecy, secrecy_of

REDACTED = "[redacted]"
LONGEST_COMMAND = 4096
"""Bytes of a command line that are kept; cut only after redaction."""
LONGEST_WORD = 8192
"""Characters of one word that are looked at: more would be cut anyway."""

DEEPEST = 6
"""Levels of quotes in quotes that are read; what lies deeper is not shown."""

_PIECES = re.compile(r"\s+|(?:[^\s\"']+|\"[^\"]*\"?|'[^']*'?)+")
"""Blanks, or a word of a nested command line with its quoted parts; an open quote reaches to the end."""
_ASSIGNED = re.compile(r"(?<![A-Za-z0-9_.-])([A-Za-z0-9_.-]+)(\\?[\"']?[=:]+\\?[\"']?)")
_URL_LOGIN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30}://)([^\s/@:]*)(:[^\s/]*)?@")
_SHAPES = re.compile(
    r"eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{4,4000}(?:\.[A-Za-z0-9_-]{0,4000})?"  # JWT
    r"|hf_[A-Za-z0-9]{16,200}"  # Hugging Face
    r"|\bsk[-_][A-Za-z0-9_-]{16,400}"  # OpenAI, Anthropic, Stripe
    r"|gh[pousr]_[A-Za-z0-9]{16,300}|github_pat_[A-Za-z0-9_]{16,300}|glpat-[A-Za-z0-9_-]{16,300}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{12,40}"  # AWS
    r"|AIza[A-Za-z0-9_-]{30,60}|ya29\.[A-Za-z0-9_.-]{20,400}"  # Google
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,300}"  # Slack
    r"|\b(?:npm|gsk|r8)_[A-Za-z0-9]{30,200}|\b(?:dckr_pat_|nvapi-|pypi-|pplx-|tskey-|dop_v1_)[A-Za-z0-9_-]{20,400}"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*",
    re.DOTALL,
)
_PLAIN_VALUE = re.compile(
    r"-?[0-9][0-9.,eE_-]{0,15}|true|false|yes|no|on|off|none|null|auto|0x[0-9a-f]{1,8}", re.IGNORECASE
)
_SCHEMES = frozenset({"bearer", "basic", "token", "digest", "negotiate", "apikey"})

_MYSQL = frozenset({
    "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mysqlcheck", "mysqlbinlog", "mysqlsh",
    "mariadb", "mariadb-dump", "mariadb-admin", "mariadb-import",
})  # fmt: skip
_GLUED: dict[str, tuple[str, ...]] = dict.fromkeys(_MYSQL, ("-p",)) | {
    "sshpass": ("-p",), "curl": ("-u", "-U"), "mongo": ("-p",), "mongosh": ("-p",), "mongodump": ("-p",),
    "mongorestore": ("-p",), "redis-cli": ("-a",), "smbclient": ("-U",),
}  # fmt: skip
"""Short options of documented programs that hold a secret in the same word."""
_APART: dict[str, tuple[str, ...]] = {
    "sshpass": ("-p",), "curl": ("-u", "-U", "--user", "--proxy-user", "-b"), "wget": ("--http-user",),
    "redis-cli": ("-a",), "mongo": ("-p",), "mongosh": ("-p",), "mongodump": ("-p",), "mongorestore": ("-p",),
    "docker": ("-p",), "podman": ("-p",), "nerdctl": ("-p",), "ldapsearch": ("-w",), "ldapadd": ("-w",),
    "ldapmodify": ("-w",), "smbclient": ("-U",), "http": ("-a",), "https": ("-a",), "htpasswd": ("-b",),
    "helm": ("-p",), "az": ("-p",), "twine": ("-p",),
}  # fmt: skip
"""The same in the word after. Docker's -p is a port everywhere but in ``login``."""
_ONLY_LOGIN = frozenset({"docker", "podman", "nerdctl", "helm", "az"})


def redact(command: Sequence[str]) -> str:
    """A command line as one text, secrets replaced by ``[redacted]``, at most :data:`LONGEST_COMMAND` bytes.

    Args:
        command: its words, as the kernel has them.
    """
    reader = _Reader()
    words: list[str] = []
    length = 0
    for word in command:
        words.append(reader.take(word[:LONGEST_WORD]))
        length += len(words[-1]) + 1
        if length > LONGEST_COMMAND:
            break
    text = " ".join(words)
    text = "".join(mark if mark.isprintable() else " " for mark in text) if not text.isprintable() else text
    return text.encode("utf-8", "replace")[:LONGEST_COMMAND].decode("utf-8", "ignore").rstrip()


class _Reader:
    """Reads words from left to right and remembers whether the next one is a secret."""

    def __init__(self) -> None:
        self._pending = Secrecy.NO
        self._program = ""
        self._is_login = False

    def take(self, word: str) -> str:
        """One word of the command, redacted."""
        if self._pending is not Secrecy.NO:
            return self._value(word)
        if any(mark.isspace() for mark in word) and not self._is_assignment(word):
            return "".join(self._pieces(word))
        return self._piece(word)

    @staticmethod
    def _is_assignment(word: str) -> bool:
        """Whether the whole word is one secret's name and value, so that a blank in it belongs to the value."""
        match = _ASSIGNED.match(word)
        return match is not None and secrecy_of(match[1]) is Secrecy.SURE

    def _pieces(self, word: str, depth: int = 0) -> Iterator[str]:
        """A nested command line: every piece as if it were a word."""
        if depth > DEEPEST:
            yield REDACTED
            return
        for match in _PIECES.finditer(word):
            piece = match[0]
            if piece.isspace():
                yield piece
            elif self._pending is not Secrecy.NO:
                yield self._value(piece)
            elif piece[0] in "\"'" and any(mark.isspace() for mark in piece) and not self._is_assignment(piece[1:]):
                yield piece[0] + "".join(self._pieces(piece[1:], depth + 1))
            else:
                yield self._piece(piece)

    def _value(self, word: str) -> str:
        """A word behind a name that holds a secret."""
        pending, self._pending = self._pending, Secrecy.NO
        bare = word.strip("\"'")
        if bare.lower() in _SCHEMES or word in ("=", ":"):
            self._pending = pending  # "Bearer", and the secret comes after it
            return word
        if word.startswith("-") and (secrecy_of(word) is not Secrecy.NO or pending is Secrecy.LIKELY):
            return self._piece(word)  # the option before was a switch after all
        if pending is Secrecy.LIKELY and _PLAIN_VALUE.fullmatch(bare):
            return word
        return REDACTED

    def _piece(self, piece: str) -> str:
        if (glued := self._glued(piece)) is not None:
            return glued
        if piece.startswith("-") or piece.endswith((":", "=")):
            self._pending = self._expects(piece)
            if self._pending is not Secrecy.NO:
                return piece
        if piece.strip("\"'").lower() in ("bearer", "basic") and len(piece) < 10:
            self._pending = Secrecy.LIKELY
            return piece
        self._note_program(piece)
        return _by_shape(_by_name(piece))

    def _expects(self, piece: str) -> Secrecy:
        """Whether the word after this one is a secret."""
        if piece in _APART.get(self._program, ()) and (self._program not in _ONLY_LOGIN or self._is_login):
            return Secrecy.SURE
        name = piece.strip("\"'{[,(").rstrip("=:\"'")
        if "=" in name or ":" in name or not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
            return Secrecy.NO
        return secrecy_of(name)

    def _glued(self, piece: str) -> str | None:
        for option in _GLUED.get(self._program, ()):
            if piece.startswith(option) and len(piece) > len(option) and not piece.startswith("--"):
                return option + REDACTED
        return None

    def _note_program(self, piece: str) -> None:
        name = PurePosixPath(piece.strip("\"'")[-200:]).name
        if name in _GLUED or name in _APART:
            self._program, self._is_login = name, False
        elif name == "login":
            self._is_login = True


def _by_name(piece: str) -> str:
    """The piece up to the value of its first secret name; what follows is its value, as far as can be told."""
    for match in _ASSIGNED.finditer(piece):
        secrecy = secrecy_of(match[1])
        value = piece[match.end() :]
        if secrecy is Secrecy.NO or not value.strip("\"'"):
            continue
        if match[2].startswith(":") and value.startswith("//"):
            continue  # a scheme, not a name
        bare = value.strip("\"'")
        if secrecy is Secrecy.LIKELY and _PLAIN_VALUE.fullmatch(bare):
            continue
        if match[1] in ("PWD", "OLDPWD", "pwd") and bare.startswith("/"):
            continue
        return piece[: match.end()] + REDACTED
    return piece


def _by_shape(piece: str) -> str:
    piece = _URL_LOGIN.sub(_login, piece)
    return _SHAPES.sub(REDACTED, piece)


def _login(match: re.Match[str]) -> str:
    scheme, user, password = match.groups()
    if password is not None:
        return f"{scheme}{user}:{REDACTED}@"
    # a user alone is no secret, except where the web takes tokens for users
    return f"{scheme}{REDACTED}@" if scheme.lower() in ("http://", "https://") and user else match[0]
