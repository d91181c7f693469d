"""What happens to a from-scratch model when a step of attention is cut out of it: after training, or from the first
step on. Prints the tables of docs/from-scratch.md; every number there is from a run of this command.

    python benchmarks/ablations.py [--parts encoder characters fetch first] [--seeds 0 1 2] [--jobs 1]
                                   [--rows rows.csv] [--write docs/from-scratch.md]

Rows that the file of --rows already has are not run again, so the command can be interrupted.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import pandas as pd
import torch

import surgery as sg
from models.tasks import task
from models.training import Cell, Training, shorter, stream
from surgery.steps import EachStep

PLANS = {
    "positions removed": sg.RemovePositions(),
    "1/√d_k dropped": sg.DropScaling(),
    "T = 4": sg.Temperature(4.0),
    "causal mask": sg.CausalMask(),
    "padding mask ignored": sg.IgnorePaddingMask(),
    "score dropout 0.1": sg.ScoreDropout(0.1, 0),
    "key dropout 0.1": sg.KeyDropout(0.1, 0),
    "weight dropout 0.1": sg.WeightDropout(0.1, 0),
    "output dropout 0.1": sg.OutputDropout(0.1, 0),
}
AFTER_ONLY = {
    "positions shuffled": sg.ShufflePositions(0),
    "positions shifted by 4": sg.ShiftPositions(4),
    "T = 1/4": sg.Temperature(0.25),  # with heads of 16, the same as dropping 1/√d_k
    "T = 1/2": sg.Temperature(0.5),
    "T = 2": sg.Temperature(2.0),
    "T = 8": sg.Temperature(8.0),
    "uniform attention": sg.UniformAttention(),
    "hide self": sg.HideSelf(),
    "local mask, half-width 4": sg.LocalMask(4),
}
MASKS = {
    "local mask, half-width 2": sg.LocalMask(2),
    "local mask, half-width 8": sg.LocalMask(8),
    "identity (only self)": sg.IdentityAttention(),
}
WRITING = {
    "positions removed": sg.RemovePositions(),
    "1/√d_k dropped": sg.DropScaling(),
    "T = 4": sg.Temperature(4.0),
    "uniform attention": sg.UniformAttention(),
    "local mask, half-width 8": sg.LocalMask(8),
}
STEPS = {"encoder": 800, "characters": 1000, "fetch": 1500, "first": 1200}
HEADS = (1, 2, 4, 8, 16, 64)
LENGTHS = (16, 32, 64)


def encoder(seeds: list[int], jobs: int) -> Iterator[dict[str, Any]]:
    """Each plan after training and from the first step on."""
    recipe = shorter(task("encoder").recipe, STEPS["encoder"])
    cells = [
        Cell("encoder", seed, plan, operation and EachStep(operation), recipe=recipe)
        for plan, operation in {"none": None, **PLANS}.items()
        for seed in seeds
    ]
    after = {plan: EachStep(operation) for plan, operation in {**PLANS, **AFTER_ONLY}.items()}
    yield from stream(cells, jobs, after)


def padded(seeds: list[int], jobs: int) -> Iterator[dict[str, Any]]:
    """The padding mask ignored by a model that was trained with it, with more and more padding; and more masks."""
    chosen = task("encoder")
    for seed in seeds:
        run = Training(chosen, seed, shorter(chosen.recipe, STEPS["encoder"]), evaluate_every=0).run()
        for pads in (24, 64):
            for plan, operation in (("none", sg.Plan()), ("padding mask ignored", sg.IgnorePaddingMask())):
                with torch.no_grad(), sg.operate(run.model, operation):
                    said = chosen.judge(*chosen.right(run.model, pads))
                row = {"task": "encoder", "plan": plan, "seed": seed, "applied": f"after, padded to {pads}"}
                yield {**row, **said, "error": None}
        for plan, operation in MASKS.items():
            with torch.no_grad(), sg.operate(run.model, operation):
                said = chosen.evaluate(run.model)
            row = {"task": "encoder", "plan": plan, "seed": seed, "applied": "after"}
            yield {**row, **said, "error": None}


def characters(seeds: list[int], jobs: int) -> Iterator[dict[str, Any]]:
    """The writer, intact and operated on; and trained without its causal mask."""
    recipe = shorter(task("characters").recipe, STEPS["characters"])
    after = {plan: EachStep(operation) for plan, operation in WRITING.items()}
    yield from stream([Cell("characters", seed, recipe=recipe) for seed in seeds], jobs, after)
    blind = shorter(recipe, 400)
    cheats = [
        Cell("characters", seed, "no causal mask", recipe=blind, choices={"causal": False}) for seed in seeds
    ]
    yield from stream(cheats, jobs)


def fetch(seeds: list[int], jobs: int) -> Iterator[dict[str, Any]]:
    """Eight neighbours, one layer, the same number of parameters: how many heads are needed?"""
    cells = [
        Cell("fetch", s, f"{heads} heads", choices={"num_heads": heads}) for heads in HEADS for s in seeds
    ]
    yield from stream(cells, jobs)


def first(seeds: list[int], jobs: int) -> Iterator[dict[str, Any]]:
    """Trained on 3-16 words, asked on more: what positions are good for."""
    chosen = task("first")
    kinds = {kind: {"positions": kind} for kind in ("none", "learned", "sinusoidal", "rotary")}
    kinds["none, causal mask"] = {"positions": "none", "causal": True}
    for kind, choices in kinds.items():
        for seed in seeds:
            run = Training(chosen, seed, choices=choices, evaluate_every=0).run()
            with torch.no_grad():
                said = chosen.evaluate(run.model, LENGTHS)
            yield {"task": "first", "plan": kind, "seed": seed, "applied": "with", **said, "error": None}


PARTS: dict[str, Callable] = {
    "encoder": encoder,
    "padded": padded,
    "characters": characters,
    "fetch": fetch,
    "first": first,
}

# --- tables ------------------------------------------------------------------------------------------------


def spread(values: pd.Series, scale: float = 100) -> str:
    """Mean ± sd, in per cent."""
    numbers = [scale * v for v in values.dropna()]
    if not numbers:
        return ""
    if len(numbers) == 1:
        return f"{numbers[0]:.0f}"
    return f"{statistics.mean(numbers):.0f} ± {statistics.stdev(numbers):.0f}"


def grid(rows: pd.DataFrame, columns: list[str], what: str = "surgery") -> list[str]:
    """One line for each plan."""
    lines = [f"| {what} | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for plan, group in rows.groupby("plan", sort=False):
        lines.append(f"| {plan} | " + " | ".join(spread(group[c]) for c in columns) + " |")
    return lines


def both_ways(rows: pd.DataFrame) -> list[str]:
    """plan × {applied after training, trained with it}, of the mean over the five measures and of the pairs."""
    lines = ["| surgery | after: mean | after: pairs | with: mean | with: pairs |", "|---|---|---|---|---|"]
    plans = [plan for plan in ("none", *PLANS, *AFTER_ONLY, *MASKS) if plan in set(rows["plan"])]
    for plan in plans:
        cells = []
        for applied in ("after", "with"):
            group = rows[(rows["plan"] == plan) & (rows["applied"] == applied)]
            cells += [spread(group["mean"]), spread(group["pairs"])]
        lines.append(f"| {plan} | " + " | ".join(cells) + " |")
    return lines


def document(rows: pd.DataFrame, command: str) -> str:
    """docs/from-scratch.md."""
    rows = rows[rows["error"].isna()]
    seeds = sorted({int(seed) for seed in rows["seed"]})
    kinds = ["role", "review", "agree", "reflex", "tags"]
    of = {part: rows[rows["task"] == part] for part in ("encoder", "characters", "fetch", "first")}
    encoder_rows = of["encoder"][of["encoder"]["applied"].isin(["after", "with"])]
    pads = of["encoder"][~of["encoder"]["applied"].isin(["after", "with"])]
    blind = task("encoder").order_blind()
    text = [
        "# From scratch: with and without each step of attention",
        "",
        f"Made by `{command}`: seeds {', '.join(map(str, seeds))}, mean ± standard deviation over seeds, in per cent, one CPU "
        "core. The models, tasks and recipes are in `models/`; the shipped weights and their accuracies in the cards of "
        "`models/checkpoints/`.",
        "",
        "## The encoder: cut after training, or trained with the cut",
        "",
        f"Five measures in one small model ({STEPS['encoder']} steps), on pairs of content words that training never shows. "
        "*mean* is over the five; *pairs* is the share of mirrored pairs (same words, other order, other answer) of which "
        "both are right: a model blind to order has 0. The best order-blind answer has a mean of "
        f"{100 * blind['mean']:.0f} here ({', '.join(f'{k} {100 * blind[k]:.0f}' for k in kinds)}).",
        "",
        *both_ways(encoder_rows),
        "",
        "Measure by measure, applied after training:",
        "",
        *grid(encoder_rows[encoder_rows["applied"] == "after"], kinds),
        "",
        "Measure by measure, trained with it:",
        "",
        *grid(encoder_rows[encoder_rows["applied"] == "with"], kinds),
        "",
        "How to read it:",
        "",
        "- Positions removed: below chance after training, because the model then names words that are no answer at all; trained "
        "without them it reaches at most what order-blindness allows.",
        "- With heads of 16 channels, dropping 1/√d_k is T = 1/4: sharper heads mostly stay right, flat ones (T = 4, 8) do not. "
        "Trained with T = 4 the model loses nothing; trained without 1/√d_k it is behind after this number of steps.",
        "- A causal mask laid over a trained model costs what the model happens to look ahead for, and that differs by seed. Trained "
        "with it, only the tags suffer: they are read at the words themselves, before what decides about them.",
        "- Forgetting the padding mask harms the model that was trained with it, not one that never had it.",
        "- A query that may attend to nothing gets zeros here. With a mask of −∞ written by hand it gets NaN, and NaN spreads from "
        "padding to every row: an accuracy of 0 under a narrow local mask is more often that than the mask.",
        "",
    ]
    if len(pads):
        pads = pads.assign(plan=pads["plan"] + ", " + pads["applied"].str.removeprefix("after, "))
        text += ["## The forgotten padding mask", "", *grid(pads, ["mean", "pairs"]), ""]
    if len(of["characters"]):
        marked = of["characters"].assign(
            plan=of["characters"]["plan"].where(
                of["characters"]["applied"] == "after", "trained: " + of["characters"]["plan"]
            )
        )
        from models.tasks.characters import entropy

        text += [
            "## The character model",
            "",
            "*obeys* is the share of 100 written lines that are in the language (per cent). *nats* (in hundredths per letter) is "
            f"the loss on unseen text; the language's entropy is {100 * entropy():.1f}. The intact model was trained for "
            f"{STEPS['characters']} steps, the one without a causal mask for 400: it reads the answer off its input, so its "
            "loss is next to nothing, and it cannot write.",
            "",
            *grid(marked, ["obeys", "nats"]),
            "",
        ]
    if len(of["fetch"]):
        text += [
            "## Many heads",
            "",
            "One layer brings eight neighbours to every place; the same number of parameters for every number of heads.",
            "",
            *grid(of["fetch"].assign(plan=of["fetch"]["plan"].str.split().str[0]), ["accuracy"], "heads"),
            "",
        ]
    if len(of["first"]):
        columns = {"accuracy": "at 16"}
        text += [
            "## Positions and length",
            "",
            "Which of two marked words came first; trained on 3-16 words, asked at 16, 32 and 64. A causal mask alone carries "
            "order, and to any length; sinusoidal waves reach no further than what was trained.",
            "",
            *grid(of["first"].rename(columns=columns), ["at 16", "at 32", "at 64"], "positions"),
            "",
        ]
    text += [
        "## Do it yourself",
        "",
        "```",
        "python -m models.training                                      # the tasks",
        "python -m models.training --task encoder --out run             # one run; --resume goes on with it",
        'python -m models.training --task encoder --plan "drop_scaling temperature=2@L0" --from-step 400',
        "python -m models.training --task role review --seed 0 1 2 --plan causal_mask --compare --jobs 4",
        "python -m models.training --ship                               # the shipped checkpoints and their cards",
        "```",
        "",
        "In Python, any plan goes into a loop of yours with `surgery.operate(model, plan)`, or into ours:",
        "",
        "```python",
        "import surgery as sg",
        "from models.tasks import task",
        "from models.training import Training",
        "from surgery.steps import EachStep",
        "",
        'run = Training(task("role"), seed=0, surgery=EachStep(sg.CausalMask()), capture_every=50)',
        "for step in run:  # stop whenever you like",
        '    print(step["step"], step["loss"])',
        "run.captures  # attention weights, entropy and diagonal over time",
        "```",
        "",
    ]
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rows", type=Path, help="a CSV file to keep the rows in, and to go on from")
    parser.add_argument("--write", type=Path, help="a Markdown file to write")
    args = parser.parse_args()
    torch.set_num_threads(1)
    known = pd.read_csv(args.rows) if args.rows and args.rows.exists() else pd.DataFrame()
    rows, started = known.to_dict("records"), time.time()
    done = {(row["part"], int(row["seed"])) for row in rows if row.get("complete")}
    for part in args.parts:
        for seed in args.seeds:
            if (part, seed) in done:
                continue
            rows = [row for row in rows if (row["part"], int(row["seed"])) != (part, seed)]
            for row in PARTS[part]([seed], args.jobs):
                rows.append({"part": part, "complete": False, **row})
                shown = {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}
                print(f"{time.time() - started:6.0f} s  {shown}", flush=True)
            for row in rows:
                row["complete"] = row["complete"] or (row["part"], int(row["seed"])) == (part, seed)
            if args.rows:
                pd.DataFrame(rows).to_csv(args.rows, index=False)
    chosen = pd.DataFrame(rows)
    text = document(chosen, "python benchmarks/ablations.py")
    print(text)
    if args.write:
        args.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
