"""The command line: `python -m models.training`. Errors are one line on stderr and exit code 2."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

import pandas as pd
import torch

from bilingual import LANGUAGES, SurgeryError, Words

from ..shipped import CHECKPOINTS
from ..tasks import TASKS, task
from . import grid as grids
from .loop import Surgery, Training, shorter
from .schedule import TrainingError
from .ship import NAMES, measures, save, ship


def parser() -> argparse.ArgumentParser:
    """The arguments of `python -m models.training`."""
    top = argparse.ArgumentParser(
        prog="python -m models.training",
        description="Trains the from-scratch models, intact or under surgery.",
    )
    top.add_argument(
        "--task", nargs="+", metavar="NAME", help=f"one of {', '.join(TASKS)}; several make a grid"
    )
    top.add_argument(
        "--seed", "--seeds", dest="seeds", type=int, nargs="+", help="several make a grid (default: 0)"
    )
    top.add_argument("--steps", type=int, help="instead of the task's own number")
    top.add_argument(
        "--plan",
        action="append",
        default=[],
        metavar="OPS",
        help="surgery to train under: operations such as drop_scaling or causal_mask@L0, separated by spaces, "
        "or a plan's JSON or its file; repeat for a grid",
    )
    top.add_argument(
        "--from-step", type=int, default=0, metavar="N", help="steps to train before the plan acts"
    )
    top.add_argument(
        "--compare", action="store_true", help="a grid: each plan applied after training, and trained with"
    )
    top.add_argument("--jobs", type=int, default=1, metavar="N", help="runs of a grid at once")
    top.add_argument("--resume", action="store_true", help="go on with the run that --out holds")
    top.add_argument(
        "--out", metavar="FOLDER", help="keep the run there: checkpoint on the way, model at the end"
    )
    top.add_argument("--capture-every", type=int, default=0, metavar="N", help="keep attention every N steps")
    top.add_argument("--patience", type=int, metavar="N", help="stop after N evaluations without improvement")
    top.add_argument("--device", default="cpu", help="cpu (default), auto, cuda, cuda:1, mps")
    top.add_argument(
        "--dtype", default="auto", help="auto (float32); float16, bfloat16: mixed precision on CUDA"
    )
    top.add_argument("--lang", choices=LANGUAGES, default="en", help="language of the answers")
    top.add_argument(
        "--ship", nargs="*", metavar="NAME", help=f"make the shipped checkpoints ({', '.join(NAMES)})"
    )
    return top


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    args = parser().parse_args(argv)
    torch.set_num_threads(1)  # models this small gain nothing from more
    seeds, args.seeds = args.seeds, args.seeds or [0]
    try:
        if args.ship is not None:
            ship(args.ship or NAMES, seeds or (0, 1, 2), args.out or CHECKPOINTS)
        elif not args.task:
            for name, about in TASKS.items():
                print(f"{name:<12}{about.say(args.lang)}")
        elif args.compare or len(args.task) * len(args.seeds) > 1 or len(args.plan) > 1:
            several(args)
        else:
            one(args)
    except SurgeryError as error:
        print(f"{Words('Error', '错误').say(args.lang)}: {error.say(args.lang)}", file=sys.stderr)
        return 2
    except OSError as error:  # a folder that cannot be written
        reason = f"{error.strerror or error}: {error.filename}"
        print(f"{Words('Error', '错误').say(args.lang)}: {reason}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # what --out holds can be resumed
        return 130
    return 0


def one(args: argparse.Namespace) -> None:
    """One run, with a progress bar."""
    plan = args.plan[0] if args.plan else ""
    chosen = task(args.task[0])
    run = Training(
        chosen,
        seed=args.seeds[0],
        recipe=shorter(chosen.recipe, args.steps),
        surgery=plan_of(plan),
        from_step=args.from_step,
        plan=plan,
        device=args.device,
        dtype=args.dtype,
        capture_every=args.capture_every,
        patience=args.patience,
    )
    if args.resume:
        if not args.out:
            raise TrainingError(
                "Name the folder to resume from with --out.", "请用 --out 指明要继续的训练所在的文件夹。"
            )
        run.resume(args.out)
    run.run(progress=sys.stderr.isatty(), folder=args.out)
    for entry in run.history:
        if chosen.metric in entry:
            values = {k: v for k, v in entry.items() if k not in ("step", "scored", "rate", "gradient")}
            print(f"step {entry['step']:>5}  " + "  ".join(f"{k} {v:.3f}" for k, v in values.items()))
    if blind := chosen.order_blind():
        said = Words("the best answer that ignores order", "忽略顺序的最佳回答").say(args.lang)
        print(f"{said}: " + "  ".join(f"{k} {v:.3f}" for k, v in blind.items()))
    if run.skipped:
        print(f"skipped: {run.skipped}")
    if args.out and chosen.tokenizer() is not None and measures(run):
        save(run, Path(args.out))
        print(args.out)


def several(args: argparse.Namespace) -> None:
    """A grid, its rows as they come, then mean and spread."""
    plans: dict[str, Surgery | None] = {"none": None} if args.compare or not args.plan else {}
    plans |= {plan: plan_of(plan) for plan in args.plan}
    recipes = {name: shorter(task(name).recipe, args.steps) for name in args.task}
    cells = [
        cell
        for name in args.task
        for cell in grids.cells([name], plans, args.seeds, from_step=args.from_step, recipe=recipes[name])
    ]
    also = {name: surgery for name, surgery in plans.items() if surgery} if args.compare else None
    rows = []
    for row in grids.stream(cells, args.jobs, also):
        rows.append(row)
        shown = {k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items() if v is not None}
        print("  ".join(f"{k} {v}" for k, v in shown.items()), flush=True)
    table = pd.DataFrame(rows)
    if args.out:
        Path(args.out).mkdir(parents=True, exist_ok=True)
        table.to_csv(Path(args.out) / "grid.csv", index=False)
    if table["error"].isna().any():
        print(grids.summary(table).drop(columns="seconds", errors="ignore").round(3).to_string())


def plan_of(text: str) -> Surgery | None:
    """A plan's text as what `Training` takes."""
    if not text:
        return None
    if Path(text).is_file():
        text = Path(text).read_text(encoding="utf-8")
    # models never imports surgery; a command line may bring the two together.
    plan, each_step = (
        importlib.import_module("surgery").Plan,
        importlib.import_module("surgery.steps").EachStep,
    )
    return each_step(plan.from_json(text) if text.lstrip().startswith("{") else plan.from_words(text.split()))


if __name__ == "__main__":
    sys.exit(main())
