import surgery as sg
from tests import reference
from tests.reference import picture
from tests.surgery import bench


def test_the_diagonal_is_closed(specimen):
    bench.matches_mask(specimen, sg.HideSelf(), reference.without_self(specimen.tokens))
    assert (reference.without_self(3) == picture(".##", "#.#", "##.")).all()


def test_a_text_of_one_token_has_no_key_left(tiny):
    lone = {name: x[:, :1] for name, x in tiny.inputs.items()}
    seen = tiny.run(sg.HideSelf(), inputs=lone)
    for layer in seen.layers:
        assert not layer.site.weights.any() and not layer.output.any() and layer.site.no_key.all()
    assert seen.hidden[-1].isfinite().all()


def test_with_identity_attention_nothing_is_left(tiny):
    for watched in (True, False):
        assert not tiny.run(sg.HideSelf(), sg.IdentityAttention(), watched=watched).layers[1].output.any()


def test_others_are_left_alone(specimen):
    bench.leaves_others_alone(specimen, sg.HideSelf())
    bench.leaves_other_rows_alone(specimen, sg.HideSelf())


def test_parameters_are_refused():
    bench.refuses(lambda: sg.Plan.from_words(["hide_self=1"]), "HideSelf", "none", error=sg.OperationError)
