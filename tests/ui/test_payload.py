import base64
import json

import numpy as np
import pytest

from ui.payload import HIGHEST, NOT_A_NUMBER, attention_payload

LAYERS, HEADS, SIZE = 2, 3, 5
TOKENS = ["[CLS]", "a", "b", "c", "[PAD]"]
KINDS = ["special", "word", "word", "word", "padding"]


@pytest.fixture
def weights(fabricate):
    return fabricate(LAYERS, HEADS, SIZE)


def payload(baseline, operated, **options):
    divergence = options.pop("divergence", np.zeros(baseline.shape[:2]))
    tokens, kinds = options.pop("tokens", TOKENS), options.pop("kinds", KINDS)
    return attention_payload(baseline, operated, tokens, kinds, divergence, **options)


def decoded(result, side):
    codes = np.frombuffer(base64.b64decode(result[side]), "<u2")
    values = np.where(codes == NOT_A_NUMBER, np.nan, codes * (result["scale"] / HIGHEST))
    size = len(result["tokens"])
    return values.reshape(len(result["captured"]), result["heads"], size, size)


def test_weights_survive_the_round_trip_to_half_a_step(weights):
    result = payload(*weights)
    for side, original in zip(("baseline", "operated"), weights, strict=True):
        assert np.abs(decoded(result, side) - original).max() <= 0.5 / HIGHEST + 1e-7


def test_it_is_strict_json(weights):
    broken = weights.copy()
    broken[1, 0, 1, 2, 3] = np.nan
    result = payload(*broken, divergence=np.full((LAYERS, HEADS), np.nan))
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["divergence"] == [[None] * HEADS] * LAYERS


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_a_number_stays_not_a_number(weights, bad):
    weights[1, 0, 1, 2, 3] = bad
    operated = decoded(payload(*weights), "operated")
    assert np.argwhere(np.isnan(operated)).tolist() == [[0, 1, 2, 3]]


def test_a_weight_above_one_stretches_both_sides_alike(weights):
    weights[1, 0, 0, 0, 0] = 10.0
    result = payload(*weights)
    assert result["scale"] == 10.0
    assert np.abs(decoded(result, "operated") - weights[1]).max() <= 5.0 / HIGHEST + 1e-6
    same = weights[0] == weights[1]
    assert (decoded(result, "baseline")[same] == decoded(result, "operated")[same]).all()


def test_rows_without_a_key_are_packed_in_order(weights):
    no_key = np.zeros((LAYERS, HEADS, SIZE), bool)
    no_key[1, 2, 3] = True
    bits = np.frombuffer(base64.b64decode(payload(*weights, no_key_operated=no_key)["no_key_operated"]), "u1")
    flags = np.unpackbits(bits, bitorder="little", count=no_key.size).reshape(no_key.shape)
    assert np.argwhere(flags).tolist() == [[1, 2, 3]]


def test_the_largest_difference_is_exact_where_the_codes_cannot_tell(weights):
    baseline = weights[0]
    operated = baseline.copy()
    operated[0, 1, 2, 3] = np.nextafter(operated[0, 1, 2, 3], np.float32(1))
    result = payload(baseline, operated)
    assert result["baseline"] == result["operated"]
    assert result["largest"][0][1] > 0
    assert result["largest"][1] == [0, 0, 0]


def test_captured_layers_and_the_number_of_layers(weights):
    result = payload(*weights, captured=[3, 7], layers=11)
    assert (result["captured"], result["layers"]) == ([3, 7], 11)
    assert payload(*weights)["captured"] == [0, 1]


def test_the_stamp_names_the_content(weights):
    first, again = payload(*weights), payload(*weights)
    other = payload(weights[1], weights[0])
    assert first["stamp"] == again["stamp"] != other["stamp"]
    assert payload(*weights, stamp="run 7")["stamp"] == "run 7"


def test_every_head_of_bert_fits_in_four_megabytes(fabricate):
    big = fabricate(12, 12, 64)
    result = payload(*big, tokens=["x"] * 64, kinds=["word"] * 64)
    assert len(json.dumps(result)) < 4_000_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens": TOKENS[:4]}, "4 tokens"),
        ({"kinds": ["word"] * 4 + ["verb"]}, "'verb'"),
        ({"captured": [1, 0]}, "in order"),
        ({"captured": [0, 5], "layers": 5}, "layers 0-4"),
        ({"divergence": np.zeros((HEADS, LAYERS))}, "divergence"),
        ({"no_key_baseline": np.zeros((LAYERS, SIZE, HEADS), bool)}, "no_key_baseline"),
    ],
)
def test_what_does_not_fit_is_refused(weights, options, message):
    with pytest.raises(ValueError, match=message):
        payload(*weights, **options)


def test_negative_weights_and_unequal_sides_are_refused(weights):
    with pytest.raises(ValueError, match="0 or more"):
        payload(weights[0], weights[1] - 1)
    with pytest.raises(ValueError, match="operated is"):
        payload(weights[0], weights[1][:1])
