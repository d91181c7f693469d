"""What surgery costs: `python benchmarks/surgery.py`. Ratios to a named reference in the same run, on MiniLM, one thread.

Each time is the median of adjacent pairs (reference, subject), so that a slow moment of the machine hits both; the first
line is an A/A control, the reference against itself: differences inside its band mean nothing. Counts of ATen operations and
of Python calls, and bytes, are exact.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(Path(__file__).parents[1]))

import surgery as sg
from models import load
from surgery.capture import Keep, Stream
from surgery.theatre import run

PAIRS = 15
SENTENCE = "The animal did not cross the street because it was too tired, and the driver stopped for it near the old bridge. "


class Count(TorchDispatchMode):
    """Counts ATen operations."""

    def __init__(self):
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.operations += 1
        return operation(*args, **(kwargs or {}))


def operations(act: Callable[[], object]) -> int:
    with Count() as count:
        act()
    return count.operations


def python_calls(act: Callable[[], object]) -> int:
    calls = 0

    def count(_, event, __):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls


def ratio(reference: Callable[[], object], subject: Callable[[], object], pairs: int = PAIRS) -> float:
    """The median of subject's time over reference's, pair by pair."""
    for warm in (reference, subject):
        warm()
    found = []
    for _ in range(pairs):
        spent = []
        for act in (reference, subject):
            start = time.process_time()
            act()
            spent.append(time.process_time() - start)
        found.append(spent[1] / spent[0])
    return statistics.median(found)


def peak(act: Callable[[], object]) -> float:
    """MiB that the allocator held at most above where it began, by torch's own count of what each operation allocates."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        act()
    held = most = 0
    for event in sorted(recorded.profiler.kineto_results.events(), key=lambda e: e.start_ns()):
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most / 2**20


def main() -> None:
    torch.set_num_threads(1)
    patient, stock, eager = load("minilm"), load("minilm").model, load("minilm").model
    eager.set_attn_implementation("eager")
    sg.admit(patient.model)
    with torch.inference_mode():
        for tokens in (32, 128, 512):
            rows(patient, stock, eager, tokens)
        sweeps(patient, stock)


def rows(patient, stock, eager, tokens: int) -> None:
    text = patient.tokenizer(SENTENCE * 30, return_tensors="pt", truncation=True, max_length=tokens)
    pairs = PAIRS if tokens < 512 else 5
    model = patient.model

    def plain():
        return stock(**text)

    def under(plan, **options):
        def act():
            with run(model, [plan], **options):
                return model(**text)

        return act

    def maps():
        return eager(**text, output_attentions=True)

    real, none = text["attention_mask"].bool(), torch.zeros_like(text["attention_mask"]).bool()
    two = {name: value.repeat(2, 1) for name, value in text.items()}

    def streamed():
        halves = [torch.tensor([0]), torch.tensor([1])]
        with run(model, [sg.Plan(), sg.Plan(sg.Temperature(2.0))], rows=halves, witnesses=Stream(real, none)):
            return model(**two)

    print(f"{tokens} tokens                                       time   ATen operations   Python calls")
    show("A/A control: stock / stock", ratio(plain, plain, pairs))
    idle = under(sg.Plan())
    show("no operation / stock", ratio(plain, idle, pairs), plain, idle)
    for plan in (
        sg.Plan(sg.DropScaling()),
        sg.Plan(sg.Temperature(2.0).at("L0-3.H1,5")),
        sg.Plan(sg.CausalMask()),
        sg.Plan(sg.LocalMask(4).at("H2")),
        sg.Plan(sg.RemovePositions()),
        sg.Plan(sg.WeightDropout(0.1)),
    ):
        act = under(plan)
        show(f"{plan.to_words()[0]} / stock", ratio(plain, act, pairs), plain, act)
    show(
        "capture of every layer / eager with output_attentions",
        ratio(maps, under(sg.Plan(), witnesses=Keep()), pairs),
    )
    show(
        "capture of one layer / stock", ratio(plain, under(sg.Plan(), witnesses=Keep(frozenset([3]))), pairs)
    )
    show("compare, all weights / one stock forward", ratio(plain, lambda: whole(patient, text), pairs))
    show("statistics of two runs / two stock forwards", ratio(lambda: (plain(), plain()), streamed, pairs))
    if tokens == 512:
        print(
            f"  memory above the start, MiB: stock {peak(plain):.1f}, eager with maps {peak(maps):.1f}, ",
            end="",
        )
        print(f"capture of every layer {peak(under(sg.Plan(), witnesses=Keep())):.1f}, ", end="")
        print(f"two stock rows {peak(lambda: stock(**two)):.1f}, statistics of two runs {peak(streamed):.1f}")


def whole(patient, text) -> None:
    """Both runs with every layer captured, without the tables that `compare` makes of them."""
    for plan in (sg.Plan(), sg.Plan(sg.Temperature(2.0))):
        with run(patient.model, [plan], witnesses=Keep()):
            patient.model(**text)


def sweeps(patient, stock) -> None:
    text = patient.tokenizer(SENTENCE * 30, truncation=True, max_length=32)["input_ids"]
    words = patient.tokenizer.decode(text, skip_special_tokens=True)
    batch = patient.tokenizer(words, return_tensors="pt")
    tokens = batch["input_ids"].shape[1]

    def naive(count):
        return lambda: [stock(**batch) for _ in range(count)]

    heads, warm = sg.every_head(patient), sg.grid(sg.Temperature, t=[0.25 * n for n in range(1, 17)])
    last = sg.grid(sg.Temperature, at="L4-5", t=[0.25 * n for n in range(1, 17)])
    print(f"sweeps, {tokens} tokens, against one stock forward for each plan and one for the baseline")
    show("every head off (72)", ratio(naive(73), lambda: sg.sweep(patient, words, heads), 5))
    show("16 temperatures", ratio(naive(17), lambda: sg.sweep(patient, words, warm), 7))
    show("16 temperatures, last two layers", ratio(naive(17), lambda: sg.sweep(patient, words, last), 7))


def show(what: str, time_ratio: float, reference=None, subject=None) -> None:
    line = f"  {what:<54}{time_ratio:5.2f}"
    if reference is not None:
        line += f"{operations(subject):>9} / {operations(reference)}"
        line += f"{python_calls(subject):>9} / {python_calls(reference)}"
    print(line)


if __name__ == "__main__":
    main()
