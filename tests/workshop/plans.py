"""Plans for every exercise: ones that pass, and plausible wrong ones with the hint that fits them."""

import random

import surgery as sg
from surgery import REGISTRY

WRONG: dict[str, list[tuple[sg.Plan, str]]] = {
    "order-lost": [
        (sg.Plan(sg.UniformAttention()), "attention_alone"),
        (sg.Plan(sg.ReversePositions()), "other_positions"),
        (sg.Plan(sg.CausalMask()), "mask"),
        (sg.Plan(sg.RemovePositions(), sg.Temperature(2.0)), "spare"),
        (sg.Plan(sg.KeyDropout(0.5, 1)), "mask"),
        (sg.Plan(sg.ScoreDropout(0.5, 1)), "still_apart"),
    ],
    "abc-cba": [
        (sg.Plan(sg.UniformAttention()), "still_placed"),
        (sg.Plan(sg.ShufflePositions(3)), "other_positions"),
        (sg.Plan(sg.LocalMask(1)), "mask"),
        (sg.Plan(sg.RemovePositions(), sg.CausalMask()), "mask_counts"),
        (sg.Plan(sg.RemovePositions(), sg.WeightDropout(0.3, 0)), "noise"),
    ],
    "order-from-mask": [
        (sg.Plan(sg.RemovePositions()), "no_order"),
        (sg.Plan(sg.CausalMask()), "positions_in"),
        (sg.Plan(sg.RemovePositions(), sg.HideSelf()), "blind_mask"),
        (sg.Plan(sg.RemovePositions(), sg.KeyDropout(0.3, 0)), "noise"),
        (sg.Plan(sg.ReversePositions(), sg.CausalMask()), "other_positions"),
        (sg.Plan(sg.RemovePositions(), sg.CausalMask(), sg.DropScaling()), "spare"),
    ],
    "beyond-trained": [
        (sg.Plan(sg.ShiftPositions(20)), "not_yet"),
        (sg.Plan(sg.ShiftPositions(80)), "too_far"),
        (sg.Plan(sg.ShufflePositions(0)), "order"),
        (sg.Plan(sg.DropScaling()), "not_positions"),
        (sg.Plan(sg.ShiftPositions(46), sg.Temperature(2.0)), "others"),
    ],
    "root-dk": [
        (sg.Plan(sg.Temperature(4.0)), "flatter"),
        (sg.Plan(sg.Temperature(0.5)), "too_little"),
        (sg.Plan(sg.Temperature(0.1)), "too_much"),
        (sg.Plan(sg.DropScaling().at("L0.H0-2")), "some_heads"),
        (sg.Plan(sg.DropScaling().at("L1")), "not_the_scores"),
        (sg.Plan(sg.DropScaling(), sg.CausalMask()), "others"),
    ],
    "saturation": [
        (sg.Plan(sg.DropScaling()), "not_enough"),
        (sg.Plan(sg.Temperature(4.0)), "flat"),
        (sg.Plan(sg.LocalMask(0)), "masked"),
        (sg.Plan(sg.AblateHead()), "cut_off"),
        (sg.Plan(sg.Temperature(0.99)), "no_effect"),
    ],
    "temperature": [
        (sg.Plan(sg.Temperature(0.2)), "sharp"),
        (sg.Plan(sg.Temperature(1.5)), "not_broken"),
        (sg.Plan(sg.UniformAttention()), "no_other_side"),
        (sg.Plan(sg.CausalMask()), "other_stage"),
    ],
    "padding": [
        (sg.Plan(sg.CausalMask()), "not_padding_alone"),
        (sg.Plan(sg.Temperature(1.1)), "no_weight"),
        (sg.Plan(sg.IgnorePaddingMask().at("L0.H0")), "little_harm"),
        (sg.Plan(sg.IgnorePaddingMask(), sg.Temperature(1.1)), "spare"),
    ],
    "causal": [
        (sg.Plan(sg.CausalMask().at("L0")), "some_heads"),
        (sg.Plan(sg.RemovePositions()), "ahead"),
        (sg.Plan(sg.IdentityAttention()), "no_past"),
        (sg.Plan(sg.CausalMask(), sg.DropScaling()), "others"),
        (sg.Plan(sg.CausalMask(), sg.HideSelf()), "spare"),
    ],
    "local": [
        (sg.Plan(sg.LocalMask(3)), "too_narrow"),
        (sg.Plan(sg.LocalMask(16)), "too_wide"),
        (sg.Plan(sg.LocalMask(60)), "still_far"),
        (sg.Plan(sg.LocalMask(3).at("L1")), "still_far"),
        (sg.Plan(sg.CausalMask()), "no_window"),
    ],
    "closed-row": [
        (sg.Plan(sg.LocalMask(0)), "one_key"),
        (sg.Plan(sg.LocalMask(0), sg.HideSelf()), "all_shut"),
        (sg.Plan(sg.KeyDropout(0.7, 0)), "by_chance"),
        (sg.Plan(sg.AblateHead()), "head_off"),
        (sg.Plan(sg.DropScaling()), "no_mask"),
        (sg.Plan(sg.CausalMask().at("H0"), sg.HideSelf().at("H0")), "some_heads"),
    ],
    "dropouts": [
        (sg.Plan(sg.ScoreDropout(0.3, 0)), "score"),
        (sg.Plan(sg.WeightDropout(0.3, 0)), "sums"),
        (sg.Plan(sg.LocalMask(2)), "always_same"),
        (sg.Plan(sg.KeyDropout(0.3, 0).at("L0")), "some_heads"),
        (sg.Plan(sg.OutputDropout(0.3, 0)), "none_gone"),
        (sg.Plan(sg.KeyDropout(1.0, 0)), "too_many"),
    ],
    "heads-off": [
        (sg.Plan(sg.AblateHead().at("L1.H0")), "more"),
        (sg.Plan(sg.AblateHead().at("L1.H1")), "needed"),
        (sg.Plan(sg.AblateHead()), "needed"),
        (sg.Plan(sg.UniformAttention()), "none_off"),
    ],
    "not-explanation": [
        (sg.Plan(sg.AblateHead().at("L0.H3")), "looks_elsewhere"),
        (sg.Plan(sg.AblateHead().at("L1.H1")), "costs"),
        (sg.Plan(sg.AblateHead()), "some_elsewhere"),
        (sg.Plan(sg.UniformAttention()), "none_off"),
        (sg.Plan(sg.AblateHead().at("L1.H3"), sg.HideSelf()), "others"),
    ],
    "collapse-sharp": [
        (sg.Plan(sg.DropScaling()), "not_sharp"),
        (sg.Plan(sg.Temperature(4.0)), "flatter"),
        (sg.Plan(sg.IdentityAttention()), "masked"),
        (sg.Plan(sg.Temperature(0.002).at("L0")), "some_heads"),
        (sg.Plan(sg.Temperature(0.001), sg.ReversePositions()), "others"),
    ],
    "collapse-flat": [
        (sg.Plan(sg.AblateHead()), "silent"),
        (sg.Plan(sg.Temperature(4.0)), "not_same"),
        (sg.Plan(sg.Temperature(0.1)), "more_different"),
        (sg.Plan(sg.RemovePositions()), "positions"),
        (sg.Plan(sg.UniformAttention().at("L0")), "some_heads"),
    ],
}

ALSO_RIGHT: dict[str, list[sg.Plan]] = {
    "order-lost": [sg.Plan(sg.SamePosition())],
    "abc-cba": [sg.Plan(sg.SamePosition())],
    "order-from-mask": [sg.Plan(sg.SamePosition(), sg.LocalMask(1))],
    "beyond-trained": [sg.Plan(sg.ShiftPositions(40), sg.ShiftPositions(6))],
    "root-dk": [sg.Plan(sg.Temperature(0.25)), sg.Plan(sg.DropScaling().at("L0"))],
    "saturation": [sg.Plan(sg.DropScaling(), sg.Temperature(0.2))],
    "temperature": [sg.Plan(sg.Temperature(8.0))],
    "causal": [],
    "closed-row": [sg.Plan(sg.CausalMask(), sg.BlockTokens([0]))],
    "dropouts": [sg.Plan(sg.KeyDropout(0.5, 7))],
    "collapse-sharp": [sg.Plan(sg.Temperature(0.01))],
    "collapse-flat": [sg.Plan(sg.ScoreDropout(1.0, 0)), sg.Plan(sg.Temperature(200.0))],
}
"""Other plans that show the effect, on the English model."""


def drawn(seed: int, layers: int, heads: int) -> sg.Plan:
    """A plan of one to three random operations with random parameters, each everywhere, on layers, or on single heads."""
    r = random.Random(seed)
    steps = []
    for _ in range(r.choice((1, 1, 2, 3))):
        kind = REGISTRY[r.choice(sorted(REGISTRY))]
        values = {name: _value(about, r) for name, about in kind.parameters().items()}
        steps.append(kind(**values).at(_place(layers, heads, r)))
    return sg.Plan(*steps)


def _place(layers: int, heads: int, r: random.Random) -> str:
    if r.random() < 1 / 3:
        return "L*"
    some = sorted(r.sample(range(layers), r.randint(1, layers)))
    text = "L" + ",".join(map(str, some))
    return (
        text
        if r.random() < 0.5
        else f"{text}.H{','.join(map(str, r.sample(range(heads), r.randint(1, heads))))}"
    )


def _value(about, r: random.Random):
    if about.kind == "positions":
        return sorted(r.sample(range(6), r.randint(1, 3)))
    if about.kind == "picture":
        size = r.randint(3, 12)
        return ["".join(r.choice("01") for _ in range(size)) for _ in range(size)]
    low, high = about.slider or (about.low, about.high)
    if about.kind == "int":
        return r.randint(int(low), int(high))
    if about.log:
        return float(low) * (float(high) / float(low)) ** r.random()
    return r.uniform(low, high)
