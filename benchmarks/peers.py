"""What the same surgery costs in other libraries, and whether it is right there: nnsight, pyvene, TransformerLens.

    python benchmarks/peers.py [--peers nnsight pyvene transformer-lens ours] [--shapes bert-base minilm]
                               [--environments DIR] [--keep] [--write docs/costs.md] [--list]

Each peer gets a fresh virtual environment, with exact versions from the package index that pip knows, and is timed against the
stock model of its own process. Models are made here with random weights: nothing is downloaded from a model hub. "ours" runs in
the environment of this command. A peer that cannot be installed or run is listed with the reason.
"""

import argparse
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.cost.table import write

ROOT = Path(__file__).parents[1]
TORCH = "torch==2.13.0"
# What is installed besides torch. Other versions may name things differently: `cost/contenders.py` is written for these.
PEERS = {
    "ours": [],
    "nnsight": ["nnsight==0.8.1", "transformers==5.24.0"],
    "pyvene": ["pyvene==0.1.8", "transformers==5.24.0"],
    "transformer-lens": ["transformer-lens==4.3.0", "transformers==5.24.0"],
}
TIMEOUT = 1800  # seconds for an installation, and for a run


def install(folder: Path, requirements: list[str]) -> Path:
    """The interpreter of a new environment (or of the one that an earlier --keep left)."""
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = folder / "installed.txt"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder)
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "-q",
            "--no-input",
            "--no-compile",
        ]
        run([*pip, TORCH, *requirements])
        ready.write_text("\n".join([TORCH, *requirements]), encoding="utf-8")
    return python


def run(command: list[str]) -> None:
    """Raises RuntimeError with the last line that it said."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, cwd=ROOT)
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise RuntimeError(said[-1][:300] if said else f"exit status {done.returncode}")


def compared(peer: str, shapes: list[str], environments: Path, keep: bool) -> str:
    """The tables of one peer."""
    folder, texts = environments / peer, []
    try:
        python = Path(sys.executable) if peer == "ours" else install(folder, PEERS[peer])
        for shape in shapes:
            out = environments / f"{peer}-{shape}.md"
            run([str(python), str(ROOT / "benchmarks/cost/contenders.py"), peer, shape, str(out)])
            texts.append(out.read_text(encoding="utf-8"))
            out.unlink()
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        texts.append(f"### {peer}\n\n{' '.join(PEERS[peer])} could not be compared here: {error}\n")
    finally:
        if not keep and peer != "ours":
            shutil.rmtree(folder, ignore_errors=True)
    return "\n".join(texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument(
        "--shapes", nargs="+", choices=("bert-base", "minilm", "tiny"), default=["bert-base", "minilm"]
    )
    parser.add_argument(
        "--environments", type=Path, help="a folder for the environments; default: a temporary one"
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave the environments there for the next time (1-2 GB each)"
    )
    parser.add_argument("--write", type=Path, help="a Markdown file to write into")
    parser.add_argument("--list", action="store_true", help="only say what would be installed")
    args = parser.parse_args()
    if args.list:
        for peer in args.peers:
            print(peer, *([TORCH, *PEERS[peer]] if peer != "ours" else ["(this environment)"]))
        return
    if args.keep and args.environments is None:
        parser.error("--keep needs --environments")
    print(INTRODUCTION)
    if args.write:
        write(args.write, "peers 0", INTRODUCTION)
    with tempfile.TemporaryDirectory() as temporary:
        environments = args.environments or Path(temporary)
        environments.mkdir(parents=True, exist_ok=True)
        for peer in args.peers:
            text = compared(peer, args.shapes, environments, args.keep)
            print(text, flush=True)
            if args.write:
                write(args.write, f"peers {1 + list(PEERS).index(peer)} {peer}", text)


INTRODUCTION = f"""## Peers

`python benchmarks/peers.py`, one thread, {platform.system()} {platform.machine()}. Random weights and biases; every library in
a fresh environment of its own, against the stock model (SDPA) of its own process. Each is asked for the same: nothing; scores
divided by 2 in every head; one head off; the attention weights of every layer. TransformerLens is given a masked language model
with a vocabulary of 8 words, for its bridge takes no other BERT. *WRONG* is followed by the relative distance from float64.
"""


if __name__ == "__main__":
    main()
