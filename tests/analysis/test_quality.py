"""Scores against the reference scorers, and the traps of pretokenised text and of sentences on one line."""

import pandas as pd
import pytest
import sacrebleu
from rouge_score.rouge_scorer import RougeScorer

from specdec.analysis import quality
from specdec.errors import UserError

REFERENCES = [
    "Das Haus ist rot.",
    "Wir gehen heute nach Hause, weil es regnet.",
    "Ein Test, der gut ist.",
    "Ja doch.",
]
TEXTS = ["Das Haus ist blau.", "Wir gehen heute nach Hause.", "Ein guter Test, der gut ist.", ""]


def test_bleu_is_sacrebleus():
    expected = sacrebleu.corpus_bleu(TEXTS, [REFERENCES]).score
    found = quality.score_texts("bleu", range(4), TEXTS, REFERENCES)["bleu"]
    assert found.value == pytest.approx(expected, abs=1e-9)
    assert found.low < expected < found.high


def test_rouge_is_the_mean_of_f1_in_percent():
    scorer = RougeScorer(["rouge1", "rouge2", "rougeLsum"])
    each = [scorer.score(reference, text) for reference, text in zip(REFERENCES, TEXTS, strict=True)]
    for name, found in quality.score_texts("rouge", range(4), TEXTS, REFERENCES).items():
        assert found.value == pytest.approx(25 * sum(score[name].fmeasure for score in each))


def test_rouge_lsum_needs_a_sentence_a_line():
    """Field case 22: summaries on one line lose points of ROUGE-L."""
    reference = "The function sorts a list. It returns nothing. It raises an error on None."
    text = "It raises an error on None. The function sorts a list. It returns nothing."
    flat = RougeScorer(["rougeLsum"]).score(reference, text)["rougeLsum"].fmeasure
    ours = quality.score_texts("rouge", ["a"], [text], [reference])["rougeLsum"].value
    assert ours == pytest.approx(100.0)
    assert 100 * flat < 91
    assert quality.sentence_per_line("One. Two!\nThree? Four") == "One. Two!\nThree? Four"
    assert quality.sentence_per_line("See v1.2 now. Done? Yes") == "See v1.2 now.\nDone?\nYes"


def arms(baseline: list[str], speculative: list[str]) -> pd.DataFrame:
    rows = [
        {"id": f"e{i}", "arm": arm, "text": text, "reference": REFERENCES[i]}
        for arm, texts in (("baseline", baseline), ("speculative", speculative))
        for i, text in enumerate(texts)
    ]
    return pd.DataFrame(rows).sample(frac=1, random_state=0)


@pytest.mark.parametrize("metric", ["bleu", "rouge"])
def test_equal_arms_differ_by_nothing(metric):
    for found in quality.score_arms(metric, arms(TEXTS, TEXTS)).values():
        assert found.baseline == found.speculative > 0
        assert (found.difference.low, found.difference.value, found.difference.high) == (0, 0, 0)


@pytest.mark.parametrize("metric", ["bleu", "rouge"])
def test_a_better_arm_shows(metric):
    for found in quality.score_arms(metric, arms(TEXTS, REFERENCES)).values():
        assert found.speculative == pytest.approx(100)
        assert found.difference.value == pytest.approx(found.speculative - found.baseline)
        assert found.difference.value > 0


def test_signatures_tell_how():
    assert quality.signature("bleu").startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert "one sentence a line" in quality.signature("rouge")
    assert quality.signature("none") is None


def test_no_metric_scores_nothing():
    assert quality.score_texts("none", range(4), TEXTS, REFERENCES) == {}
    assert quality.score_arms("none", arms(TEXTS, TEXTS)) == {}
    with pytest.raises(UserError, match="bleu, rouge, none"):
        quality.score_arms("chrf", arms(TEXTS, TEXTS))


def test_pretokenised_references_are_told():
    """Field case 23."""
    assert "2 of 2 texts" in quality.pretokenised(["Das ist gut .", "Rot , blau und grün ."])
    assert quality.pretokenised(REFERENCES) is None
    assert quality.pretokenised(["Version 1 .5 ist da."] + ["Gut."] * 9) is None
