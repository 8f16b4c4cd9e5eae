"""Translation catalogues (gettext .po and .mo, JSON) read as pairs of strings in file order."""

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polib

from specdec.data.wheels import read_members
from specdec.errors import UserError

KEY_REFERENCE = re.compile(r"\[%key:([^%]+)%\]")


@dataclass(frozen=True)
class Pair:
    """One string and its translation. group: package/component it came from."""

    source: str
    target: str
    group: str


def gettext_pairs(path: str | Path, pattern: str, package: str) -> Iterator[Pair]:
    """Pairs of every .po or .mo member of a wheel that matches ``pattern``; fuzzy and obsolete ones left out."""
    for name, data in read_members(path, pattern):
        try:
            catalogue = _parse_gettext(name, data)
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise UserError(f"{path}: {name} is not a readable catalogue ({error})") from None
        group = f"{package}/{_component(name)}"
        for entry in catalogue:
            if entry.obsolete or "fuzzy" in entry.flags:
                continue
            yield Pair(
                entry.msgid, entry.msgstr_plural.get(0, "") if entry.msgid_plural else entry.msgstr, group
            )
            if entry.msgid_plural:
                yield Pair(entry.msgid_plural, entry.msgstr_plural.get(1, ""), group)


def _parse_gettext(name: str, data: bytes) -> list[polib.POEntry]:
    if name.endswith(".po"):
        return polib.pofile(data.decode("utf-8"))
    with tempfile.NamedTemporaryFile(suffix=".mo") as handle:  # polib reads .mo from files only
        handle.write(data)
        handle.flush()
        return polib.mofile(handle.name)


def _component(name: str) -> str:
    """The part of a member's name that tells its component: the folder above ``locale`` or ``translations``."""
    parts = [
        p for p in Path(name).parts[:-1] if p not in {"locale", "locales", "translations", "LC_MESSAGES"}
    ]
    stem = Path(name).name.split(".")[0]
    return "/".join([*parts[1:3], stem])


def json_pairs(
    path: str | Path, pattern: str, package: str, source_lang: str, target_lang: str
) -> Iterator[Pair]:
    """Pairs of JSON catalogues: nested objects with equal keys in a source and a target file.

    ``pattern`` holds ``{lang}``, replaced by each language; groups of the pattern pair the two files up.
    """
    sources = _by_component(path, pattern.replace("{lang}", source_lang))
    targets = _by_component(path, pattern.replace("{lang}", target_lang))
    strings = {key: dict(flatten(value)) for key, value in sources.items()}
    for component, value in targets.items():
        known = strings.get(component, {})
        for key, text in flatten(value):
            if key in known:
                yield Pair(known[key], text, f"{package}/{component}")


def _by_component(path: str | Path, pattern: str) -> dict[str, object]:
    found = {}
    for name, data in read_members(path, pattern):
        groups = re.fullmatch(pattern, name).groups()
        try:
            found["/".join(group or "" for group in groups)] = json.loads(data)
        except ValueError as error:
            raise UserError(f"{path}: {name} is not valid JSON ({error})") from None
    return found


def flatten(value, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Key paths and strings of nested JSON objects, in file order."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten(inner, f"{prefix}/{key}")
    elif isinstance(value, str):
        yield prefix, value
