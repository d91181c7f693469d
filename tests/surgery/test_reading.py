"""What the model will read, and what people are told about it."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import surgery as sg
from surgery.reading import batch, labels, read
from tests.surgery import bench, patients


@pytest.fixture(scope="module")
def masked():
    return patients.patient("BertForMaskedLM", "masked_lm")


@pytest.fixture(scope="module")
def roberta():
    return patients.patient("RobertaForMaskedLM", "masked_lm", patients.byte_tokenizer(roberta=True))


@pytest.fixture(scope="module")
def gpt2():
    return patients.patient("GPT2LMHeadModel", "causal_lm", patients.byte_tokenizer())


def said(reading, lang="en"):
    return " ".join(words.say(lang) for words in reading.notices)


# --- tokens -------------------------------------------------------------------------------------------------


def test_a_text_becomes_tokens_kinds_and_separators(masked):
    reading = read(masked, "The dogs bit 你好")
    assert reading.tokens == ("[CLS]", "the", "dog", "##s", "bit", "你", "好", "[SEP]")
    assert reading.kinds == ("special", *["word"] * 6, "special")
    assert reading.separators == (*[False] * 7, True)
    assert (reading.total, reading.kept, reading.truncated) == (8, 8, False)


def test_a_pair_has_two_segments(masked):
    reading = read(masked, ("the dog", "a cat ran"))
    assert reading.tokens == ("[CLS]", "the", "dog", "[SEP]", "a", "cat", "ran", "[SEP]")
    assert reading.segments == (0, 0, 0, 0, 1, 1, 1, 1)
    _, inputs = batch(masked, [reading])
    assert inputs["token_type_ids"].tolist() == [list(reading.segments)]


def test_models_without_segments_are_not_given_any(roberta):
    distil = patients.patient("DistilBertForMaskedLM", "masked_lm")
    for model in (roberta, distil):
        reading = read(model, ("the cat", "the cat"))
        _, inputs = batch(model, [reading])
        assert not inputs.get("token_type_ids", torch.zeros(1)).any()
        comparison = sg.compare(model, ("the cat", "the cat"), sg.HideSelf())
        assert comparison.operated.hidden.isfinite().all()
    assert "token_type_ids" not in batch(distil, [read(distil, ("the cat", "the cat"))])[1]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("the cat", ("the", "▁cat")),
        ("the the", ("the", "▁the")),
        ("a  the", ("a", "▁", "▁the")),
        ("é", ("<C3>", "<A9>")),
        ("本", ("<E6 9C>", "<AC>")),
        ("a\n\t", ("a", "\n", "\t")),
        ("$%", ("$", "%")),
    ],
)
def test_pieces_of_bytes_are_shown_as_characters(gpt2, text, expected):
    assert read(gpt2, text).tokens == expected


def test_special_tokens_of_a_byte_tokenizer_stay_as_they_are(roberta):
    assert read(roberta, "the<mask> cat").tokens == ("<s>", "the", "<mask>", "▁cat", "</s>")
    assert labels(roberta.tokenizer, [0, 1, 2]) == ("<s>", "<pad>", "</s>")


def test_unknown_words_are_named_as_they_were_written(masked):
    reading = read(masked, "The Zebra 🧬 and ZEBRA")
    assert reading.tokens == ("[CLS]", "the", "[UNK]", "[UNK]", "and", "[UNK]", "[SEP]")
    assert reading.unknown == ((2, "Zebra"), (3, "🧬"), (5, "ZEBRA"))
    assert (
        "3 unknown" in said(reading) and "Zebra 🧬 ZEBRA" in said(reading) and "3 个" in said(reading, "zh")
    )
    second = read(masked, ("the dog", "a Zebra"))
    assert second.unknown == ((5, "Zebra"),)


# --- length -------------------------------------------------------------------------------------------------


def test_a_long_text_is_cut_and_says_so():
    short = patients.patient("BertForMaskedLM", "masked_lm", room=8)
    reading = read(short, "the dog bit the man and ran")  # 9 tokens
    assert len(reading.ids) == 8 and reading.tokens[-1] == "[SEP]" and reading.tokens[-2] == "and"
    assert (reading.total, reading.kept, reading.truncated) == (9, 8, True)
    assert "kept 8 of 9 tokens" in said(reading) and "9 个词元中的 8 个" in said(reading, "zh")
    comparison = sg.compare(short, "the dog bit the man and ran", sg.HideSelf())
    assert (
        comparison.truncated
        and comparison.to_dict()["truncated"]
        and "kept 8 of 9" in " ".join(comparison.notices())
    )
    exact = read(short, "the dog bit the man and")
    assert len(exact.ids) == 8 and not exact.truncated and "kept" not in said(exact)


def test_three_thousand_words_are_read_in_part(minilm):
    comparison = sg.compare(minilm, "dog " * 3000, sg.HideSelf().at("L0"), capture=None)
    assert len(comparison.tokens) == minilm.max_tokens and comparison.reading.total == 3002


def test_a_long_pair_ends_on_a_separator():
    short = patients.patient("BertForMaskedLM", "masked_lm", room=8)
    reading = read(short, ("the dog bit", "a cat saw the man"))
    assert (
        reading.tokens == ("[CLS]", "the", "dog", "bit", "[SEP]", "a", "cat", "[SEP]") and reading.truncated
    )


def test_an_id_without_an_embedding_is_refused_and_the_next_text_is_read(masked):
    small = patients.patient("BertForMaskedLM", "masked_lm", vocab_size=20)
    last = patients.WORDS[20]
    bench.refuses(
        lambda: sg.compare(small, f"the dog {last}"), "Token id 20", "20 entries", "0-19", error=sg.TextError
    )
    assert sg.compare(small, "the dog").baseline.hidden.isfinite().all()


# --- what cannot be read ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\x00\x01", ("", ""), ("", "  "), "[SEP]", "[CLS] [PAD]", "\u200b"]
)
def test_a_text_without_a_word_is_refused(masked, text):
    bench.refuses(lambda: read(masked, text), "empty", "at least one word", error=sg.TextError)


@pytest.mark.parametrize("text", [None, 3, b"the", ("a", "b", "c"), ("a", 3), {"text": "a"}, ()])
def test_what_is_no_text_is_refused(masked, text):
    bench.refuses(lambda: read(masked, text), "string or a pair", error=sg.TextError)


def test_a_text_without_end_is_refused(masked):
    bench.refuses(lambda: read(masked, "a" * 1_000_001), "1000001", "1000000", error=sg.TextError)
    bench.refuses(lambda: sg.compare(masked, []), "at least one text")


@pytest.mark.parametrize(
    "text",
    ["🧬🧬", "$ $$ $5$ \\frac{1}{2}", "a\x00b\x07c", "<script>alert(1)</script>", "שלום", "👨‍👩‍👧"],
)
def test_odd_characters_are_read(masked, minilm, text):
    for model in (masked, minilm):
        reading = read(model, text)
        assert len(reading.tokens) == len(reading.ids) == len(reading.kinds) >= 3


@pytest.mark.parametrize("text", ["the \ud83d dog", ("the", "\udcff")])
def test_half_of_a_character_is_refused(masked, text):
    bench.refuses(lambda: read(masked, text), "U+D", "UTF-8", error=sg.TextError)


# --- masks --------------------------------------------------------------------------------------------------


def test_no_mask_names_this_models_mask(masked, roberta, minilm):
    assert "[MASK]" in said(read(masked, "the cat")) and "[MASK]" in said(read(masked, "the cat"), "zh")
    assert "<mask>" in said(read(roberta, "the cat"))
    assert said(read(minilm, "the cat")) == ""  # it guesses nothing
    assert sg.compare(masked, "the cat").baseline.predictions == []


def test_several_masks_have_a_place_each(masked):
    reading = read(masked, "the [MASK] [MASK]")
    assert reading.masks == (2, 3) and said(reading) == ""
    comparison = sg.compare(masked, "the [MASK] [MASK]", sg.HideSelf())
    assert len(comparison.baseline.predictions) == 2
    assert [site["position"] for site in comparison.output["sites"]] == [2, 3]


@pytest.mark.parametrize("typed", ["[mask]", "<mask>", "<MASK>", "[Mask]"])
def test_a_mask_in_another_spelling_is_converted_and_said(masked, roberta, typed):
    reading = read(masked, f"the {typed} ran")
    assert reading.masks == (2,) and typed in said(reading) and "[MASK]" in said(reading)


def test_a_mask_of_another_model_is_converted(roberta):
    reading = read(roberta, "the [MASK] cat")
    assert reading.tokens == ("<s>", "the", "<mask>", "▁cat", "</s>") and "[MASK] was read as <mask>" in said(
        reading
    )


def test_a_mask_that_is_cut_off_is_said():
    short = patients.patient("BertForMaskedLM", "masked_lm", room=8)
    reading = read(short, "the dog bit the man and the [MASK]")
    assert reading.masks == () and "mask was cut off" in said(reading) and "write [MASK]" not in said(reading)
    both = read(short, "the [MASK] bit the man and the [MASK]")
    assert both.masks == (2,) and "mask was cut off" in said(both)


def test_typed_special_tokens_are_special_unless_taken_literally(masked):
    reading = read(masked, "the [SEP] cat")
    assert reading.tokens == ("[CLS]", "the", "[SEP]", "cat", "[SEP]") and reading.segments == (0,) * 5
    assert reading.separators == (False, False, True, False, True)
    literal = read(masked, "the [SEP] cat [MASK]", literal=True)
    assert literal.tokens.count("[SEP]") == 1 and literal.masks == () and literal.tokens.count("[UNK]") >= 2
    assert read(masked, "the [SEP] cat") == reading  # the option of one call does not stay


# --- padding ------------------------------------------------------------------------------------------------


def test_texts_are_padded_to_one_length_or_to_more(masked):
    readings = [read(masked, text) for text in ("the dog bit", "a cat")]
    padded, inputs = batch(masked, readings, pad_to=7)
    assert inputs["input_ids"].shape == (2, 7)
    assert inputs["attention_mask"].tolist() == [[1] * 5 + [0] * 2, [1] * 4 + [0] * 3]
    assert padded[1].tokens == ("[CLS]", "a", "cat", "[SEP]", "[PAD]", "[PAD]", "[PAD]")
    assert padded[1].kinds[-3:] == ("padding",) * 3 and (padded[1].kept, padded[1].total) == (4, 4)
    assert not padded[1].truncated


@pytest.mark.parametrize("pad_to", [4, 42, -1, 2.5, "9", True])
def test_impossible_padding_is_refused(masked, pad_to):
    bench.refuses(lambda: sg.compare(masked, "the dog bit", pad_to=pad_to), str(pad_to), error=sg.TextError)


# --- threads ------------------------------------------------------------------------------------------------


def test_readers_in_other_threads_do_not_change_each_other(masked):
    asked = [("the [SEP] cat", literal) for literal in (False, True)] * 100
    expected = {literal: read(masked, text, literal=literal) for text, literal in asked[:2]}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda a: (a[1], read(masked, a[0], literal=a[1])), asked))
    assert all(reading == expected[literal] for literal, reading in found)
