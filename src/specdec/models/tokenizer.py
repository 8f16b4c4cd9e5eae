"""The study's tokenizer: one Unigram model for targets and drafts, so that token ids mean the same in all."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from specdec.errors import UserError
from specdec.files import read_parquet, sha256_file
from specdec.models.recipe import TokenizerRecipe

PAD, END, UNKNOWN = "<pad>", "</s>", "<unk>"
PAD_ID, END_ID, UNKNOWN_ID = 0, 1, 2


def train_tokenizer(texts: Iterable[str], recipe: TokenizerRecipe) -> PreTrainedTokenizerFast:
    """Train a Unigram tokenizer with <pad> = 0, </s> = 1, <unk> = 2; encoding ends with </s>.

    No normaliser: apart from characters never seen in training, decoding gives the text back as it was.
    Digits are tokens of their own. Raises ``UserError`` when there is no text.
    """
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(prepend_scheme="first"), pre_tokenizers.Digits(individual_digits=True)]
    )
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    trainer = trainers.UnigramTrainer(
        vocab_size=recipe.vocab_size,
        special_tokens=[PAD, END, UNKNOWN],
        unk_token=UNKNOWN,
        max_piece_length=recipe.max_piece_length,
        show_progress=False,
    )
    texts = iter(texts)
    first = next(texts, None)
    if first is None:
        raise UserError("tokenizer: the data folders hold no training text")
    tokenizer.train_from_iterator(_chain(first, texts), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", pair=f"$A {END} $B {END}", special_tokens=[(END, END_ID)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
        model_max_length=1_000_000,
    )


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def training_texts(folders: Iterable[Path]) -> Iterator[str]:
    """Prompts and references of the training split of each data folder."""
    for folder in folders:
        frame = read_parquet(folder / "train.parquet")
        for column in ("prompt", "reference"):
            yield from (text for text in frame[column] if text)


def load_tokenizer(folder: str | Path) -> PreTrainedTokenizerFast:
    """Load a tokenizer or model folder. Raises ``UserError`` when it is missing or lacks special ids."""
    file = Path(folder) / "tokenizer.json"
    if not file.is_file():
        raise UserError(f"{file}: no such file; run the tokenizer stage first or name another folder")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    if tokenizer.eos_token_id is None or tokenizer.pad_token_id is None:
        raise UserError(f"{file}: no end or padding token; train models with a tokenizer that names both")
    return tokenizer


def check_same_tokenizer(ours: str | Path, teachers: str | Path) -> None:
    """Raise ``UserError`` naming the first differing token, unless draft and teacher share one token map."""
    ours, teachers = Path(ours) / "tokenizer.json", Path(teachers) / "tokenizer.json"
    if not teachers.is_file():
        raise UserError(f"{teachers}: no such file; the teacher must be a whole model folder")
    if sha256_file(ours) == sha256_file(teachers):
        return
    first, second = (Tokenizer.from_file(str(path)).get_vocab() for path in (ours, teachers))
    if first != second:
        token = min(first.items() ^ second.items(), key=lambda item: item[1])[0]
        raise UserError(
            f"{ours}: token {token!r} has id {first.get(token)} here and {second.get(token)} in {teachers}; "
            "a draft needs its target's tokenizer"
        )


def encode(tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> list[list[int]]:
    """Token ids of each text, without any special token."""
    backend = tokenizer.backend_tokenizer
    return [item.ids for item in backend.encode_batch_fast(texts, add_special_tokens=False)]
