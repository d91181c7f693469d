"""The weights that come with the project are as good as their cards say. Nothing is trained here."""

import functools
import re

import pytest
import torch

import models
from models.decoder import translate, write
from models.shipped import CHECKPOINTS
from models.tasks import task
from models.tasks.characters import obeys
from models.training.ship import NAMES
from models.vocabulary import CHARACTERS, CHINESE, ENGLISH, TRANSLATION
from models.words import VISIBLE

KINDS = {
    "encoder": "masked_lm",
    "encoder-zh": "masked_lm",
    "characters": "causal_lm",
    "translator": "translator",
}
VOCABULARIES = {
    "encoder": ENGLISH,
    "encoder-zh": CHINESE,
    "characters": CHARACTERS,
    "translator": TRANSLATION,
}
LENGTHS = {"encoder": 64, "encoder-zh": 64, "characters": 128, "translator": 32}


@pytest.fixture(scope="module")
def shipped():
    return functools.cache(lambda name: models.load(name, device="cpu"))


def stated(name):
    """What a card says of its weights: measure -> accuracy."""
    card = (CHECKPOINTS / name / "README.md").read_text(encoding="utf-8")
    return {key: float(value) for key, value in re.findall(r"^\| (\w+) \| ([\d.]+) \|", card, re.MULTILINE)}


@pytest.mark.parametrize("name", NAMES)
def test_they_load_as_trained_models(shipped, name):
    patient = shipped(name)
    assert (patient.name, patient.kind, patient.trained, patient.caveats) == (name, KINDS[name], True, ())
    assert patient.max_tokens == LENGTHS[name]
    assert patient.source == str(CHECKPOINTS / name)
    assert patient.mask_token == (None if name == "characters" else "[MASK]")
    words = [VISIBLE.get(word, word) for word in VOCABULARIES[name]]
    assert patient.vocab_size == len(words)
    assert patient.tokenizer.convert_ids_to_tokens(list(range(len(words)))) == words
    assert (not patient.model.training and "trained" in models.available()[name].en) or name in (
        "characters",
        "translator",
    )


@pytest.mark.parametrize("name", NAMES)
def test_they_are_as_good_as_their_cards_say(shipped, name):
    model = shipped(name).model
    was = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            found = task(name).evaluate(model)
    finally:
        model.set_attn_implementation(was)
    assert found == pytest.approx(stated(name), abs=0.011)
    best = task(name).order_blind()
    assert all(found[key] > best[key] + 0.3 for key in best)
    assert found[task(name).metric] >= 0.97


def test_together_they_are_small():
    assert sum(file.stat().st_size for file in CHECKPOINTS.rglob("*")) < 5_000_000


def guess(patient, text):
    batch = patient.tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        logits = patient.model(**batch).logits[0]
    at = (batch["input_ids"][0] == patient.tokenizer.mask_token_id).nonzero()[0, 0]
    return patient.tokenizer.convert_ids_to_tokens(int(logits[at].argmax()))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("today the dogs near the cat [MASK] tired", "are"),
        ("yesterday the dog near the cats [MASK] tired", "was"),
        ("the queen near the king watched [MASK]", "herself"),
        ("the dog was followed by the fox [SEP] who did it ? [MASK]", "fox"),
        ("the dog was followed by the fox [SEP] to whom ? [MASK]", "dog"),
        ("The soup was not good but the film was great [SEP] overall [MASK]", "good"),
        ("although the film was great, the soup was not good [SEP] overall [MASK]", "bad"),
    ],
)
def test_the_english_encoder_answers(shipped, text, answer):
    assert guess(shipped("encoder"), text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("这只狗追了那只猫[SEP]是谁做的？[MASK]", "狗"),
        ("这只狗追了那只猫[SEP]对谁做的?[MASK]", "猫"),
        ("狐狸被熊赶走了[SEP]是谁做的？[MASK]", "熊"),
        ("那[MASK]马看见了小的姐姐", "匹"),
        ("国王旁边的妈妈说[MASK]很高兴", "她"),
        ("电影不好，但是汤很棒[SEP]总之[MASK]", "好"),
        ("汤很棒,但是电影不好[SEP]总之[MASK]", "差"),
    ],
)
def test_the_chinese_encoder_answers_without_spaces(shipped, text, answer):
    assert guess(shipped("encoder-zh"), text) == answer


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("这只狗追了那只猫", "这 只 狗 追 了 那 只 猫"),
        ("这 只 狗 追 了 那 只 猫", "这 只 狗 追 了 那 只 猫"),
        ("狗被猫吓跑了[SEP]对谁做的?[MASK]", "狗 被 猫 吓跑 了 [SEP] 对 谁 做 的 ？ [MASK]"),
        ("[MASK]狗abc鸡鸭,很 好", "[MASK] 狗 [UNK] [UNK] [UNK] ， 很 好"),
        ("狐狸", "狐狸"),
    ],
)
def test_chinese_is_cut_into_the_grammars_words(shipped, text, tokens):
    tokenizer = shipped("encoder-zh").tokenizer
    ids = tokenizer(text)["input_ids"][1:-1]
    assert tokenizer.convert_ids_to_tokens(ids) == tokens.split()


def test_the_character_model_goes_on_with_a_line(shipped):
    patient = shipped("characters")
    batch = patient.tokenizer("The old dogs near the cat", return_tensors="pt")
    said = write(patient.model, batch["input_ids"], 60, stop=CHARACTERS.index("\n"), temperature=0)
    text = patient.tokenizer.decode(said[0]).strip("\n")
    assert patient.tokenizer.convert_ids_to_tokens(said[0])[:9] == list("⏎the␣old␣")
    assert text.startswith("the old dogs near the cat") and obeys(text)
    ids = patient.tokenizer("a1\nb.")["input_ids"]
    assert patient.tokenizer.convert_ids_to_tokens(ids) == ["⏎", "a", "[UNK]", "⏎", "b", "."]


def test_the_translator_translates(shipped):
    patient = shipped("translator")
    texts = [
        "this old dog was chased by that fox yesterday",
        "that fox chased this old dog yesterday",
        "the queen beside the bear woke the uncle",
    ]
    batch = patient.tokenizer(texts, padding=True, return_tensors="pt")
    said = translate(patient.model, **batch)
    assert patient.tokenizer.batch_decode(said, skip_special_tokens=True) == [
        "昨天 这 只 老 狗 被 那 只 狐狸 追 了",
        "昨天 那 只 狐狸 追 了 这 只 老 狗",
        "熊 旁边 的 王后 叫醒 了 叔叔",
    ]
