"""The shared tokenizer: reversible, special ids in their places, and refusals that name the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec.errors import UserError
from specdec.models.recipe import TokenizerRecipe
from specdec.models.tokenizer import check_same_tokenizer, encode, load_tokenizer, train_tokenizer

TEXTS = [
    "translate English to German: The device could not be reached. Please try again in 30 seconds.",
    "Das Gerät konnte nicht erreicht werden. Bitte versuchen Sie es in 30 Sekunden erneut.",
    "summarize: Return the sum of all elements (axis=None), e.g. x[0] + x[1]; raises ValueError.",
    "Größe ändern, öffnen & schließen – „Über“ 12345",
] * 20


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, TokenizerRecipe(name="t", vocab_size=200))


def test_special_ids_and_end_token(tokenizer):
    assert tokenizer.convert_ids_to_tokens([0, 1, 2]) == ["<pad>", "</s>", "<unk>"]
    assert tokenizer("again")["input_ids"][-1] == tokenizer.eos_token_id == 1
    assert encode(tokenizer, ["again"]) == [tokenizer("again")["input_ids"][:-1]]


@pytest.mark.parametrize("text", [*TEXTS[:4], "12 30  again (x)", "a", "again. Please"])
def test_known_text_comes_back(tokenizer, text):
    assert tokenizer.decode(encode(tokenizer, [text])[0]) == text


@given(st.text(alphabet=sorted(set("".join(TEXTS)) - {" "}), min_size=1, max_size=40))
def test_any_text_of_known_characters_comes_back(text):
    tokenizer = _trained()
    assert tokenizer.decode(encode(tokenizer, [text])[0]) == text


def _trained(cache={}):  # noqa: B006  hypothesis takes no module fixture per example; train once
    if not cache:
        cache["tokenizer"] = train_tokenizer(TEXTS, TokenizerRecipe(name="t", vocab_size=200))
    return cache["tokenizer"]


def test_digits_stand_alone(tokenizer):
    assert tokenizer.tokenize("2026")[-4:] == ["2", "0", "2", "6"]


def test_saved_tokenizer_is_the_same(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    again = load_tokenizer(tmp_path)
    assert again(TEXTS[0])["input_ids"] == tokenizer(TEXTS[0])["input_ids"]
    assert (again.pad_token_id, again.eos_token_id, again.unk_token_id) == (0, 1, 2)


def test_no_text_is_refused():
    with pytest.raises(UserError, match="no training text"):
        train_tokenizer([], TokenizerRecipe(name="t", vocab_size=100))


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(UserError, match=r"tokenizer\.json: no such file"):
        load_tokenizer(tmp_path)


def test_another_token_map_is_refused_by_its_first_token(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path / "ours")
    train_tokenizer(TEXTS[:1] * 9, TokenizerRecipe(name="t", vocab_size=80)).save_pretrained(
        tmp_path / "theirs"
    )
    check_same_tokenizer(tmp_path / "ours", tmp_path / "ours")
    with pytest.raises(UserError, match=r"has id \S+ here and \S+ in"):
        check_same_tokenizer(tmp_path / "ours", tmp_path / "theirs")
