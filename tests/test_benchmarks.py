"""The benchmarks run, at their smallest; what they call right and wrong is right and wrong."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.cost import patients
from benchmarks.cost.measure import Ratio, flops, operations, python_calls, ratio
from benchmarks.cost.sweeping import counted
from benchmarks.cost.table import Row, Table, write
from benchmarks.cost.truth import Judge

ROOT = Path(__file__).parents[1]


def said(*words: str) -> str:
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_part_of_the_costs_runs_and_is_right(tmp_path):
    document = tmp_path / "costs.md"
    smallest = ["--model", "tiny", "--tokens", "8", "--seconds", "0", "--turns", "1"]
    printed = said("benchmarks/surgery.py", *smallest, "--write", str(document))
    written = document.read_text(encoding="utf-8")
    for part in ("operations", "capture", "statistics", "sweeps", "pictures", "job"):
        assert f"surgery.py --model tiny --parts {part} --tokens 8`" in printed
        assert f"{part} 8 -->" in written
    assert "WRONG" not in printed
    assert "| control: stock / stock | 1" in printed or "| control: stock / stock | 0" in printed
    idle = next(line for line in printed.splitlines() if line.startswith("| admitted, no plan active"))
    subject, stock = idle.split("|")[4].split("/")
    assert int(subject) == int(stock) > 0  # not one operation more


def test_the_peers_are_pinned():
    listed = said("benchmarks/peers.py", "--list").splitlines()
    assert [line.split()[0] for line in listed] == ["ours", "nnsight", "pyvene", "transformer-lens"]
    assert all("torch==" in line and "transformers==" in line for line in listed[1:])


@pytest.fixture(scope="module")
def tiny():
    return patients.shaped("tiny")


def test_float64_tells_right_from_wrong(tiny):
    ids = patients.ids(7, tiny.config.vocab_size)
    judge = Judge(tiny, ids)
    softer = {"cuts": {layer: {"temperature": 2.0} for layer in range(tiny.config.num_hidden_layers)}}
    with torch.inference_mode():
        found = tiny(ids).last_hidden_state
        eager = patients.twin(tiny, "eager")(ids, output_attentions=True)
    assert judge(found).right
    assert judge(eager.last_hidden_state, eager.attentions).right
    assert not judge(found, **softer).right  # a hook that changed nothing
    assert str(judge(found, **softer)).startswith("WRONG")
    assert not judge(found, positions=False).right
    assert not judge(found, [m.flip(1) for m in eager.attentions]).right  # the heads in another order
    off = found.clone()
    off[0, 3] += 1e-4
    assert not judge(off).right


def test_twins_share_their_weights_and_have_their_own_setting(tiny):
    twin = patients.twin(tiny, "eager")
    pairs = zip(tiny.parameters(), twin.parameters(), strict=True)
    assert all(a.data_ptr() == b.data_ptr() for a, b in pairs)
    assert (tiny.config._attn_implementation, twin.config._attn_implementation) == ("sdpa", "eager")
    assert any(p.abs().sum() > 0 for name, p in tiny.named_parameters() if name.endswith("query.bias"))


def test_counts_and_ratios():
    a = torch.ones(3, 5)
    assert operations(lambda: a + a * a) == 2
    assert python_calls(lambda: (lambda: None)()) == 2

    def one():
        sum(range(50_000))

    def three():
        sum(range(150_000))

    assert 2 < ratio(one, three, 15).median < 4.5
    assert 0.6 < ratio(one, three, 15, times=3).median < 1.5
    config = patients.shaped("tiny").config
    per_token = 2 * (4 * 48 * 48 + 2 * 48 * 64) + 4 * 11 * 48
    assert flops(config, 3, 11) == 3 * 2 * 11 * per_token


def test_a_table_says_what_is_no_difference_and_what_is_missed():
    table = Table("t", [Row("control: a / a", Ratio(0.96, 0.95, 0.97, 1.0))])  # both ways: up to 1.05
    table.add(
        Row("same", Ratio(1.03, 1.0, 1.1, 1.0), aim=1.2),
        Row("dear", Ratio(1.5, 1.4, 1.6, 1.0), aim=1.2, why="So."),
    )
    table.add(Row("counted", Ratio(1.0, 1.0, 1.0, 1.0), operations=(11, 10), calls=(10, 10), aim_counts=1.02))
    lines = table.markdown().splitlines()
    found = {line.split("|")[1].strip(): line for line in lines if line.startswith("| ")}
    assert "≈" in found["same"] and "missed" not in found["same"]
    assert "≈" not in found["dear"] and "missed" in found["dear"]
    assert "Aims missed: *dear*, time by 25 %. So." in lines
    assert any("ATen operations by 7.8 %" in line for line in lines)


def test_a_section_replaces_its_like_and_leaves_the_others(tmp_path):
    path = tmp_path / "costs.md"
    for name, text in (("b", "two"), ("a", "one"), ("b", "three")):
        write(path, name, text)
    whole = path.read_text(encoding="utf-8")
    assert "two" not in whole
    assert whole.startswith("# What surgery costs")
    assert 0 < whole.index("\none\n") < whole.index("\nthree\n")


def test_the_work_of_a_sweep_is_counted(tiny):
    import surgery as sg
    from benchmarks.cost.bench import Bench

    bench = Bench("tiny")
    with torch.inference_mode(), counted(bench) as batches:
        sg.sweep(bench.patient, "the dog bit the man", sg.every_head(bench.patient))
    assert batches == [4, 7]  # the baseline and 3 heads of the first layer, then 3 more


def test_shapes_differ_from_uniform_attention(tiny):
    ids = patients.ids(7, tiny.config.vocab_size)
    maps = patients.twin(tiny, "eager")(ids, output_attentions=True).attentions
    assert np.ptp(maps[0].numpy()) > 0.01
