import pytest

import models
from bilingual import SurgeryError, Words


def test_public_names():
    assert sorted(models.__all__) == [
        "DecoderConfig",
        "DecoderForCausalLM",
        "DecoderModel",
        "EncoderConfig",
        "EncoderDecoderConfig",
        "EncoderDecoderForTranslation",
        "EncoderForMaskedLM",
        "EncoderForSequenceClassification",
        "EncoderModel",
        "LoadError",
        "LoadedModel",
        "available",
        "load",
    ]
    for name in models.__all__:
        assert getattr(models, name) is not None
    with pytest.raises(AttributeError, match="EncoderModell"):
        models.EncoderModell  # noqa: B018
    assert issubclass(models.LoadError, SurgeryError)


def test_every_available_name_loads_and_is_described_in_both_languages():
    assert list(models.available()) == [
        "minilm",
        "encoder",
        "encoder-zh",
        "characters",
        "translator",
        "encoder-untrained",
    ]
    for name, line in models.available().items():
        assert isinstance(line, Words) and all(line) and "\n" not in line.en + line.zh
        assert models.load(name, device="cpu").name == name


def test_importing_models_imports_no_torch(python):
    said = python(
        "import sys, models; models.available(); print('torch' in sys.modules, len(sys.modules) < 400)"
    )
    assert said.split() == ["False", "True"]


def test_models_know_neither_surgery_nor_gradio(python):
    said = python(
        "import sys, models\n"
        "import models.encoder, models.folders, models.hub, models.packaged, models.pretrained, models.scratch\n"
        "import models.decoder, models.shipped, models.tasks, models.training, models.training.__main__\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('surgery', 'gradio', 'ui')])\n"
    )
    assert said.strip() == "[]"
