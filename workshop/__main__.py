"""`python -m workshop`: the exercises from the shell."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bilingual import LANGUAGES, SurgeryError, Words

if TYPE_CHECKING:
    from surgery.plan import Plan


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(
        prog="python -m workshop",
        description="Exercises: predict, cut, measure; checked on the running model.",
    )
    top.add_argument("--lang", choices=LANGUAGES, default="en", help="language of the texts")
    commands = top.add_subparsers(dest="command", required=True)

    listing = commands.add_parser("list", help="the exercises, in teaching order")
    listing.set_defaults(action=list_command)

    show = commands.add_parser("show", help="one exercise: question, prediction, task; never the solution")
    show.add_argument("which", metavar="N", help="a number from `list`, or a name")
    show.set_defaults(action=show_command)

    check = commands.add_parser("check", help="run a plan on the model and judge what it showed")
    check.add_argument("which", metavar="N", help="a number from `list`, or a name")
    check.add_argument(
        "--plan",
        required=True,
        metavar="FILE",
        help="a plan: a JSON file (what Plan.to_json writes); - reads it",
    )
    check.add_argument("--predict", metavar="KEY", help="the answer that you commit to (see `show`)")
    check.add_argument("--number", type=float, metavar="X", help="the number that you commit to")
    check.add_argument("--seed", type=int, default=0, help="which examples are drawn")
    check.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, mps")
    check.add_argument("--json", action="store_true", help="print what was measured as JSON")
    check.set_defaults(action=check_command)

    measure = commands.add_parser(
        "measure", help="make the numbers of the texts again (a quarter of an hour on one core)"
    )
    measure.add_argument("--only", nargs="+", metavar="NAME", help="some of its parts")
    measure.add_argument("--parts", action="store_true", help="list the parts")
    measure.set_defaults(action=measure_command)

    claims = commands.add_parser("claims", help="what tutorials say of attention, checked now")
    claims.add_argument("--only", nargs="+", metavar="NAME", help="some of them")
    claims.add_argument("--write", metavar="FILE", help="write the page in English, and beside it FILE.zh.md")
    claims.set_defaults(action=claims_command)

    notebooks = commands.add_parser("notebooks", help="write the scripts of workshop/notebooks again")
    notebooks.add_argument("--out", metavar="FOLDER", help="another folder")
    notebooks.set_defaults(action=notebooks_command)

    guide = commands.add_parser("guide", help="print the teacher's guide, or write both languages")
    guide.add_argument("--write", metavar="FOLDER", help="write teaching.md and teaching.zh.md there")
    guide.set_defaults(action=guide_command)
    for command in (listing, show, check, measure, claims, notebooks, guide):
        command.add_argument(
            "--lang", choices=LANGUAGES, default=argparse.SUPPRESS, help="language of the texts"
        )
    return top


def list_command(args: argparse.Namespace) -> int:
    """One line for each exercise."""
    from workshop import EXERCISES

    for number, one in enumerate(EXERCISES, 1):
        about = f"{one.title.say(args.lang)} ({one.minutes} min, {one.model(args.lang)})"
        print(f"{number:>2}  {one.name:<18}{about}")
    return 0


def show_command(args: argparse.Namespace) -> int:
    """All that a learner needs before the first cut."""
    from workshop import exercise
    from workshop.grading import sheet

    print(sheet(exercise(args.which), args.lang))
    return 0


def check_command(args: argparse.Namespace) -> int:
    """Judges a plan: 0 passed, 1 not yet (with a hint)."""
    from models import load
    from workshop import check, exercise
    from workshop.grading import told

    one, plan = exercise(args.which), _plan(args.plan)
    if args.predict is not None:
        one.prediction.choice(args.predict)
    report = check(one, plan, load(one.model(args.lang), device=args.device), args.lang, args.seed)
    if args.json:
        print(json.dumps(report.to_dict(), ensure_ascii=False, allow_nan=False, indent=1))
    else:
        print(told(report, args.lang, args.predict, args.number))
    return 0 if report.passed else 1


def _plan(given: str) -> "Plan":
    from surgery import Plan

    text = sys.stdin.read() if given == "-" else Path(given).read_text(encoding="utf-8")
    return Plan.from_json(text)


def measure_command(args: argparse.Namespace) -> int:
    """Runs the measurements behind the texts and keeps them in measured.json."""
    from workshop import measuring

    if args.parts:
        for name, part in measuring.PARTS.items():
            print(f"{name:<12}{(part.__doc__ or '').splitlines()[0]}")
        return 0
    measuring.run(args.only)
    return 0


def claims_command(args: argparse.Namespace) -> int:
    """Checks the claims; prints or writes the table."""
    from workshop import claims

    found = claims.run(args.only, progress=lambda line: print(line, file=sys.stderr, flush=True))
    if args.write is None:
        print(claims.page(found, args.lang))
        return 0
    page = Path(args.write)
    for lang, path in (("en", page), ("zh", page.with_suffix(".zh.md"))):
        path.write_text(claims.page(found, lang), encoding="utf-8")
        print(path)
    return 0


def notebooks_command(args: argparse.Namespace) -> int:
    """Writes one script for each exercise and language."""
    from workshop import notebooks

    for path in notebooks.write(Path(args.out) if args.out else notebooks.FOLDER):
        print(path)
    return 0


def guide_command(args: argparse.Namespace) -> int:
    """The teacher's guide."""
    from workshop import guide

    if args.write is None:
        print(guide.page(args.lang))
        return 0
    for path in guide.write(Path(args.write)):
        print(path)
    return 0


def main(argv: list[str] | None = None) -> int:
    """Runs a command; returns the exit code: 0, 1 for a plan that does not pass, 2 for what cannot be done."""
    args = parser().parse_args(argv)
    label = Words("Error", "错误").say(args.lang)
    try:
        code = args.action(args)
        sys.stdout.flush()
        return code
    except SurgeryError as error:
        print(f"{label}: {error.say(args.lang)}", file=sys.stderr)
    except UnicodeDecodeError:
        wrong = Words("The plan is not UTF-8 text.", "计划不是 UTF-8 文本。").say(args.lang)
        print(f"{label}: {wrong}", file=sys.stderr)
    except BrokenPipeError:  # whoever read our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        wrong = Words("cannot be read or written", "无法读取或写入").say(args.lang)
        print(f"{label}: {error.filename} {wrong}: {error.strerror or error}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
