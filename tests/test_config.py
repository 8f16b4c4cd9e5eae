"""The grid of a configuration, and how its values are spelled in paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec import config as study


@pytest.fixture
def config():
    return {
        "study": "s",
        "retrain": False,
        "grid": {
            "tasks": ["a"],
            "temperatures": [0, 1.0, 0.7],
            "gammas": {"neural": [1, 2], "unigram": [3], "bigram": [3], "copy": [5]},
            "top_k": None,
            "top_p": None,
        },
        "tasks": {"a": {"file": "a.yaml", "target": "big", "drafts": ["small", "bigram", "copy"]}},
        "tokenizers": {},
        "models": {"big": {"path": "m/big/"}, "small": {"teacher": "big"}},
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1"), (1.0, "1"), (0, "0"), (0.0, "0"), (0.70, "0.7"), (100, "100"), (1e-7, "0.0000001")],
)
def test_one_spelling(value, text):
    assert study.spell(value) == text


@given(st.floats(0, 100))
def test_spelling_loses_nothing(value):
    assert float(study.spell(value)) == value


def test_cells_are_the_product_of_the_grid(config):
    cells = list(study.cells(config))
    assert len(cells) == len(set(cells)) == 3 * (2 + 1 + 1)
    assert cells[:3] == ["cells/a/big/small/t0-g1", "cells/a/big/small/t0-g2", "cells/a/big/small/t1-g1"]
    assert cells[-1] == "cells/a/big/copy/t0.7-g5"


def test_filters_stand_in_the_name_of_a_cell(config):
    config["grid"].update(top_k=40, top_p=0.9)
    assert next(study.cells(config)) == "cells/a/big/small/t0-g1-k40-p0.9"


def test_a_model_with_a_path_is_taken_and_any_other_trained(config):
    assert study.model_folder(config, "big") == "m/big"
    assert study.model_folder(config, "small") == "results/s/models/small"
    assert study.models_used(config) == ["big", "small"]
    config["retrain"] = True
    assert study.model_folder(config, "big") == "results/s/models/big"


def test_drafts_as_the_command_line_takes_them(config):
    specs = [study.draft_spec(config, "a", draft) for draft in ("small", "bigram", "copy")]
    table = "results/s/ngrams/a/big/bigram.safetensors"
    assert specs == ["small=neural:results/s/models/small", f"bigram=bigram:{table}", "copy=copy"]
