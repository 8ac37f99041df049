"""Takes secrets out of command lines before anything else sees them.

Words of a command in, text out; pure. Redacted are the values of options, assignments, subscripts, keys
and headers whose names hold secrets (``secret_names``), in shells, JSON and code alike; what a few
well-known programs take without a telling name (``mysql -pSECRET``, ``curl -u user:SECRET``); passwords
in URLs; and values whose shape gives them away (``hf_...``, ``sk-...``, JWTs, forty or more mixed
characters behind an option). Words that are whole command lines themselves (``bash -c "..."``, process
titles) are read the same way. In doubt the value goes, since what is written stays.

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
"""A name and its value in one word, as shells and options have it."""
_OPERATOR = r"(?:[?+:!|=]?=[=>~]?|:+)"
_NAMED = re.compile(
    r"(?<![A-Za-z0-9_.-])([A-Za-z0-9_.-]+)"
    rf"((?:\\{{0,3}}[\"'])?[\s\])}}]{{0,4}}{_OPERATOR}|\\{{0,3}}[\"']\s{{0,4}},)\s{{0,4}}"
)
"""The same in code, with blanks, subscripts and calls: ``e['X'] = v``, ``{"x": v}``, ``setdefault('X', v)``."""
_ONLY_OPERATOR = re.compile(_OPERATOR)
_LAST_NAME = re.compile(r"(?<![A-Za-z0-9_.-])([A-Za-z0-9_.-]+)[\\\"'\])}]{0,6}$")
_LAST_ASSIGNED = re.compile(rf"(?<![A-Za-z0-9_.-])([A-Za-z0-9_.-]+)[\\\"'\])}}]{{0,6}}{_OPERATOR}[\"']?$")
_OPENING = re.compile(r"[A-Za-z$@]{0,2}(\\{0,3})(\"\"\"|'''|[\"'])")
_BARE = re.compile(r"[^\s\"']+")
_GOES_ON = re.compile(r"\s{0,4}(?:\+|=(?!=))\s{0,4}")
"""More of the same value: a sum of texts, or what stands behind a type (``token: str = "..."``)."""
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_URL_LOGIN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30}://)(?!\[)([^\s/@:]*)(:(?![0-9]{1,5}(?:[/?#\"',]|$))\S*)?@")
"""A password may hold slashes and @s and reaches to the last @; digits before a slash are a port."""
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
_SWITCH_VALUE = re.compile(r"[0-9]{1,3}|true|false|yes|no|on|off|none|null|auto", re.IGNORECASE)
_COUNT_VALUE = re.compile(r"-?[0-9][0-9.,eE_-]{0,15}|true|false|yes|no|on|off|none|null|auto", re.IGNORECASE)
_BLOB = re.compile(r"(?!sha[0-9]{1,3}-|[/~.])[A-Za-z0-9+/_-]{40,8192}={0,2}")
_HEX = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16,}")
"""Ids, which are no secrets, whatever stands before them: ``GPU-8c1f5e2a-...``, ``Run-0f1e...``."""
_KINDS = re.compile(r"(?=([a-z][A-Z0-9]|[A-Z][a-z0-9]|[0-9][A-Za-z]))")
"""Where neighbours are of two kinds: in random letters at six of ten places, in names of models at one or two."""
_SCHEMES = frozenset({"bearer", "basic", "token", "digest", "negotiate", "apikey"})

_MYSQL = frozenset({
    "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mysqlcheck", "mysqlbinlog", "mysqlsh",
    "mariadb", "mariadb-dump", "mariadb-admin", "mariadb-import",
})  # fmt: skip
_GLUED: dict[str, tuple[str, ...]] = dict.fromkeys(_MYSQL, ("-p",)) | {
    "sshpass": ("-p",), "curl": ("-u", "-U"), "mongo": ("-p",), "mongosh": ("-p",), "mongodump": ("-p",),
    "mongorestore": ("-p",), "redis-cli": ("-a",), "smbclient": ("-U",),
    "7z": ("-p",), "7za": ("-p",), "7zr": ("-p",), "7zz": ("-p",), "rar": ("-p", "-hp"), "unrar": ("-p", "-hp"),
    "zip": ("-P",), "unzip": ("-P",), "zipcloak": ("-P",), "lftp": ("-u",), "sqlcmd": ("-P",),
    "xfreerdp": ("/p:",), "mosquitto_pub": ("-P",), "mosquitto_sub": ("-P",),
}  # fmt: skip
"""Short options of documented programs that hold a secret in the same word."""
_APART: dict[str, tuple[str, ...]] = {
    "sshpass": ("-p",), "curl": ("-u", "-U", "--user", "--proxy-user", "-b"), "wget": ("--http-user",),
    "redis-cli": ("-a",), "mongo": ("-p",), "mongosh": ("-p",), "mongodump": ("-p",), "mongorestore": ("-p",),
    "docker": ("-p",), "podman": ("-p",), "nerdctl": ("-p",), "ldapsearch": ("-w",), "ldapadd": ("-w",),
    "ldapmodify": ("-w",), "smbclient": ("-U",), "http": ("-a",), "https": ("-a",), "htpasswd": ("-b",),
    "helm": ("-p",), "az": ("-p",), "twine": ("-p",), "zip": ("-P",), "unzip": ("-P",), "zipcloak": ("-P",),
    "lftp": ("-u",), "sqlcmd": ("-P",), "ipmitool": ("-P",), "mosquitto_pub": ("-P",), "mosquitto_sub": ("-P",),
    "openssl": ("-k", "-K", "-pass", "-passin", "-passout"), "wandb": (),
}  # fmt: skip
"""The same in the word after. Docker's -p is a port everywhere but in ``login``."""
_USER_OPTIONS = frozenset({"-u", "-U", "--user", "--proxy-user", "--auth", "-a"})
"""Options that whatever program takes for a user and password in one word, as curl does."""
_USER_AND_PASSWORD = re.compile(r"([\"']?[^\s:/\"'=]{1,64}:)(?!//)(\S+)")
_HOST_AND_PORT = re.compile(r"[\"']?(?:[0-9]+|localhost|[^:]*\.[^:]*):[0-9]{1,5}[\"']?")
"""``bob:SECRET``; ``1000:1000`` is a user and a group, ``10.0.0.1:80`` has a port, ``https://`` is a scheme."""
_GLUED_PASSWORD = re.compile(r"-p(?![a-z_:]*$|[0-9.,:/-]*$|[/~.=])[^\s=]{4,}")
"""``-pSECRET`` of programs that nobody listed; not ``-pthread``, ``-p8080``, ``-p5000:5000``, ``-p/path``."""
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
        self._named = Secrecy.NO  # of a bare name just read, which an operator may follow
        self._is_behind_option = False
        self._takes_user = False
        self._program = ""
        self._is_login = False

    def take(self, word: str) -> str:
        """One word of the command, redacted."""
        if self._pending is not Secrecy.NO:
            return self._value(word)
        if any(mark.isspace() for mark in word) and not self._is_assignment(word):
            if self._named is not Secrecy.NO and (operator := _ONLY_OPERATOR.match(word)):
                self._named = Secrecy.NO
                return operator[0] + REDACTED
            return "".join(self._pieces(_by_names(word)))
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
        if bare.lower() in _SCHEMES or _ONLY_OPERATOR.fullmatch(word):
            self._pending = pending  # "Bearer", and the secret comes after it
            return word
        is_option = word.startswith("-") and not any(mark.isspace() for mark in word)
        if is_option and (secrecy_of(word) is not Secrecy.NO or pending is not Secrecy.SURE):
            return self._piece(word)  # the option before was a switch after all
        return word if _is_plain(bare, pending) else REDACTED

    def _piece(self, piece: str) -> str:
        named, self._named = self._named, Secrecy.NO
        is_behind_option, self._is_behind_option = self._is_behind_option, False
        if (glued := self._glued(piece)) is not None:
            return glued
        if named is not Secrecy.NO and (operator := _ONLY_OPERATOR.match(piece)):
            value = piece[operator.end() :]
            if not value.strip("\"'"):
                self._pending = named
                return piece
            return piece if _is_plain(value.strip("\"'"), named) else operator[0] + REDACTED
        shown = _by_name(piece)
        if shown != piece:
            return _by_shape(shown)
        if _GLUED_PASSWORD.fullmatch(piece):
            return "-p" + REDACTED
        takes_user, self._takes_user = self._takes_user, piece in _USER_OPTIONS
        if takes_user and (user := _user_of(piece)):
            return user + REDACTED
        name, equals, value = piece.partition("=")
        if equals and name in _USER_OPTIONS and (user := _user_of(value)):
            return f"{name}={user}{REDACTED}"
        self._pending = self._expects(piece)
        if self._pending is not Secrecy.NO:
            return piece
        if piece.strip("\"'").lower() in ("bearer", "basic") and len(piece) < 10:
            self._pending = Secrecy.LIKELY
            return piece
        self._note_program(piece)
        if self._program == "wandb" and self._is_login and len(piece) >= 20 and piece.isalnum():
            return REDACTED
        if piece.startswith("-"):
            name, equals, value = piece.partition("=")
            self._is_behind_option = not equals
            return f"{name}={REDACTED}" if _is_blob(value) else _by_shape(piece)
        if last := _LAST_NAME.search(piece[-200:]):
            self._named = secrecy_of(last[1])
        return REDACTED if is_behind_option and _is_blob(piece) else _by_shape(piece)

    def _expects(self, piece: str) -> Secrecy:
        """Whether the word after this one is a secret."""
        if piece in _APART.get(self._program, ()) and (self._program not in _ONLY_LOGIN or self._is_login):
            return Secrecy.SURE
        if assigned := _LAST_ASSIGNED.search(piece[-200:]):
            return secrecy_of(assigned[1])
        if (parts := _ASSIGNED.search(piece)) and piece[parts.end() :].strip("\"'").lower() in _SCHEMES:
            return secrecy_of(parts[1])  # Authorization:Bearer, and the secret comes after it
        if not piece.startswith("-") or not re.fullmatch(r"[A-Za-z0-9_.-]+", name := piece.rstrip("\"'")):
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


def _user_of(piece: str) -> str:
    """The user of a login in one word, with its colon; empty where it is none."""
    login = _USER_AND_PASSWORD.fullmatch(piece)
    return "" if login is None or _HOST_AND_PORT.fullmatch(piece) else login[1]


def _is_plain(bare: str, secrecy: Secrecy) -> bool:
    """Whether a value is none of a secret, although its name could be one's."""
    if secrecy is Secrecy.SURE:
        return False
    return (_COUNT_VALUE if secrecy is Secrecy.COUNT else _SWITCH_VALUE).fullmatch(bare) is not None


def _is_blob(piece: str) -> bool:
    """Forty or more characters that look random: capitals, small letters and digits, well mixed.

    Names of models and images are long too, but mix less; ids in hexadecimal do not count.
    """
    bare = _HEX.sub("", piece.strip("\"'"))
    if not _BLOB.fullmatch(bare) or not all(re.search(kind, bare) for kind in ("[a-z]", "[A-Z]", "[0-9]")):
        return False
    return 100 * len(_KINDS.findall(bare)) >= 35 * len(bare)


def _secret_at(match: re.Match[str], value: str) -> Secrecy:
    """How surely a name found in a text gives what follows it away."""
    if match[2].endswith(":") and value.startswith("//"):
        return Secrecy.NO  # a scheme, not a name
    if match[1] in ("PWD", "OLDPWD", "pwd") and value.startswith("/"):
        return Secrecy.NO
    return secrecy_of(match[1])


def _by_name(piece: str) -> str:
    """The piece up to the value of its first secret name; what follows is its value, as far as can be told."""
    for match in _NAMED.finditer(piece):
        bare = piece[match.end() :].strip("\\\"'")
        secrecy = _secret_at(match, bare)
        if secrecy is Secrecy.NO or not bare or bare.lower() in _SCHEMES or _is_plain(bare, secrecy):
            continue
        return piece[: match.end()] + REDACTED
    return piece


def _by_names(text: str) -> str:
    """A nested command line or code without the values of its secret names, blanks and brackets in them too."""
    shown: list[str] = []
    at = 0
    while match := _NAMED.search(text, at):
        start = match.end()
        secrecy = _secret_at(match, text[start : start + 2])
        end = match.end(1) if secrecy is Secrecy.NO else _end_of_value(text, start)
        if secrecy is Secrecy.NO or end == start or _is_plain(text[start:end].strip("\\\"';,)]}"), secrecy):
            shown.append(text[at : match.end(1)])
            at = match.end(1)
        else:
            shown += (text[at:start], REDACTED)
            at = end
    return "".join((*shown, text[at:]))


def _end_of_value(text: str, at: int) -> int:
    """Where the value that begins here ends, in doubt rather too late."""
    while True:
        began, at = at, _end_of_part(text, at)
        more = _GOES_ON.match(text, at)
        if text[began:at].strip("\"'").lower() in _SCHEMES:
            at += len(text) - at - len(text[at:].lstrip())
        elif more:
            at = more.end()
        else:
            return at
        if at in (began, len(text)):
            return at


def _end_of_part(text: str, at: int) -> int:
    if at < len(text) and text[at] in _BRACKETS:
        return _end_of_brackets(text, at)
    while at < len(text):
        if opening := _OPENING.match(text, at):
            closing = re.compile(r"(?<!\\)" + re.escape(opening[1] + opening[2]))
            found = closing.search(text, opening.end())
            at = found.end() if found else len(text)
            if text[at : at + 1] in (";", ",", ")", "]", "}", "&", "|"):
                return at
        elif bare := _BARE.match(text, at):
            at = bare.end()
        else:
            return at
        mark = text[at : at + 1]
        if mark in ('"', "'") and text.count(mark, 0, at) % 2:
            return at  # it closes what stands around the whole assignment
    return at


def _end_of_brackets(text: str, at: int) -> int:
    """Behind the bracket that closes the one here, or the text's end."""
    opening, closing, depth = text[at], _BRACKETS[text[at]], 0
    while at < len(text):
        mark = text[at]
        if mark in "\"'":
            found = text.find(mark, at + 1)  # a bracket in quotes closes nothing
            at = found if found >= 0 else len(text)
        depth += (mark == opening) - (mark == closing)
        at += 1
        if depth == 0:
            return min(at, len(text))
    return len(text)


def _by_shape(piece: str) -> str:
    end = piece.rfind("@") + 1  # a password ends there at the latest, and looking further would take long
    return _SHAPES.sub(REDACTED, _URL_LOGIN.sub(_login, piece[:end]) + piece[end:])


def _login(match: re.Match[str]) -> str:
    scheme, user, password = match.groups()
    if password is not None:
        return f"{scheme}{user}:{REDACTED}@"
    # a user alone is no secret, except where the web takes tokens for users
    return f"{scheme}{REDACTED}@" if scheme.lower() in ("http://", "https://") and user else match[0]
