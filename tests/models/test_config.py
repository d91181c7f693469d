import pytest

from bilingual import SurgeryError
from models import EncoderConfig


def test_both_vocabularies_name_the_same_field():
    textbook = EncoderConfig(d_model=35, num_heads=5, num_layers=3, d_ff=17, max_positions=13)
    transformers = EncoderConfig(
        hidden_size=35,
        num_attention_heads=5,
        num_hidden_layers=3,
        intermediate_size=17,
        max_position_embeddings=13,
    )
    for config in (textbook, transformers):
        assert (config.hidden_size, config.num_attention_heads, config.num_hidden_layers) == (35, 5, 3)
        assert (config.d_model, config.num_heads, config.num_layers) == (35, 5, 3)
        assert (config.intermediate_size, config.max_position_embeddings) == (
            config.d_ff,
            config.max_positions,
        )
        assert config.d_head == 7
        assert config.initializer_range == pytest.approx(35**-0.5)
    assert textbook.to_dict() == transformers.to_dict()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"d_model": 30, "num_heads": 4}, ["30", "num_heads=4", "1, 2, 3, 5, 6, 10, 15, 30", "d_model=32"]),
        ({"hidden_size": 30, "num_attention_heads": 4}, ["d_model=30"]),
        ({"d_model": 15, "num_heads": 5, "positions": "rotary"}, ["odd head width of 3", "d_model=20"]),
        ({"positions": "rope"}, ["'rope'", '"none"', '"sinusoidal"', '"learned"', '"rotary"']),
        ({"norm": "middle"}, ["'middle'", '"pre"', '"post"']),
        ({"d_model": 0}, ["d_model=0"]),
        ({"num_heads": 0}, ["num_heads=0"]),
        ({"num_layers": -1}, ["num_layers=-1"]),
        ({"max_positions": 0}, ["max_positions=0"]),
        ({"dropout": 1.0}, ["dropout=1.0"]),
        ({"dropout": -0.1}, ["dropout=-0.1"]),
        ({"dropout": float("nan")}, ["dropout=nan"]),
        ({"n_heads": 8}, ["n_heads", "num_heads"]),
        ({"layers": 3}, ["layers", "num_layers"]),
    ],
)
def test_a_configuration_that_cannot_be_built_teaches(wrong, says):
    with pytest.raises(SurgeryError) as error:
        EncoderConfig(**wrong)
    assert isinstance(error.value, ValueError)
    for part in says:
        assert part in str(error.value)
    assert error.value.say("zh") != str(error.value)


def test_an_odd_width_is_fine_where_the_mathematics_allows_it():
    EncoderConfig(d_model=15, num_heads=5, positions="sinusoidal")
    EncoderConfig(d_model=15, num_heads=5, positions="learned")
