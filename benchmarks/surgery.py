"""What surgery costs, as ratios to stock transformers within one run, beside an A/A control; exact counts; float64 as judge.

    python benchmarks/surgery.py [--model minilm|bert-base|tiny] [--parts operations capture ...] [--write docs/costs.md]
                                 [--device cpu|cuda] [--dtype float32|bfloat16|float16]

Runs on CUDA too, with times between events; that way is untested. How a time is taken is in `cost/measure.py`, what is right
in `cost/truth.py`. With --write the results replace this model's section of the document, the other sections stay.
"""

import argparse
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
import transformers

from benchmarks.cost import forward, pictures, spreading, sweeping
from benchmarks.cost.bench import Bench
from benchmarks.cost.patients import SHAPES
from benchmarks.cost.table import Table, write

PARTS: dict[str, Callable[..., Iterator[Table]]] = {
    "operations": lambda bench, args: forward.operating(bench, args.tokens or forward.LENGTHS),
    "capture": lambda bench, args: forward.capturing(bench, args.tokens or forward.LENGTHS),
    "statistics": lambda bench, args: forward.statistics(bench, args.tokens or forward.LENGTHS),
    "sweeps": lambda bench, args: sweeping.sweeping(bench, args.tokens or sweeping.LENGTHS),
    "pictures": lambda bench, args: pictures.drawing(bench),
    "processes": lambda bench, args: spreading.processes(bench, args.texts),
    "job": lambda bench, args: spreading.job(bench),
}


def machine(device: str, dtype: torch.dtype) -> str:
    """What it ran on."""
    where = (
        torch.cuda.get_device_name()
        if device == "cuda"
        else f"CPU ({torch.backends.cpu.get_cpu_capability()})"
    )
    return (
        f"{platform.system()} {platform.machine()}, {where}, {str(dtype).removeprefix('torch.')}, {torch.get_num_threads()} thread; "
        f"Python {platform.python_version()}, torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--model", choices=("minilm", *[s for s in SHAPES if s != "minilm"]), default="minilm"
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=None)
    parser.add_argument("--tokens", nargs="+", type=int, help="lengths of the texts")
    parser.add_argument("--texts", type=int, default=200, help="how many, for the processes")
    parser.add_argument("--seconds", type=float, default=1.0, help="for the turns of a row, about")
    parser.add_argument("--turns", type=int, default=5, help="at least")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="float32")
    parser.add_argument("--write", type=Path, help="a Markdown file to write into")
    args = parser.parse_args()
    # workers load models by name, and random weights have none
    parts = args.parts or [part for part in PARTS if part != "processes" or args.model == "minilm"]
    if args.model != "minilm" and "processes" in parts:
        parser.error("processes needs a model that the workers can load by its name: --model minilm")
    torch.set_num_threads(1)
    dtype = getattr(torch, args.dtype)
    bench = Bench(args.model, args.device, dtype, args.seconds, args.turns)
    with torch.inference_mode():
        for part in parts:
            text = [
                f"## {title(args)}: {part}",
                "",
                f"`{command(args, part)}`; {machine(args.device, dtype)}",
                "",
            ]
            print("\n".join(text), flush=True)
            for table in PARTS[part](bench, args):
                text.append(table.markdown())
                print(text[-1], flush=True)
                if args.write:  # table by table, so that an interrupted run leaves what it has
                    place = list(PARTS).index(part)
                    lengths = "".join(f" {tokens}" for tokens in args.tokens or ())
                    name = f"surgery {args.model} {args.device} {args.dtype} {place} {part}{lengths}"
                    write(args.write, name, "\n".join(text))


def title(args: argparse.Namespace) -> str:
    weights = "real weights" if args.model == "minilm" else "random weights and biases"
    return f"{args.model} ({weights}) on {args.device}"


def command(args: argparse.Namespace, part: str) -> str:
    """How to get the same section again."""
    said = f"python benchmarks/surgery.py --model {args.model}"
    said += f" --parts {part}"
    said += f" --tokens {' '.join(map(str, args.tokens))}" if args.tokens else ""
    said += f" --device {args.device} --dtype {args.dtype}" if args.device != "cpu" else ""
    return said + (f" --texts {args.texts}" if part == "processes" else "")


if __name__ == "__main__":
    main()
