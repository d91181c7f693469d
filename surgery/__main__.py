"""The command line: `python -m surgery run | sweep | ops | models`. Errors are one line on stderr and exit code 2."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bilingual import LANGUAGES, SurgeryError, Words
from surgery import sweep_command

os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")


def parser() -> argparse.ArgumentParser:
    """The arguments of `python -m surgery`."""
    top = argparse.ArgumentParser(
        prog="python -m surgery", description="Surgery on a transformer's attention."
    )
    top.add_argument("--lang", choices=LANGUAGES, default="en", help="language of the answers")
    commands = top.add_subparsers(dest="command", required=True)

    run = commands.add_parser("run", help="operate on one text and compare with the baseline")
    run.add_argument(
        "--model", default="minilm", help="a name from `models`, a hub id or a folder (default: minilm)"
    )
    run.add_argument("--text", required=True, help="the text; - reads it from standard input")
    run.add_argument(
        "--op",
        action="append",
        default=[],
        metavar="NAME[=VALUE][@SELECTION]",
        help="an operation, such as drop_scaling@L0-3.H1,5 or temperature=2; repeat for more",
    )
    run.add_argument("--plan", help="a plan: a JSON file, JSON, or a link, put before the operations")
    run.add_argument("--other", help="a second text, for the similarity of the two")
    run.add_argument("--pad-to", type=int, metavar="N", help="pad the text to N tokens")
    run.add_argument("--max-tokens", type=int, metavar="N", help="read at most N tokens")
    run.add_argument("--literal", action="store_true", help="read typed [MASK], [SEP], ... as characters")
    run.add_argument(
        "--capture", choices=("all", "stats", "none"), default="all", help="what to keep of attention"
    )
    run.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, mps")
    run.add_argument("--dtype", default="auto", help="auto (float32), float16, bfloat16")
    run.add_argument("--out", metavar="FOLDER", help="write JSON, CSV, NPZ, PNG and the plan there")
    run.add_argument("--json", action="store_true", help="print everything measured as JSON")
    run.set_defaults(action=run_command)

    sweep = sweep_command.add(commands)

    ops = commands.add_parser("ops", help="list the operations")
    ops.set_defaults(action=ops_command)

    models = commands.add_parser("models", help="list the models, or what can be done to one")
    models.add_argument(
        "--support", metavar="NAME", help="which operations can act on this model, and why not"
    )
    models.set_defaults(action=models_command)
    for command in (run, sweep, ops, models):
        command.add_argument(
            "--lang", choices=LANGUAGES, default=argparse.SUPPRESS, help="language of the answers"
        )
    return top


def run_command(args: argparse.Namespace) -> None:
    """Operates on one text and prints what changed."""
    import surgery as sg
    from models import load

    plan = sg.Plan(_plan(args.plan), sg.Plan.from_words(args.op))
    text = sys.stdin.read() if args.text == "-" else args.text
    patient = load(args.model, device=args.device, dtype=args.dtype)
    comparison = sg.compare(
        patient,
        text,
        plan,
        capture=None if args.capture == "none" else args.capture,
        other=args.other,
        pad_to=args.pad_to,
        literal=args.literal,
        max_tokens=args.max_tokens,
    )
    print(
        json.dumps(comparison.to_dict(), ensure_ascii=False, indent=1)
        if args.json
        else report(comparison, args.lang)
    )
    if args.out:
        for path in comparison.save(args.out):
            print(path, file=sys.stderr if args.json else sys.stdout)


def _plan(given: str | None) -> Any:
    import surgery as sg

    if given is None:
        return sg.Plan()
    if os.path.isfile(given):  # False, not an error, for what is too long to be a path
        given = Path(given).read_text(encoding="utf-8")
    return sg.Plan.from_json(given) if given.lstrip().startswith("{") else sg.Plan.from_link(given.strip())


def report(comparison: Any, lang: str) -> str:
    """The numbers of a comparison as text: verdict, notices, receipt, answers, the heads that changed most."""
    lines = [comparison.verdict(lang), *(f"! {notice}" for notice in comparison.notices(lang))]
    if comparison.receipt:
        titles: Sequence[str] = (
            "operation",
            "at",
            "cells",
            "|Δscores|",
            "weight moved",
            "Δoutput",
            "Δresult",
            "note",
        )
        rows: list[Sequence] = [
            (
                entry["operation"],
                entry["at"],
                entry["cells"],
                *(_number(entry[key]) for key in ("scores", "weights", "output", "result")),
                entry["note"].say(lang) if entry["note"] else "",
            )
            for entry in comparison.receipt
        ]
        lines += ["", Words("Receipt", "回执").say(lang), *_columns([titles, *rows])]
    both = zip(comparison.baseline.predictions, comparison.operated.predictions, strict=True)
    for site, (before, after) in zip(comparison.output["sites"], both, strict=True):
        where = "" if site["position"] is None else f" @{site['position']}"
        lines += ["", f"{site['kind']}{where}  KL {_number(site['kl'])} nats"]
        titles = (Words("baseline", "基线").say(lang), "", Words("operated", "手术后").say(lang), "")
        pairs = [(a, f"{p:.4f}", b, f"{q:.4f}") for (a, p), (b, q) in zip(before[:5], after[:5], strict=True)]
        lines += _columns([titles, *pairs])
    if comparison.similarity:
        before, after = (comparison.similarity[k] for k in ("baseline", "operated"))
        what = Words("similarity of the two texts", "两个文本的相似度").say(lang)
        lines += ["", f"{what}: {before:.4f} -> {after:.4f}"]
    if len(comparison.plan) and not comparison.heads.empty:
        keys = ["layer", "head", "js_divergence", "moved", "entropy_baseline", "entropy_operated"]
        top = comparison.heads.sort_values("js_divergence", ascending=False, na_position="last").head(5)
        rows = [
            [int(row["layer"]), int(row["head"]), *(_number(row[key]) for key in keys[2:])]
            for row in top.to_dict("records")
        ]
        title = Words(
            "Heads that changed most (nats; share of weight)", "变化最大的注意力头（奈特；权重份额）"
        )
        lines += ["", title.say(lang), *_columns([keys, *rows])]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.4f}"


def _columns(rows: list) -> list[str]:
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return ["  " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells]


def ops_command(args: argparse.Namespace) -> None:
    """Lists the operations by stage."""
    from surgery import REGISTRY, STAGES

    for operation in sorted(REGISTRY.values(), key=lambda op: (STAGES.index(op.stage), op.name)):
        given = ", ".join(
            f"{name}={p.range()}" if p.low > -1e9 else name for name, p in operation.parameters().items()
        )
        print(f"{operation.stage:<12}{operation.name}{f' ({given})' if given else ''}")
        print(f"{'':<12}{operation.summary.say(args.lang)}   {operation.equation}")


def models_command(args: argparse.Namespace) -> None:
    """Lists the models, or what can be done to one."""
    from models import available, load

    if args.support:
        from surgery import refusals

        for name, why in refusals(load(args.support)).items():
            print(f"{name:<22}{why.say(args.lang) if why else Words('yes', '可以').say(args.lang)}")
        return
    for name, about in available().items():
        print(f"{name:<18} {about.say(args.lang)}")
    print(
        Words("Any other name is a hub id or a folder.", "其他名称视为 hub 上的模型或本地文件夹。").say(
            args.lang
        )
    )


def main(argv: list[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    args = parser().parse_args(argv)
    try:
        args.action(args)
        sys.stdout.flush()
    except SurgeryError as error:
        print(f"{Words('Error', '错误').say(args.lang)}: {error.say(args.lang)}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a folder that cannot be written, a plan file that cannot be read
        print(
            f"{Words('Error', '错误').say(args.lang)}: {error.strerror or error}: {error.filename}",
            file=sys.stderr,
        )
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
