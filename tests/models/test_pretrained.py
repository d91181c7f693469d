import shutil

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import models
from models import LoadError
from models.loaded import NO_LIMIT

BERT_VOCAB = 13


def load(folder):
    return models.load(folder, device="cpu")


def run(loaded, *texts):
    with torch.inference_mode():
        return loaded.model(**loaded.tokenizer(*texts, return_tensors="pt"))


# --- which class, decided by the configuration --------------------------------------------------------------


@pytest.mark.parametrize(
    ("saved", "config", "kind", "loaded"),
    [
        ("BertForMaskedLM", {}, "masked_lm", "BertForMaskedLM"),
        ("BertForPreTraining", {}, "masked_lm", "BertForMaskedLM"),
        ("BertLMHeadModel", {"is_decoder": True}, "causal_lm", "BertLMHeadModel"),
        ("BertForMaskedLM", {"is_decoder": True}, "causal_lm", "BertLMHeadModel"),
        ("BertForSequenceClassification", {"num_labels": 3}, "classifier", "BertForSequenceClassification"),
        ("BertModel", {}, "encoder", "BertModel"),
        ("BertForTokenClassification", {}, "encoder", "BertModel"),
        ("RobertaForMaskedLM", {}, "masked_lm", "RobertaForMaskedLM"),
        ("ElectraForMaskedLM", {"embedding_size": 10}, "masked_lm", "ElectraForMaskedLM"),
        ("ElectraForPreTraining", {"embedding_size": 10}, "encoder", "ElectraModel"),
        ("DistilBertForSequenceClassification", {"dim": 10, "n_heads": 5}, "classifier", None),
        ("GPT2LMHeadModel", {}, "causal_lm", "GPT2LMHeadModel"),
        ("GPT2Model", {}, "encoder", "GPT2Model"),
    ],
)
def test_the_configuration_decides(save, saved, config, kind, loaded):
    patient = load(save(saved, folder="named-like-a-causal-classifier", **config))
    assert (patient.kind, type(patient.model).__name__) == (kind, loaded or saved)
    assert patient.trained and not patient.model.training
    assert bool(patient.caveats) is (kind == "encoder")
    assert patient.source.endswith("named-like-a-causal-classifier")
    out = run(patient, "the dog bit")
    rows = {"encoder": None, "classifier": (1, config.get("num_labels", 2))}.get(kind, (1, 5, BERT_VOCAB))
    assert getattr(out, "logits", torch.empty(0)).shape == (rows or (0,))


@pytest.mark.parametrize(
    ("saved", "config", "kind"),
    [
        ("BertForMaskedLM", {}, "masked_lm"),
        ("BertLMHeadModel", {"is_decoder": True}, "causal_lm"),
        ("GPT2LMHeadModel", {}, "causal_lm"),
    ],
)
def test_without_a_saved_class_name_the_family_decides(save, edit_config, saved, config, kind):
    assert load(edit_config(save(saved, **config), architectures=None)).kind == kind


def test_a_classifier_has_its_labels(save):
    labels = {0: "bad", 1: "so-so", 2: "good"}
    patient = load(save("BertForSequenceClassification", id2label=labels))
    assert patient.labels == labels
    assert load(save("BertForMaskedLM")).labels is None


def test_an_encoder_decoder_is_refused(save):
    sizes = {"d_model": 10, "d_ff": 7, "d_kv": 2, "num_layers": 2, "num_heads": 5}
    with pytest.raises(LoadError, match=r"t5.*encoder-decoder"):
        load(save("T5ForConditionalGeneration", **sizes))


def test_a_model_that_reads_pictures_is_refused(save):
    with pytest.raises(LoadError, match=r"vit.*[Tt]ext model"):
        load(save("ViTModel", image_size=8, patch_size=4))


def test_weights_equal_those_of_stock_transformers(save):
    folder = save("BertForMaskedLM")
    ours, theirs = load(folder), transformers.BertForMaskedLM.from_pretrained(folder)
    for name, weight in theirs.state_dict().items():
        assert torch.equal(ours.model.state_dict()[name], weight), name


# --- a prediction head that the checkpoint lacks ------------------------------------------------------------


@pytest.mark.parametrize(
    ("saved", "claimed", "config"),
    [
        ("BertModel", "BertForMaskedLM", {}),
        ("BertModel", "BertForSequenceClassification", {}),
        ("RobertaModel", "RobertaForMaskedLM", {}),
        ("DistilBertModel", "DistilBertForMaskedLM", {"dim": 10, "n_heads": 5}),
        ("DistilBertModel", "DistilBertForSequenceClassification", {"dim": 10, "n_heads": 5}),
        ("BertForMaskedLM", "BertForSequenceClassification", {}),
    ],
)
def test_a_missing_head_is_seen_and_not_used(save, edit_config, saved, claimed, config):
    folder = edit_config(save(saved, **config), architectures=[claimed])
    torch.manual_seed(1)
    one = load(folder)
    torch.manual_seed(2)
    other = load(folder)
    assert one.kind == "encoder" and one.labels is None
    assert claimed in one.caveats[0].en and claimed in one.caveats[0].zh
    assert "not used" in one.caveats[0].en
    hidden = [run(patient, "the [MASK] bit").last_hidden_state for patient in (one, other)]
    assert torch.equal(*hidden)


def test_a_classifier_without_its_pooler_is_headless(save):
    folder = save("BertForSequenceClassification")
    weights = load_file(folder / "model.safetensors")
    kept = {name: weight for name, weight in weights.items() if "pooler" not in name}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    patient = load(folder)
    assert patient.kind == "encoder" and "BertForSequenceClassification" in patient.caveats[0].en


def test_a_bare_bert_says_so_where_its_configuration_says_so(save):
    patient = load(save("BertModel"))
    assert "BertModel" in patient.caveats[0].en
    assert run(patient, "the [MASK] bit").last_hidden_state.shape == (1, 5, 10)


def test_tied_weights_are_not_missing(save):
    for saved in ("BertForMaskedLM", "RobertaForMaskedLM", "GPT2LMHeadModel"):
        patient = load(save(saved, folder=saved))
        assert patient.caveats == ()
        assert patient.model.get_output_embeddings().weight is patient.model.get_input_embeddings().weight


def test_incomplete_weights_are_refused(save):
    short = save("BertModel", num_hidden_layers=1)
    longer = save("BertModel", folder="longer", num_hidden_layers=3)
    shutil.copy(short / "model.safetensors", longer)
    with pytest.raises(LoadError, match=r"lacks 32 of its weights.*encoder\.layer\.1"):
        load(longer)


def test_weights_of_another_width_are_refused(save):
    wide = save("BertModel", hidden_size=20, folder="wide")
    narrow = save("BertModel")
    shutil.copy(wide / "model.safetensors", narrow)
    with pytest.raises(LoadError, match=r"weights of .* cannot be read"):
        load(narrow)


def test_loading_is_silent(save, edit_config, python):
    folder = edit_config(save("BertModel"), architectures=["BertForMaskedLM"])
    script = "import sys; sys.stderr = sys.stdout; import models; models.load({!r}); models.load('minilm')"
    assert python(script.format(str(folder))) == ""


def test_loading_leaves_the_process_as_it_was(save, edit_config):
    folder = edit_config(save("BertModel"), architectures=["BertForMaskedLM"])
    random_state = torch.random.get_rng_state()
    settings = (transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled())
    load(folder)
    assert torch.equal(torch.random.get_rng_state(), random_state)
    assert settings == (
        transformers.logging.get_verbosity(),
        transformers.logging.is_progress_bar_enabled(),
    )


# --- how long a text may be ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("saved", "config", "limit"),
    [
        ("BertForMaskedLM", {}, 11),
        ("GPT2LMHeadModel", {}, 11),
        ("DistilBertModel", {"dim": 10, "n_heads": 5}, 11),
        ("ElectraModel", {"embedding_size": 10}, 11),
        ("OPTForCausalLM", {"word_embed_proj_dim": 10, "ffn_dim": 7}, 11),
        ("RobertaForMaskedLM", {"pad_token_id": 0}, 10),
        ("RobertaForMaskedLM", {"pad_token_id": 1}, 9),
        ("XLMRobertaModel", {"pad_token_id": 1}, 9),
        ("CamembertModel", {"pad_token_id": 1}, 9),
        ("MPNetModel", {"pad_token_id": 1}, 9),
    ],
)
def test_max_tokens_is_exact(save, saved, config, limit):
    patient = load(save(saved, **config))
    assert patient.max_tokens == limit
    with torch.inference_mode():
        patient.model(input_ids=torch.full((1, limit), 7))
        with pytest.raises((IndexError, RuntimeError)):
            patient.model(input_ids=torch.full((1, limit + 1), 7))


def test_the_tokenizers_own_limit_counts(save, tiny_tokenizer):
    tokenizer = tiny_tokenizer()
    tokenizer.model_max_length = 5
    assert load(save("BertModel", tokenizer)).max_tokens == 5


def test_no_limit_is_a_number_too(save, edit_config):
    patient = load(edit_config(save("BloomForCausalLM"), max_position_embeddings=None))
    assert patient.max_tokens == NO_LIMIT
    truncated = patient.tokenizer("the dog", truncation=True, max_length=patient.max_tokens)
    assert len(truncated["input_ids"]) == 4


@pytest.mark.parametrize(("positions", "limit"), [("learned", 19), ("rotary", NO_LIMIT), ("none", NO_LIMIT)])
def test_the_from_scratch_encoders_limit(tmp_path, tiny_tokenizer, positions, limit):
    config = models.EncoderConfig(vocab_size=BERT_VOCAB, max_positions=19, positions=positions)
    models.EncoderModel(config).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    patient = load(tmp_path)
    assert (patient.kind, patient.max_tokens) == ("encoder", limit)


# --- tokenizers that ask for more than the model has --------------------------------------------------------


@pytest.mark.parametrize(
    ("saved", "config", "segments"),
    [
        ("BertForMaskedLM", {}, True),
        ("ElectraModel", {"embedding_size": 10}, True),
        ("RobertaForMaskedLM", {"type_vocab_size": 1}, False),
        ("XLMRobertaModel", {"type_vocab_size": 1}, False),
        ("DistilBertModel", {"dim": 10, "n_heads": 5}, False),
    ],
)
def test_pairs_work_on_every_family(save, saved, config, segments):
    patient = load(save(saved, **config))  # the tokenizer offers segment ids 0 and 1 to all of them
    batch = patient.tokenizer("the dog", "a cat bit", return_tensors="pt")
    assert ("token_type_ids" in batch) is segments
    assert batch["input_ids"].shape == (1, 8)
    with torch.inference_mode():
        out = patient.model(**batch, output_hidden_states=True)
    assert out.hidden_states[-1].isfinite().all()


def test_a_larger_vocabulary_is_said(save, tiny_tokenizer):
    patient = load(save("BertForMaskedLM", tiny_tokenizer(extra=["extra"])))
    assert patient.vocab_size == BERT_VOCAB and len(patient.tokenizer) == BERT_VOCAB + 1
    assert patient.tokenizer("extra")["input_ids"][1] == BERT_VOCAB
    (caveat,) = patient.caveats
    for words in caveat:
        assert f"0-{BERT_VOCAB - 1}" in words and str(BERT_VOCAB) in words
    assert run(patient, "the dog").logits.isfinite().all()


def test_a_smaller_vocabulary_is_nothing_to_mention(save):
    assert load(save("BertForMaskedLM", vocab_size=17)).caveats == ()


def test_something_to_pad_with(save, tiny_tokenizer):
    tokenizer = tiny_tokenizer()
    tokenizer.pad_token, tokenizer.eos_token = None, "[SEP]"
    patient = load(save("GPT2LMHeadModel", tokenizer))
    assert patient.tokenizer.pad_token == "[SEP]"
    batch = patient.tokenizer(["the dog", "a"], padding=True, return_tensors="pt")
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]


# --- folders that cannot be loaded --------------------------------------------------------------------------


def test_a_folder_needs_no_network_and_may_be_spelled_in_many_ways(save, monkeypatch):
    folder = save("BertModel")
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))
    for name in (folder, str(folder), f"{folder}/", "./model", "model", "~/model"):
        assert load(name).name == str(name)


@pytest.mark.parametrize(
    ("removed", "says"),
    [
        ("config.json", "no config.json"),
        ("model.safetensors", "no complete safetensors weights"),
        ("tokenizer.json", "no tokenizer"),
    ],
)
def test_a_missing_file_is_named(save, removed, says):
    folder = save("BertForMaskedLM")
    (folder / removed).unlink()
    with pytest.raises(LoadError, match=says) as error:
        load(folder)
    assert removed.split(".")[0] in error.value.say("zh") or "分词器" in error.value.say("zh")


def test_pickled_weights_are_not_opened(save):
    folder = save("BertForMaskedLM")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(LoadError, match=r"only pytorch_model\.bin.*Convert them to safetensors"):
        load(folder)


def test_a_missing_shard_is_noticed(save):
    folder = save("BertForMaskedLM")
    transformers.BertForMaskedLM.from_pretrained(folder).save_pretrained(folder, max_shard_size="2KB")
    (folder / "model.safetensors").unlink()
    assert load(folder).kind == "masked_lm"
    next(folder.glob("model-*.safetensors")).unlink()
    with pytest.raises(LoadError, match="no complete safetensors"):
        load(folder)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model_type": "bert", "hidden_size": "wide"}'])
def test_a_broken_configuration_is_one_clear_line(save, content):
    folder = save("BertForMaskedLM")
    (folder / "config.json").write_text(content)
    with pytest.raises(LoadError, match=r"configuration of .* cannot be read: .") as error:
        load(folder)
    assert "\n" not in str(error.value)


def test_an_architecture_that_brings_its_own_code_is_refused(save, edit_config):
    code = {"AutoConfig": "evil.EvilConfig", "AutoModel": "evil.EvilModel"}
    folder = edit_config(save("BertForMaskedLM"), model_type="evil", auto_map=code)
    (folder / "evil.py").write_text("raise SystemExit('ran a stranger\\'s code')")
    with pytest.raises(LoadError, match="cannot be read"):
        load(folder)


@pytest.mark.parametrize(
    ("file", "part"), [("model.safetensors", "weights"), ("tokenizer.json", "tokenizer")]
)
def test_a_truncated_file_is_one_clear_line(save, file, part):
    folder = save("BertForMaskedLM")
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[: len(content) // 2])
    with pytest.raises(LoadError, match=f"{part} of .* cannot be read: .") as error:
        load(folder)
    assert "\n" not in str(error.value)
