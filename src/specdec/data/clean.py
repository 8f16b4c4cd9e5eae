"""Cleaning of translation pairs: placeholders, markup, copies, length and language."""

import html
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache

from specdec.data.catalogs import Pair

PLACEHOLDER = re.compile(
    r"%\(\w+\)[-#0 +]*\d*(?:\.\d+)?[sdifxrg]"  # %(name)s
    r"|%\d*\$?[-#0 +]*\d*(?:\.\d+)?[sdifxr](?![a-zäöüß])"  # %s, %1$d
    r"|\{\{\s*[\w.]*\s*\}\}|\$?\{[\w.!:\[\]'-]*\}"  # {{ name }}, {name}, ${name}
)
LINK = re.compile(r"\[([^\]\[]*)\]\([^)]*\)")
TAG = re.compile(r"</?[A-Za-z][^<>]*>")
ACCELERATOR = re.compile(r"(?<![A-Z\s])&(?=[a-zäöü])|(?<!\S)&(?=\w)")
REFUSED = re.compile(
    r"\{%|%\]|\{\w+, *(?:plural|select)|https?:|www\.|[\\|<>{}\[\]]{2}|\$t\(|�|^[^a-zA-Zäöü]*$"
)
MARKS = re.compile(r"\*\*|__|`+|^#+ |(?<=\s)[-*•] ")
QUOTES = str.maketrans({"„": '"', "“": '"', "”": '"', "‚": "'", "‘": "'", "’": "'", "«": '"', "»": '"', "…": "...",
                        " ": " ", "‑": "-", "­": None, "​": None})  # fmt: skip


def clean_text(text: str) -> str:
    """Plain one-line text: entities resolved, markup removed, quotes unified, white space collapsed."""
    text = html.unescape(text)
    text = LINK.sub(r"\1", text)
    text = TAG.sub(" ", text)
    text = ACCELERATOR.sub("", text)
    text = MARKS.sub("", unicodedata.normalize("NFC", text).translate(QUOTES))
    text = re.sub(r"\s+", " ", text.replace("\\n", " ").replace('\\"', '"')).strip()
    return re.sub(r" ([.,;:!?])(?=\s|$)", r"\1", text)


def number_placeholders(source: str, target: str) -> tuple[str, str] | None:
    """Both texts with placeholders written {1}, {2} ... in the source's order; None when the sets differ."""
    names = PLACEHOLDER.findall(source)
    if Counter(names) != Counter(PLACEHOLDER.findall(target)) or len(names) > 4:
        return None
    numbers = {name: f"{{{index}}}" for index, name in enumerate(dict.fromkeys(names), start=1)}
    return tuple(PLACEHOLDER.sub(lambda match: numbers[match.group()], text) for text in (source, target))


def normalise(text: str) -> str:
    """The key under which two strings count as the same: letters and digits only, case folded."""
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()


@cache
def _classifier():
    import py3langid  # loads a model, so only where it is needed

    py3langid.set_languages(["de", "en"])
    return py3langid.classify


def is_language(text: str, language: str, min_words: int = 5) -> bool:
    """Whether ``text`` reads as ``language`` ("de" or "en"); shorter texts are given the benefit of the doubt."""
    return len(text.split()) < min_words or _classifier()(text)[0] == language


def clean_pair(pair: Pair, limits: dict) -> Pair | None:
    """The cleaned pair, or None when it is no usable translation.

    limits: max_chars (of either side) and max_ratio (longer side over shorter, in characters, from 16 on).
    """
    numbered = number_placeholders(html.unescape(pair.source), html.unescape(pair.target))
    if numbered is None or any("\n\n" in text.strip() for text in numbered):
        return None
    source, target = map(clean_text, numbered)
    if not source or not target or REFUSED.search(source) or REFUSED.search(target):
        return None
    shorter, longer = sorted((len(source), len(target)))
    if longer > limits["max_chars"] or (longer > 15 and longer > limits["max_ratio"] * shorter):
        return None
    if normalise(source) == normalise(target) or len(normalise(source)) < 3 or len(normalise(target)) < 2:
        return None
    if not (is_language(source, "en") and is_language(target, "de")):
        return None
    return Pair(source, target, pair.group)


def unique_pairs(pairs: Iterable[Pair]) -> list[Pair]:
    """One pair for each normalised source, in order of first sight, with its most frequent translation."""
    first: dict[str, Pair] = {}
    targets: dict[str, Counter] = defaultdict(Counter)
    for pair in pairs:
        key = normalise(pair.source)
        first.setdefault(key, pair)
        targets[key][pair.target] += 1
    return [Pair(pair.source, targets[key].most_common(1)[0][0], pair.group) for key, pair in first.items()]
