"""One family under one operation: refused with a reason, or equal to a float64 reference on the tensors of that very call.

What attention was called with is taken at transformers' registry, outside of surgery. What it may attend to, how it scales
and where its positions live is known from the list of families and not asked of surgery.
"""

import re
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from transformers import AttentionInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

import surgery as sg
from surgery import theatre
from surgery.capture import Keep
from tests import reference
from tests.surgery.bench import EPSILON
from tests.surgery.conformance.families import Case, inputs

POSITIONS = "positions"
SELF_ONLY = {"causal_mask", "local_mask", "hide_self", "identity_attention", "custom_mask"}


@dataclass
class Seen:
    """One call of attention: arrays (row, head, token, width), and what came of it, (row, query, head, width)."""

    module: torch.nn.Module
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scaling: float
    bias: np.ndarray
    output: torch.Tensor
    site: object = None


class Patient:
    """A tiny model of a family, its inputs, and what they give intact."""

    def __init__(self, case: Case):
        self.case = case
        self.model = case.build()
        sides = ("right", "left") if case.pads else (None,)
        self.inputs = {side: inputs(case, side) for side in sides}
        with torch.no_grad():
            self.stock = {side: result(self.model, given) for side, given in self.inputs.items()}
        self.anatomy = sg.admit(self.model)
        self.intact = {side: self.run(given) for side, given in self.inputs.items()}

    def run(self, given: dict, *parts, watched: bool = True) -> "Run":
        """One forward pass under a plan."""
        book, calls = Keep(), []
        with (
            torch.no_grad(),
            spied(self.model, calls),
            theatre.run(self.model, [sg.Plan(*parts)], witnesses=book if watched else lambda layer: None),
        ):
            out = result(self.model, given)
        layers = by_kind(self.case, calls)
        for layer, site in book.sites.items():
            layers[layer].site = site
        return Run(layers, out)

    def layers(self, kind: str) -> range:
        """The layers of a kind, counted in the calls."""
        return self.anatomy.kinds[kind]


@dataclass
class Run:
    layers: list[Seen]
    out: dict[str, torch.Tensor]


def result(model: torch.nn.Module, given: dict) -> dict[str, torch.Tensor]:
    """All hidden states that the model gives, by name."""
    out = model(**given, output_hidden_states=True)
    found = {}
    for name in ("hidden_states", "encoder_hidden_states", "decoder_hidden_states"):
        found.update({f"{name}.{i}": x for i, x in enumerate(out.get(name) or ())})
    for name in ("last_hidden_state", "encoder_last_hidden_state", "text_embeds", "image_embeds"):
        if out.get(name) is not None:
            found[name] = out[name]
    for name in ("text_model_output", "vision_model_output"):  # CLIP's two towers
        if name in out:
            found[name] = out[name].last_hidden_state
    return found


@contextmanager
def spied(model: torch.nn.Module, calls: list):
    """Notes each call of attention at the registry of transformers."""
    name = model.config._attn_implementation
    registered = ALL_ATTENTION_FUNCTIONS[name]

    def spy(module, query, key, value, attention_mask, scaling=None, **kwargs):
        done = registered(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
        heads = query.shape[1] // key.shape[1]
        q, k, v = (x.detach().numpy().copy() for x in (query, key, value))
        k, v = (np.repeat(x, heads, axis=1) for x in (k, v))
        bias = kwargs.get("position_bias")
        bias = np.zeros(1, np.float32) if bias is None else bias.numpy().copy()
        calls.append(Seen(module, q, k, v, scaling or q.shape[-1] ** -0.5, bias, done[0].clone()))
        return done

    AttentionInterface.register(name, spy)
    try:
        yield
    finally:
        AttentionInterface.register(name, registered)


def by_kind(case: Case, calls: list[Seen]) -> list[Seen]:
    """The calls kind by kind; kinds are told apart by their numbers of queries and keys."""
    shapes = []
    for call in calls:
        if (shape := (call.q.shape[2], call.k.shape[2])) not in shapes:
            shapes.append(shape)
    if case.kinds[0] == "text":  # CLIP looks before it reads
        shapes.reverse()
    return [c for shape in shapes for c in calls if (c.q.shape[2], c.k.shape[2]) == shape]


def permitted(case: Case, kind: str, layer: int, call: Seen, given: dict, padding: bool = True) -> np.ndarray:
    """What the model's own masks permit: (row or 1, 1, query, key)."""
    n_query, n_key = call.q.shape[2], call.k.shape[2]
    allowed = np.ones((1, 1, n_query, n_key), bool)
    if kind in case.causal:
        allowed = allowed & reference.causal(n_query)
    if layer in case.half_window:
        allowed = allowed & reference.local(n_query, case.half_window[layer])
    mask = given.get("attention_mask")
    if mask is not None and padding and kind not in ("decoder", "vision"):
        keep = mask.bool().numpy()
        if case.reads == "sound":  # the frames of which the last sample is real
            real = (keep.sum(1) - 5) // 3 + 1
            real = (real - 3) // 2 + 1
            keep = np.arange(n_key)[None] < real[:, None]
        allowed = allowed & keep[:, None, None, :]
    return allowed


# --- the operations -----------------------------------------------------------------------------------------


def made(name: str, tokens: int) -> sg.Operation:
    """An operation with parameters that act on a text of so many tokens."""
    kind = sg.REGISTRY[name]
    if name == "block_tokens":
        return kind((1, 2))
    if name == "custom_mask":
        return kind(
            ["".join("01"[(3 * i + 5 * j) % 7 < 4 or i == j] for j in range(tokens)) for i in range(tokens)]
        )
    if name == "shift_positions":
        return kind(5)
    return kind(p=0.3, seed=5) if "p" in kind.parameters() else kind()


def expected(operation: sg.Operation, case: Case, call: Seen, site, allowed, unpadded) -> dict:
    """The keywords of the reference. What was drawn at random is read off the captured layer."""
    n, name = call.k.shape[2], operation.name
    keep = {} if site is None else {k: getattr(site, k).numpy() != 0 for k in ("scores", "weights", "output")}
    masks = {
        "causal_mask": lambda: allowed & reference.causal(n),
        "local_mask": lambda: allowed & reference.local(n, operation.half_width),
        "hide_self": lambda: allowed & reference.without_self(n),
        "identity_attention": lambda: allowed & reference.self_alone(n),
        "block_tokens": lambda: allowed & reference.mask_keys(n, operation.positions),
        "custom_mask": lambda: allowed & np.array([[c == "1" for c in row] for row in operation.rows]),
        "ignore_padding_mask": lambda: unpadded,
        "key_dropout": lambda: keep["weights"],
    }
    if name in masks:
        return {"allowed": masks[name]()}
    return {
        "drop_scaling": lambda: unscaled(case, call),
        "temperature": lambda: {"temperature": operation.t},
        "linear_attention": lambda: {"features": reference.elu_plus_one},
        "uniform_attention": lambda: {"uniform": True, "temperature": np.inf},
        "score_dropout": lambda: {"score_factor": keep["scores"] / 0.7},
        "weight_dropout": lambda: {"weight_factor": keep["weights"] / 0.7},
        "output_dropout": lambda: {"output_factor": keep["output"] / 0.7},
        "ablate_head": lambda: {"output_factor": 0.0},
        "share_keys": lambda: {},
    }[name]()


def given_to(operation: sg.Operation, case: Case, call: Seen) -> Seen:
    """The call with the vectors that the equation speaks of: shared ones, or ones that no scale has touched yet."""
    if operation.name == "share_keys":
        shared = {x: reference.grouped_means(getattr(call, x), operation.groups) for x in "kv"}
        return replace(call, **shared)
    if operation.name == "linear_attention" and case.scaled and call.scaling == 1.0:
        return replace(call, q=call.q * np.float32(call.q.shape[-1] ** 0.5))
    return call


def unscaled(case: Case, call: Seen) -> dict:
    """Nothing is divided by √d_k, neither q·kᵀ nor a bias that is scaled along with it."""
    root = call.q.shape[-1] ** 0.5
    return {"scaling": call.scaling * root, "bias": call.bias * (root if case.scaled_bias else 1.0)}


def idle(case: Case, kind: str, name: str) -> bool:
    """Whether the equation itself says that nothing changes here."""
    if name == "causal_mask":
        return kind in case.causal
    if name == "ignore_padding_mask":
        return not case.pads or kind in ("decoder", "vision")
    if name == "shift_positions":
        return case.positions == "bias" or case.silent in (r".*inv_freq", None)
    return False


# --- a family under an operation ----------------------------------------------------------------------------


def verdict(patient: Patient, kind: str, name: str) -> sg.Words | None:
    """None where the operation acts as its equation says, or the reason of its refusal. AssertionError if it does neither."""
    reason = sg.refusals(patient.model)[name]
    layers = patient.layers(kind)
    tokens = next(iter(patient.intact.values())).layers[layers[0]].k.shape[2]
    operation = made(name, tokens)
    if reason is None and kind == "cross" and name in SELF_ONLY:
        reason = refused(patient, operation.at(layers=layers))
        assert reason is not None, f"{name} acts on cross-attention"
    if reason is not None:
        where = operation if operation.stage == POSITIONS else operation.at(layers=layers)
        assert refused(patient, where) is not None, "refused in words, and yet it runs"
        assert reason.en and reason.zh and reason.en != reason.zh
        return reason
    if operation.stage == POSITIONS and kind == patient.case.kinds[0]:  # they are of the whole model
        moves(patient, operation)
    elif operation.stage == POSITIONS:
        return None
    else:
        equals(patient, kind, operation)
        leaves_others_alone(patient, kind, operation)
    return None


def refused(patient: Patient, part) -> sg.Words | None:
    """The reason why this is refused, before anything runs."""
    ran = []
    hook = patient.model.register_forward_pre_hook(lambda *_: ran.append(1))
    try:
        with sg.operate(patient.model, part):
            pass
    except sg.UnsupportedError as error:
        assert not ran
        return error.words
    finally:
        hook.remove()
    return None


def equals(patient: Patient, kind: str, operation: sg.Operation) -> None:
    """Each layer of a kind is what the reference makes of that layer's own q, k, v."""
    case, layers = patient.case, patient.layers(kind)
    changed = False
    for side, given in patient.inputs.items():
        sites = None
        for watched in (True, False):
            run = patient.run(given, operation.at(layers=layers), watched=watched)
            sites = sites or {layer: run.layers[layer].site for layer in layers}
            for layer in layers:
                call = run.layers[layer]
                allowed = permitted(case, kind, layer, call, given)
                call = given_to(operation, case, call)
                unpadded = permitted(case, kind, layer, call, given, padding=False)
                words = expected(operation, case, call, sites[layer], allowed, unpadded)
                where = f"{case} {kind} {operation.name}, layer {layer}, {side}, {'captured' if watched else 'fused'}"
                compare(
                    call, {"allowed": allowed, "scaling": call.scaling, "bias": call.bias, **words}, where
                )
            if not watched and operation.name not in ("drop_scaling",):
                continue
            first = layers[0]
            changed |= not torch.allclose(
                run.layers[first].output, patient.intact[side].layers[first].output, atol=1e-4
            )
    assert changed is not idle(case, kind, operation.name), "a silent no-op" if not changed else "not idle"


def compare(call: Seen, words: dict, where: str) -> None:
    """Output, and where captured scores and weights, within twice float32's own error."""
    wide = reference.attention(call.q, call.k, call.v, **words)
    found = {"output": call.output.transpose(1, 2)}
    if call.site is not None:
        found |= {"scores": call.site.scores, "weights": call.site.weights}
        no_key = ~np.broadcast_to(words["allowed"], wide.scores.shape).any(-1)
        assert (call.site.no_key.numpy() == no_key).all(), where
    for part, x in found.items():
        right = getattr(wide, part)
        error, own = np.abs(x.numpy() - right).max(), 0.0
        bound = 4 * EPSILON * np.abs(right).max()
        attempts = in_float32(call, words)
        while not error <= bound:
            narrow = next(attempts, None)
            assert narrow is not None, (where, part, error, bound)
            own = max(own, np.abs(getattr(narrow, part) - right).max())
            bound = max(bound, 2 * own)


def in_float32(call: Seen, words: dict):
    """The reference in float32: its sums in several orders, and the scale, which float32 cannot write exactly, one unit up
    and down; its factors applied at several places."""
    q, k, v, scaling = call.q, call.k, call.v, np.float32(words["scaling"])
    nearly = (scaling, np.nextafter(scaling, np.float32(0)), np.nextafter(scaling, np.float32(9)))
    for seed in range(40):
        draw = np.random.default_rng(seed)
        width, keys = draw.permutation(q.shape[-1]), draw.permutation(k.shape[2])
        own = {**words, "scaling": nearly[seed % 3]}
        found = reference.attention(q[..., width], k[..., width], v, **own, dtype=np.float32)
        mixed = found.weights[..., keys] @ v[:, :, keys].astype(np.float32)
        found.output = mixed * np.asarray(words.get("output_factor", 1.0), np.float32)
        yield found
    share, rest = np.sqrt(scaling), {**words, "scaling": 1.0}
    yield reference.attention(q * share, k * share, v, **rest, dtype=np.float32)
    yield reference.attention(q * scaling, k, v, **rest, dtype=np.float32)
    if not words.get("uniform"):
        yield by_torch(q, k, v, words)


def by_torch(q, k, v, words: dict) -> reference.Reference:
    """The same in float32 by torch's own kernels, which round in other places than NumPy's."""
    q, k, v, bias = (torch.as_tensor(x, dtype=torch.float32) for x in (q, k, v, words["bias"]))
    factors = [
        torch.as_tensor(np.asarray(words.get(f"{part}_factor", 1.0), np.float32))
        for part in ("score", "weight", "output")
    ]
    if "features" in words:
        return reference.attention(q.numpy(), k.numpy(), v.numpy(), **words, dtype=np.float32)
    scores = (q @ k.transpose(2, 3) * float(words["scaling"]) + bias) / words.get("temperature", 1.0)
    scores = scores * factors[0]
    forbidden = ~torch.as_tensor(np.broadcast_to(words["allowed"], scores.shape).copy())
    weights = scores.masked_fill(forbidden, -torch.inf).softmax(-1).nan_to_num(0.0) * factors[1]
    return reference.Reference(scores.numpy(), weights.numpy(), (weights @ v * factors[2]).numpy())


def leaves_others_alone(patient: Patient, kind: str, operation: sg.Operation) -> None:
    """In the last layer of a kind, head 1 alone: what comes before and the other heads are bit-identical."""
    side, given = next(iter(patient.inputs.items()))
    before, layer = patient.intact[side], patient.layers(kind)[-1]
    after = patient.run(given, operation.at(layers=[layer], heads=[1]))
    for earlier in patient.layers(kind)[:-1]:
        assert torch.equal(after.layers[earlier].output, before.layers[earlier].output)
    old, new = before.layers[layer], after.layers[layer]
    others = [head for head in range(patient.anatomy.heads) if head != 1]
    assert torch.equal(old.output[:, :, others], new.output[:, :, others]), "other heads changed"
    for part in ("scores", "weights"):
        assert torch.equal(getattr(old.site, part)[:, others], getattr(new.site, part)[:, others])
    if not idle(patient.case, kind, operation.name):
        assert not torch.equal(old.output[:, :, 1], new.output[:, :, 1]) or operation.name in (
            "ignore_padding_mask",
        )


# --- positions ----------------------------------------------------------------------------------------------


def moves(patient: Patient, operation: sg.Operation) -> None:
    """The model says what an independent model says whose tokens stand where the operation puts them."""
    case, changed = patient.case, False
    for side, given in patient.inputs.items():
        for watched in (True, False):
            run = patient.run(given, operation, watched=watched)
            for row in range(len(next(iter(given.values())))):
                alone = {name: x[row : row + 1] for name, x in given.items()}
                if case.positions == "bias" and operation.name != "remove_positions":
                    continue
                hidden, real = elsewhere(patient, operation, alone)
                for name, x in hidden.items():
                    found = (
                        run.out[name][row][real]
                        if len(real) == run.out[name].shape[1]
                        else run.out[name][row]
                    )
                    wanted = x[0][real] if len(real) == x.shape[1] else x[0]
                    near = 2e-4 * max(1.0, float(wanted.abs().max()))
                    assert (found - wanted).abs().max() < near, (case, operation.name, side, row, name)
            if case.positions == "bias":
                biased(patient, operation, given, run)
        last = "last_hidden_state" if "last_hidden_state" in run.out else next(reversed(run.out))
        # The first row has no padding: what padding says of real tokens that moved away from it is of no interest.
        changed |= not torch.allclose(run.out[last][0], patient.intact[side].out[last][0], atol=1e-3)
    assert changed is not idle(case, case.kinds[0], operation.name), (
        "a silent no-op" if not changed else "not idle"
    )


def ids_of(case: Case, mask: torch.Tensor) -> torch.Tensor:
    """The positions (1, token) that the model itself gives to its tokens."""
    if case.first == "roberta":
        return mask.cumsum(1) * mask + 1
    if case.first == "real":
        return mask.cumsum(1) * mask - 1
    return torch.arange(mask.shape[1])[None]


def elsewhere(patient: Patient, operation: sg.Operation, given: dict) -> tuple[dict, torch.Tensor]:
    """What a model gives for one row whose tokens stand elsewhere, and which of its tokens are real."""
    case = patient.case
    intact = case.build()
    mask = given.get("attention_mask")
    sizes = [call.k.shape[2] for call in patient.intact[next(iter(patient.intact))].layers]
    mask = torch.ones(1, sizes[0], dtype=torch.long) if mask is None or case.reads == "sound" else mask
    real = mask[0].bool()
    if operation.name == "remove_positions":
        if case.silent is None:
            given = {**given, "position_ids": torch.zeros_like(mask)}  # at angle 0 nothing is turned
        with torch.no_grad():
            for name, x in [*intact.named_parameters(), *intact.named_buffers()]:
                if case.silent and re.fullmatch(case.silent, name):
                    x.zero_()
    elif case.positions == "told":
        ids = ids_of(case, mask)
        given = {**given, "position_ids": operation.positions(ids, mask.bool())}
    else:
        rearrange(case, intact, operation, mask)
    with torch.no_grad():
        return result(intact, given), real


def rearrange(case: Case, model: torch.nn.Module, operation: sg.Operation, mask: torch.Tensor) -> None:
    """Puts other rows where the model will look its positions up."""
    with torch.no_grad():
        for name, table in model.named_parameters():
            if not re.fullmatch(case.silent, name):
                continue
            whole = table[0] if table.dim() == 3 else table
            own = mask
            if "decoder" in name:
                own = torch.ones(1, 7, dtype=torch.long)
            elif table.dim() == 3 or case.reads == "frames" or len(whole) < mask.shape[1]:
                own = torch.ones(1, len(whole), dtype=torch.long)
            offset = 2 if case.first == "two" else 0
            ids = ids_of(case, own)
            new = operation.positions(ids, own.bool())
            old = whole.clone()
            whole[ids[own.bool()] + offset] = old[new[own.bool()] + offset]


def biased(patient: Patient, operation: sg.Operation, given: dict, run: Run) -> None:
    """The position bias of each layer is the intact one between other positions."""
    case = patient.case
    side = next(s for s, g in patient.inputs.items() if g is given)
    for kind in case.kinds:
        for layer in patient.layers(kind):
            call, before = run.layers[layer], patient.intact[side].layers[layer].bias
            mask = given["attention_mask"] if kind == "encoder" else torch.ones(2, call.k.shape[2])
            ids = torch.arange(call.k.shape[2])[None].expand(2, -1)
            new = operation.positions(ids, mask.bool())
            bias = before
            if kind != "cross" and operation.name == "remove_positions":
                bias = np.zeros_like(before)
            elif kind != "cross" and operation.name != "shift_positions":
                bias = np.stack([before[0][:, p][:, :, p] for p in new.numpy()])
            words = {
                "allowed": permitted(case, kind, layer, call, given),
                "scaling": call.scaling,
                "bias": bias,
            }
            if (
                operation.name == "shift_positions"
            ):  # padding stays where it is, and is nearer or farther then
                words["allowed"] = np.broadcast_to(words["allowed"], (2, *words["allowed"].shape[1:]))[:1]
                call = replace(
                    call, q=call.q[:1], k=call.k[:1], v=call.v[:1], output=call.output[:1], site=None
                )
            compare(call, words, f"{case} {kind} {operation.name} layer {layer}")


def identity(patient: Patient) -> None:
    """Without a plan, and with an empty one, the model is bit for bit what it was."""
    for side, given in patient.inputs.items():
        with torch.no_grad():
            admitted = result(patient.model, given)
            with sg.operate(patient.model, sg.Plan()):
                empty = result(patient.model, given)
        for name, x in patient.stock[side].items():
            assert torch.equal(admitted[name], x) and torch.equal(empty[name], x), (patient.case, side, name)
