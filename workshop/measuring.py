"""`python -m workshop measure`: the numbers in the texts that are not measured while the learner waits.

Small models are trained again with three seeds each; every entry of `measured.json` is a mean with its standard deviation
over them, or one number where nothing varies.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch

import surgery as sg
from models import load
from models.loaded import LoadedModel
from models.tasks import task
from models.tasks.first import First
from models.tasks.grammar import ASKED
from models.tasks.sentences import Sentences, Table
from models.training import Training
from models.training.loop import shorter
from surgery.steps import EachStep
from workshop import bench
from workshop.known import FILE, known
from workshop.parts import WorkshopError

SEEDS = (0, 1, 2)
STEPS = 800  # of the encoders that are cut after training
SHORT = 600  # of those that learn under a surgery: enough for them to be done
FETCH_STEPS, SCALE_STEPS = 800, 400


class Entry(NamedTuple):
    """One number: its values, one for each seed, and the digits after the point that are printed."""

    name: str
    values: Sequence[float]
    digits: int = 0

    def plain(self, part: str) -> dict[str, Any]:
        """What `measured.json` keeps."""
        sd = statistics.stdev(self.values) if len(self.values) > 1 else None
        mean = statistics.fmean(self.values)
        sd = None if sd is None else round(sd, 6)
        return {"value": round(mean, 6), "sd": sd, "n": len(self.values), "digits": self.digits, "part": part}


def trained(
    name: str | Any, seed: int, steps: int, plan: Any = None, schedule: str | None = None, **choices: Any
) -> Training:
    """A finished run of a task (or of its name) from the first step on under `plan`."""
    chosen = task(name) if isinstance(name, str) else name
    recipe = replace(shorter(chosen.recipe, steps), schedule=schedule or chosen.recipe.schedule)
    surgery = None if plan is None else EachStep(plan)
    return Training(chosen, seed, recipe, surgery, choices=choices, evaluate_every=0).run()


def judged(run: Training, plan: Any = None, pad_to: int = 0) -> dict[str, float]:
    """The task's measures in per cent, under a plan, padded to so many tokens."""
    with torch.no_grad(), sg.operate(run.model, plan or sg.Plan()):
        asked: Any = run.task
        found = asked.judge(*asked.right(run.model, pad_to))
    return {name: 100 * value for name, value in found.items()}


# --- parts --------------------------------------------------------------------------------------------------


def encoder() -> Iterator[Entry]:
    """Three encoders, trained as they are: hot, cold, causal, padded; heads, their entropy and their looks."""
    plans = {
        "hot": (sg.Temperature(4.0), 0),
        "cold": (sg.Temperature(0.25), 0),
        "causal": (sg.CausalMask(), 0),
        "padding": (sg.IgnorePaddingMask(), 64),
    }
    found: dict[str, list[dict[str, float]]] = {name: [] for name in plans}
    heads = []
    for seed in SEEDS:
        run = trained("encoder", seed, STEPS)
        for name, (operation, pad_to) in plans.items():
            found[name].append(judged(run, operation, pad_to))
        heads.append(_heads(run))
    yield Entry("hot_mean", [f["mean"] for f in found["hot"]])
    yield Entry("cold_mean", [f["mean"] for f in found["cold"]])
    yield Entry("padding_64", [f["mean"] for f in found["padding"]])
    for kind in ASKED:
        yield Entry(f"causal_{kind}", [f[kind] for f in found["causal"]])
    for name, digits in (("entropy_cost", 2), ("lookers", 1), ("needless", 1)):
        yield Entry(name, [h[name] for h in heads], digits)


def _heads(run: Training) -> dict[str, float]:
    """Of one encoder: the rank correlation of entropy and cost, how many heads look at the answer, how many for nothing."""
    import pandas as pd

    from workshop.exercises import heads_off, not_explanation

    patient = patient_of(run)
    cost, entropy = heads_off.alone(patient, "en", 0)
    ranks = pd.DataFrame({"entropy": entropy, "cost": cost}).corr("spearman")
    facts = not_explanation.measured(patient, sg.Plan(), "en", 0)[2]
    correlation = float(ranks.loc["entropy", "cost"])
    return {"entropy_cost": correlation, "lookers": facts["lookers"], "needless": facts["needless"]}


def patient_of(run: Training) -> LoadedModel:
    """A trained run as what `models.load` gives."""
    tokenizer: Any = run.task.tokenizer()
    size = run.model.config.max_positions
    return LoadedModel(
        run.model.eval(), tokenizer, torch.device("cpu"), torch.float32, run.task.name, "masked_lm", size
    )


def retrained() -> Iterator[Entry]:
    """The encoder trained under the surgery from the first step on: T = 4, causal mask, no padding mask."""
    hot = [100 * trained("encoder", s, SHORT, sg.Temperature(4.0)).evaluate()["mean"] for s in SEEDS]
    yield Entry("hot_trained", hot)
    causal = [100 * trained("encoder", s, SHORT, sg.CausalMask()).evaluate()["mean"] for s in SEEDS]
    yield Entry("causal_trained", causal)
    unpadded = sg.IgnorePaddingMask()
    runs = [trained("encoder", s, SHORT, unpadded) for s in SEEDS]
    yield Entry("padding_trained", [judged(run, unpadded, 64)["mean"] for run in runs])


def scale() -> Iterator[Entry]:
    """With and without 1/√d_k from the first step on: one head of 64, and four of 16, at a constant rate."""
    yield Entry("scale_steps", [SCALE_STEPS])
    for name, heads in (("scale", 1), ("small", 4)):
        for way, plan in (("with", None), ("without", sg.DropScaling())):
            runs = [trained("encoder", s, SCALE_STEPS, plan, "constant", num_heads=heads) for s in SEEDS]
            yield Entry(f"{name}_{way}", [100 * run.evaluate()["mean"] for run in runs])


def first() -> Iterator[Entry]:
    """Which of two words came first, trained on 3-16 words: longer texts, and texts that stand 20 places later."""
    kinds: dict[str, dict[str, Any]] = {
        kind: {"positions": kind} for kind in ("none", "learned", "sinusoidal", "rotary")
    }
    kinds["causal"] = {"positions": "none", "causal": True}
    for kind, choices in kinds.items():
        runs = [trained("first", s, First.recipe.steps, **choices) for s in SEEDS]
        with torch.no_grad():
            found = [First().evaluate(run.model, (16, 32, 64)) for run in runs]
            slid = [_slid(run) for run in runs]
        yield Entry(f"first_{kind}_16", [100 * f["accuracy"] for f in found])
        yield Entry(f"first_{kind}_32", [100 * f["at 32"] for f in found])
        yield Entry(f"first_{kind}_64", [100 * f["at 64"] for f in found])
        yield Entry(f"first_{kind}_slid", slid)


def _slid(run: Training, words: int = 12, by: int = 20) -> float:
    """The accuracy on texts of 12 words that stand 20 places later."""
    batch = First().batch(500, torch.Generator().manual_seed(99), (words, words))
    places = torch.arange(by, by + batch.inputs["input_ids"].shape[1])[None]
    said = run.model(**batch.inputs, position_ids=places).logits.argmax(-1)
    asked = batch.targets >= 0
    return 100 * (said == batch.targets)[asked].float().mean().item()


def fetch() -> Iterator[Entry]:
    """One layer brings eight neighbours to every place, with the same parameters for any number of heads."""
    for heads in (1, 4, 8):
        runs = [trained("fetch", s, FETCH_STEPS, num_heads=heads) for s in SEEDS]
        yield Entry(f"fetch_{heads}", [100 * run.evaluate()["accuracy"] for run in runs])


class FewSentences(Sentences):
    """The encoder's task with little to learn from."""

    few = 420  # pairs; with their mirrors about 650 sentences

    @property
    def training(self) -> Table:
        from models.tasks.grammar import questions
        from models.tasks.sentences import MIX

        mix = [kind for kind in MIX if kind in self.asked]
        self.__dict__.setdefault("_few", Table(questions(self.lang, self.few, 1000, False, mix), self.ids))
        return self.__dict__["_few"]


def dropout() -> Iterator[Entry]:
    """Little data, with and without dropout on the weights during training (never in evaluation)."""
    few = FewSentences("encoder")
    yield Entry("dropout_sentences", [len(few.training.questions)])
    for name, plan in (("none", None), ("weight", sg.WeightDropout(0.1, 0))):
        runs = [trained(few, seed, SHORT, plan) for seed in SEEDS]
        yield Entry(f"dropout_{name}", [judged(run)["mean"] for run in runs])


def diagonal() -> Iterator[Entry]:
    """Random layers of width 64 over 16 random tokens, scores ×100: how often a row's largest weight is on itself."""
    shares: dict[str, list[float]] = {"apart": [], "same": []}
    tokens = 16
    for seed in SEEDS:
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(400, tokens, 64, generator=generator)
        w_q, w_k = (torch.randn(400, 64, 64, generator=generator) / 8 for _ in range(2))
        for name, keys in (("apart", w_k), ("same", w_q)):
            top = (x @ w_q @ (x @ keys).transpose(1, 2)).argmax(-1)
            shares[name].append(100 * (top == torch.arange(tokens)).float().mean().item())
    yield Entry("diagonal_apart", shares["apart"], 1)
    yield Entry("diagonal_same", shares["same"], 1)
    yield Entry("diagonal_chance", [100 / tokens], 1)


def collapse() -> Iterator[Entry]:
    """How alike two tokens of a text are at the end of MiniLM, as it is and with uniform attention."""
    from workshop.exercises.collapse_flat import alike

    patient = load("minilm", device="cpu")
    texts = (
        "The dog bit the man because it was afraid",
        "A cold rain fell on the old town",
        "She gave her brother the book that he wanted",
        "Banks lend money to people who do not need it",
    )
    for name, plan in (
        ("collapse_minilm", sg.Plan()),
        ("collapse_minilm_uniform", sg.Plan(sg.UniformAttention())),
    ):
        yield Entry(name, [alike(*bench.states(patient, [text], plan)) for text in texts], 2)


PARTS: dict[str, Callable[[], Iterator[Entry]]] = {
    "encoder": encoder,
    "first": first,
    "fetch": fetch,
    "dropout": dropout,
    "scale": scale,
    "retrained": retrained,
    "diagonal": diagonal,
    "collapse": collapse,
}
CHEAP = ("diagonal", "collapse")
"""Parts that a test runs again."""


def run(only: Sequence[str] | None = None) -> None:
    """Runs the parts (all by default) and keeps their numbers; the numbers of other parts stay."""
    unknown = [name for name in only or () if name not in PARTS]
    if unknown:
        raise WorkshopError(
            f"There is no part {unknown[0]!r}: choose from {', '.join(PARTS)}.",
            f"没有 {unknown[0]!r} 这一部分：可选 {'、'.join(PARTS)}。",
        )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for part in only or PARTS:
            started = time.process_time()
            entries = {entry.name: entry.plain(part) for entry in PARTS[part]()}
            _keep(part, entries)
            print(f"{part}: {time.process_time() - started:.0f} CPU seconds", flush=True)
            for name in entries:
                print(f"  {name:<24}{known()[name]}", flush=True)
    finally:
        torch.set_num_threads(threads)


def _keep(part: str, entries: dict[str, dict[str, Any]]) -> None:
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    rest = {name: entry for name, entry in before.items() if entry["part"] != part}
    order = {name: i for i, name in enumerate(PARTS)}
    merged = dict(sorted({**rest, **entries}.items(), key=lambda item: (order[item[1]["part"]], item[0])))
    FILE.write_text(json.dumps(merged, indent=1) + "\n", encoding="utf-8")
    known.cache_clear()
