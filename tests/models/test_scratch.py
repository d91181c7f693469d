import pytest
import torch

import models
from bilingual import SurgeryError
from models import EncoderForMaskedLM
from models.vocabulary import ENGLISH, ENGLISH_CLASSES, SPECIALS, plural
from models.words import whole_word_tokenizer


@pytest.fixture(scope="module")
def encoder():
    return models.load("encoder-untrained", device="cpu")


def test_the_encoder_says_that_it_is_untrained(encoder):
    assert isinstance(encoder.model, EncoderForMaskedLM)
    assert encoder.trained is False
    (caveat,) = encoder.caveats
    assert "ntrained" in caveat.en and "未经训练" in caveat.zh
    assert "untrained" in models.available()["encoder-untrained"].en


def test_what_the_encoder_is(encoder):
    config = encoder.model.config
    sizes = (config.d_model, config.num_heads, config.num_layers, config.d_ff, config.positions, config.norm)
    assert sizes == (64, 4, 2, 128, "learned", "post")
    assert (encoder.name, encoder.kind, encoder.mask_token) == ("encoder-untrained", "masked_lm", "[MASK]")
    assert encoder.vocab_size == len(encoder.tokenizer) == len(ENGLISH)
    assert not encoder.model.training
    assert all(parameter.requires_grad for parameter in encoder.model.parameters())
    assert config._attn_implementation == "sdpa"


def test_the_weights_are_the_same_each_time_and_nobodys_random_numbers_move(encoder):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    again = models.load("encoder-untrained", device="cpu")
    assert torch.equal(torch.rand(3), expected)
    for name, weight in again.model.state_dict().items():
        assert torch.equal(weight, encoder.model.state_dict()[name]), name


def test_the_longest_text_is_exactly_max_tokens(encoder):
    ids = torch.full((1, encoder.max_tokens), 7)
    encoder.model(ids)
    with pytest.raises(SurgeryError, match=str(encoder.max_tokens + 1)):
        encoder.model(torch.full((1, encoder.max_tokens + 1), 7))
    cut = encoder.tokenizer("the dog " * 50, truncation=True, max_length=encoder.max_tokens)["input_ids"]
    assert len(cut) == encoder.max_tokens
    assert cut[-1] == encoder.tokenizer.sep_token_id


def test_vocabulary_has_each_word_once():
    assert len(set(ENGLISH)) == len(ENGLISH)
    assert ENGLISH[: len(SPECIALS)] == SPECIALS
    assert all(word == word.lower() for word in ENGLISH[len(SPECIALS) :])
    assert [plural(noun) for noun in ("dog", "fox", "man", "woman")] == ["dogs", "foxes", "men", "women"]
    assert {"dog", "dogs", "women", "herself", "?"} <= set(ENGLISH)
    assert "dogs" not in ENGLISH_CLASSES["animal"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The dog chased the cat.", ["[CLS]", "the", "dog", "chased", "the", "cat", "[UNK]", "[SEP]"]),
        ("who did it?", ["[CLS]", "who", "did", "it", "?", "[SEP]"]),
        ("who did it？", ["[CLS]", "who", "did", "it", "?", "[SEP]"]),
        ("the dog [MASK] the cat", ["[CLS]", "the", "dog", "[MASK]", "the", "cat", "[SEP]"]),
        ("the dog[MASK]", ["[CLS]", "the", "dog", "[MASK]", "[SEP]"]),
        ("doghouse $5", ["[CLS]", "[UNK]", "[UNK]", "[UNK]", "[SEP]"]),
        ("", ["[CLS]", "[SEP]"]),
    ],
)
def test_one_token_is_one_word(encoder, text, tokens):
    assert encoder.tokenizer.convert_ids_to_tokens(encoder.tokenizer(text)["input_ids"]) == tokens


def test_pairs_and_padding(encoder):
    batch = encoder.tokenizer(
        ["the dog", "the cat was big"], ["who", "who did it ?"], padding=True, return_tensors="pt"
    )
    assert set(batch) == {"input_ids", "attention_mask"}
    assert encoder.tokenizer.convert_ids_to_tokens(batch["input_ids"][0])[:7] == (
        ["[CLS]", "the", "dog", "[SEP]", "who", "[SEP]", "[PAD]"]
    )
    assert batch["attention_mask"].sum(1).tolist() == [6, 11]
    assert encoder.model(**batch).logits.shape == (2, 11, encoder.vocab_size)


def test_an_encoder_saved_with_its_tokenizer_loads_from_its_folder(encoder, tmp_path):
    encoder.model.save_pretrained(tmp_path)
    encoder.tokenizer.save_pretrained(tmp_path)
    again = models.load(tmp_path, device="cpu")
    assert (again.kind, again.max_tokens, again.caveats) == ("masked_lm", encoder.max_tokens, ())
    batch = encoder.tokenizer("the dog [MASK] the cat", return_tensors="pt")
    assert again.tokenizer("the dog [MASK] the cat")["input_ids"] == batch["input_ids"][0].tolist()
    with torch.inference_mode():
        assert torch.equal(again.model(**batch).logits, encoder.model(**batch).logits)


def test_any_words_make_a_tokenizer():
    tokenizer = whole_word_tokenizer([*SPECIALS, "one", "two"], max_tokens=5)
    assert tokenizer("One two")["input_ids"] == [2, 5, 6, 3]
    assert tokenizer.model_max_length == 5
