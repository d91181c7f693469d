"""`python -m surgery sweep`: many plans on many texts, a table out."""

import argparse
import sys
from pathlib import Path
from typing import Any

from bilingual import SurgeryError, Words

EVERY = ("head", "layer", "pair")
SHOWN = 20


class SweepCommandError(SurgeryError):
    """A sweep that the command line does not understand."""


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Adds `sweep` to the commands."""
    sweep = commands.add_parser("sweep", help="run many plans on many texts; one row per text and plan")
    sweep.add_argument("--model", default="minilm", help="a name from `models`, a hub id or a folder")
    sweep.add_argument(
        "--text", action="append", default=[], help="a text, or 'text => right answer'; repeat for more"
    )
    sweep.add_argument(
        "--texts",
        metavar="FILE",
        help="one text a line, with its right answer as 'text => answer' or after a tab (- is standard input)",
    )
    sweep.add_argument("--every", choices=EVERY, help="a plan for each head, layer or pair of heads")
    sweep.add_argument(
        "--with",
        dest="operation",
        metavar="NAME[=VALUE]",
        help="what --every does there (default: ablate_head)",
    )
    sweep.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="NAME=V1;V2;...[@SELECTION]",
        help="a plan for each value, such as 'temperature=0.5;1;2@L0-3'",
    )
    sweep.add_argument(
        "--op",
        action="append",
        default=[],
        metavar="NAME[=VALUE][@SELECTION]",
        help="a plan of this one operation",
    )
    sweep.add_argument("--seeds", type=int, default=1, help="seeds of each random plan (default: 1)")
    sweep.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    sweep.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, mps")
    sweep.add_argument("--dtype", default="auto", help="auto (float32), float16, bfloat16")
    sweep.add_argument(
        "--out", metavar="FOLDER", help="Parquet files, written as results come; the same command goes on"
    )
    sweep.add_argument("--csv", metavar="FILE", help="write every row there (- is standard output)")
    sweep.add_argument(
        "--keep-going", action="store_true", help="a text that fails becomes a row with its error"
    )
    sweep.set_defaults(action=sweep_command)
    return sweep


def sweep_command(args: argparse.Namespace) -> None:
    """Sweeps, and prints the plans that change most, or every row as CSV."""
    import surgery as sg
    from models import load

    texts, truth = _texts(args)
    patient = load(args.model, device=args.device, dtype=args.dtype)
    plans = _plans(args, patient)
    table = sg.sweep(
        patient,
        texts,
        plans,
        truth=truth,
        seeds=args.seeds,
        n_jobs=args.jobs,
        out=args.out,
        on_error="row" if args.keep_going else "raise",
        progress=_progress if sys.stderr.isatty() else None,
    )
    if args.csv:
        table.to_csv(sys.stdout if args.csv == "-" else args.csv, index=False)
    if args.csv != "-":
        print(summary(table, [plan.describe(args.lang) for plan in plans], args.lang))


def _progress(done: int, of: int) -> None:
    print(f"\r{done} / {of}", end="\n" if done == of else "", file=sys.stderr, flush=True)


def _texts(args: argparse.Namespace) -> tuple[list[str], list[list[str]] | None]:
    from surgery.answers import judged

    lines = list(args.text)
    if args.texts:
        given = sys.stdin.read() if args.texts == "-" else Path(args.texts).read_text(encoding="utf-8")
        lines += [line for line in given.splitlines() if line.strip()]
    if not lines:
        raise SweepCommandError(
            "Give texts: --text TEXT, or --texts FILE with one a line.",
            "请给出文本：--text 文本，或 --texts 文件（每行一个）。",
        )
    return judged(lines)


def _plans(args: argparse.Namespace, patient: Any) -> list:
    import surgery as sg

    plans = [sg.Plan.from_words([words]) for words in args.op]
    for words in args.grid:
        what, at, where = words.partition("@")
        name, _, values = what.partition("=")
        plans += [sg.Plan.from_words([f"{name}={value}{at}{where}"]) for value in values.split(";")]
    if args.every:
        lists = {"head": sg.every_head, "layer": sg.every_layer, "pair": sg.every_pair}
        plans += lists[args.every](patient, _everywhere(args.operation))
    elif args.operation:
        raise SweepCommandError(
            "--with says what --every does: add --every head, layer or pair, or write --op.",
            "--with 说明 --every 做什么：请加上 --every head、layer 或 pair，或改用 --op。",
        )
    if not plans:
        raise SweepCommandError(
            "Give plans: --every head, --grid 'temperature=0.5;1;2', or --op NAME.",
            "请给出计划：--every head、--grid 'temperature=0.5;1;2' 或 --op 名称。",
        )
    return plans


def _everywhere(words: str | None) -> Any:
    """What --with says, which --every puts in its places."""
    import surgery as sg

    if words is None:
        return None
    if "@" in words:
        raise SweepCommandError(
            f"--with {words[:60]}: --every says where, so leave out the selection.",
            f"--with {words[:60]}：位置由 --every 决定，请去掉选择。",
        )
    return sg.Plan.from_words([words]).steps[0].operation


def summary(table: Any, labels: list[str], lang: str) -> str:
    """The plans that change the model's end most: means over the texts, with their standard deviation; and what failed."""
    failed = table[table["error"].notna()] if "error" in table else table[:0]
    table = table.drop(failed.index)
    if table.empty:
        return _failures(failed, lang)
    measure = next(
        (name for name in ("loss", "kl") if name in table and table[name].notna().any()), "relative_l2"
    )
    effect = table["loss"] - table["loss_baseline"] if measure == "loss" else table[measure]
    by = effect.groupby(table["plan"])
    means, deviations = by.mean().sort_values(ascending=False).head(SHOWN), by.std(ddof=0)
    title = {
        "loss": Words("rise of the loss (nats)", "损失的升高（奈特）"),
        "kl": Words("KL divergence of the answers (nats)", "答案的 KL 散度（奈特）"),
        "relative_l2": Words("relative change of the last hidden states", "最后隐藏状态的相对变化"),
    }[measure].say(lang)
    texts = table["text"].nunique()
    lines = [
        f"{title}, {texts} {Words('text(s): mean, standard deviation', '个文本：均值，标准差').say(lang)}"
    ]
    width = max(len(label) for label in labels)
    for plan, mean in means.items():
        deviation = "-" if texts == 1 else f"{deviations[plan]:.4f}"
        lines.append(f"  {labels[plan]:<{width}}  {mean:.4f}  {deviation}")
    if len(by) > SHOWN:
        lines.append(Words(f"  ... {len(by) - SHOWN} more", f"  …… 另有 {len(by) - SHOWN} 个").say(lang))
    return "\n".join([*lines, _failures(failed, lang)] if len(failed) else lines)


def _failures(failed: Any, lang: str) -> str:
    """How many texts could not be swept, and why the first one could not."""
    first = failed.iloc[0]
    count, number, why = failed["text"].nunique(), int(first["text"]), first["error"]
    return Words(
        f"{count} text(s) could not be swept; text {number}: {why}",
        f"{count} 个文本无法处理；文本 {number}：{why}",
    ).say(lang)
