"""Values printed in the paper (arXiv:2211.17192v2), as data. They are never mixed with a measurement of ours.

Speeds are T5X on a TPU-v4 in 2023. Rows of closed models (LaMDA) stay the paper's.
"""

import re

import pandas as pd

SPEED_SOURCE = "paper (T5X, TPU-v4, 2023)"
ALPHA_SOURCE = "paper (2023)"
SPEED_TARGET = "T5-XXL"

# alpha, gamma, growth of operations, speed; c = c_hat = 0.
TABLE_1 = pd.DataFrame(
    [
        (0.6, 2, 1.53, 1.96),
        (0.7, 3, 1.58, 2.53),
        (0.8, 2, 1.23, 2.44),
        (0.8, 5, 1.63, 3.69),
        (0.9, 2, 1.11, 2.71),
        (0.9, 10, 1.60, 6.86),
    ],
    columns=["alpha", "gamma", "operations", "speed"],
)

# Tables 2 and 4: exp is Theorem 3.8, emp the measured speed; the target is T5-XXL.
TABLE_4 = pd.DataFrame(
    [
        ("EnDe", "T5-small", 0, 7, 0.75, 0.02, 3.2, 3.4),
        ("EnDe", "T5-base", 0, 7, 0.80, 0.04, 3.3, 2.8),
        ("EnDe", "T5-large", 0, 7, 0.82, 0.11, 2.5, 1.7),
        ("EnDe", "T5-small", 1, 7, 0.62, 0.02, 2.3, 2.6),
        ("EnDe", "T5-base", 1, 5, 0.68, 0.04, 2.4, 2.4),
        ("EnDe", "T5-large", 1, 3, 0.71, 0.11, 2.0, 1.4),
        ("CNN/DM", "T5-small", 0, 5, 0.65, 0.02, 2.4, 3.1),
        ("CNN/DM", "T5-base", 0, 5, 0.73, 0.04, 2.6, 3.0),
        ("CNN/DM", "T5-large", 0, 3, 0.74, 0.11, 2.0, 2.2),
        ("CNN/DM", "T5-small", 1, 5, 0.53, 0.02, 1.9, 2.3),
        ("CNN/DM", "T5-base", 1, 3, 0.55, 0.04, 1.8, 2.2),
        ("CNN/DM", "T5-large", 1, 3, 0.56, 0.11, 1.6, 1.7),
    ],
    columns=["task", "draft", "temperature", "gamma", "alpha", "c", "exp", "emp"],
)

TABLE_3 = pd.DataFrame(
    [
        ("lm1b", "GPT-like 97M", "unigram", 0.03, 0.03),
        ("lm1b", "GPT-like 97M", "bigram", 0.05, 0.05),
        ("lm1b", "GPT-like 97M", "GPT-like 6M", 0.88, 0.89),
        ("EnDe", "T5-XXL", "unigram", 0.08, 0.07),
        ("EnDe", "T5-XXL", "bigram", 0.20, 0.19),
        ("EnDe", "T5-XXL", "T5-small", 0.75, 0.62),
        ("EnDe", "T5-XXL", "T5-base", 0.80, 0.68),
        ("EnDe", "T5-XXL", "T5-large", 0.82, 0.71),
        ("CNN/DM", "T5-XXL", "unigram", 0.13, 0.08),
        ("CNN/DM", "T5-XXL", "bigram", 0.23, 0.16),
        ("CNN/DM", "T5-XXL", "T5-small", 0.65, 0.53),
        ("CNN/DM", "T5-XXL", "T5-base", 0.73, 0.55),
        ("CNN/DM", "T5-XXL", "T5-large", 0.74, 0.56),
        ("dialog", "LaMDA 137B", "LaMDA 100M", 0.61, 0.57),
        ("dialog", "LaMDA 137B", "LaMDA 2B", 0.71, 0.71),
        ("dialog", "LaMDA 137B", "LaMDA 8B", 0.75, 0.74),
    ],
    columns=["task", "target", "draft", "0", "1"],
)

# T5-XXL EnDe at temperature 1: alpha by lenience l, drafts in rows.
TABLE_5 = pd.DataFrame(
    {
        "draft": ["unigram", "bigram", "T5-small", "T5-base"],
        "1": [0.07, 0.19, 0.62, 0.68],
        "0.5": [0.10, 0.23, 0.71, 0.80],
        "0.3": [0.11, 0.25, 0.76, 0.83],
        "0.1": [0.16, 0.32, 0.84, 0.90],
    }
)


def printed(table: pd.DataFrame) -> pd.DataFrame:
    """A table's values as the paper prints them, text under its own headings."""
    headings = {"temperature": "T", "exp": "EXP", "emp": "EMP", "0": "T=0", "1": "T=1"}
    one_digit = ("exp", "emp")
    shown = {
        headings.get(name, name): [
            f"{value:.{1 if name in one_digit else 2}f}" if isinstance(value, float) else str(value)
            for value in column
        ]
        for name, column in table.items()
    }
    return pd.DataFrame(shown)


def paper_speed(task: str, target: str, draft: str, temperature: float) -> tuple[int, float] | None:
    """Gamma and measured speed of the paper's own row, or None where the names are not those of one."""
    if slug(target) != slug(SPEED_TARGET):
        return None
    rows = TABLE_4[_named(TABLE_4, task=task, draft=draft) & (TABLE_4["temperature"] == temperature)]
    return None if rows.empty else (int(rows["gamma"].iloc[0]), float(rows["emp"].iloc[0]))


def paper_alpha(task: str, target: str, draft: str, temperature: float) -> float | None:
    """alpha of the paper's own row, or None where the names are not those of one."""
    rows = TABLE_3[_named(TABLE_3, task=task, target=target, draft=draft)]
    column = {0: "0", 1: "1"}.get(temperature)
    return None if rows.empty or column is None else float(rows[column].iloc[0])


def slug(name: str) -> str:
    """A name as configurations spell it: ``CNN/DM`` is ``cnn-dm``. A row is the paper's if slugs agree."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _named(table: pd.DataFrame, **names: str) -> pd.Series:
    match = pd.Series(True, index=table.index)
    for column, name in names.items():
        match &= table[column].map(slug) == slug(name)
    return match
