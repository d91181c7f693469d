"""`python -m surgery`: right output or one clear line and exit code 2, never a traceback."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas
import pytest

import surgery as sg
from surgery.__main__ import main

ROOT = Path(__file__).parents[2]
PLAN = sg.Plan(sg.DropScaling().at("L0-3.H1,5"), sg.Temperature(2.0))


def shell(*words: str, **options) -> subprocess.CompletedProcess:
    """In a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "surgery", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, **options)


@pytest.fixture
def run(capsys):
    def act(*words: str):
        code = main(["run", "--device", "cpu", *words])
        return code, *capsys.readouterr()

    return act


@pytest.mark.parametrize(
    "text",
    ["今天天气很好", "word " * 3000, "costs $5 and $$ or $\\frac$", "🧬🧬", "<b>bold</b>", "שלום \x00\t"],
)
def test_any_text_gives_a_verdict(run, text):
    code, out, err = run("--text", text, "--op", "drop_scaling@L0-3.H1,5")
    assert (code, err) == (0, "")
    assert out.startswith("Drop the 1/√d_k scaling on L0-3.H1,5: ")
    assert "nan" not in out.lower()


def test_a_long_text_says_what_was_kept(run):
    _, out, _ = run("--text", "word " * 3000, "--max-tokens", "16")
    assert "kept 16 of 3002 tokens" in out


@pytest.mark.parametrize(
    "words, said",
    [
        (["--text", ""], "The text is empty"),
        (["--text", "hi", "--op", "temperature=0"], "from 0.0001 to 10000"),
        (["--text", "hi", "--op", "temprature=2"], "Did you mean temperature"),
        (["--text", "hi", "--op", "temperature@L9"], "layers are 0-5"),
        (["--text", "hi", "--op", "temperature@x"], "cannot be read"),
        (["--text", "hi", "--plan", "no/such/plan.json"], "not a plan"),
        (["--text", "hi", "--pad-to", "9999"], "9999"),
        (["--text", "hi", "--max-tokens", "1"], "max_tokens"),
        (["--text", "hi", "--dtype", "int8"], "int8"),
        (["--text", "hi", "--model", "/no/such/folder"], "/no/such/folder"),
        (["--text", "hi", "--out", "/dev/null/x"], "/dev/null"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_two(run, words, said):
    code, _, err = run(*words)
    assert code == 2
    assert said in err and err.startswith("Error: ") and err.count("\n") == 1


def test_in_chinese(run):
    code, out, _ = run("--lang", "zh", "--text", "你好", "--op", "causal_mask")
    assert code == 0 and "因果掩码" in out and "回执" in out
    code, _, err = run("--lang", "zh", "--text", " ")
    assert code == 2 and err.startswith("错误: 文本为空")


def test_json_is_what_compare_gives(run, minilm):
    _, out, _ = run(
        "--json", "--text", "The dog bit the man", *[w for op in PLAN.to_words() for w in ("--op", op)]
    )
    wanted = sg.compare(minilm, "The dog bit the man", PLAN).to_dict()
    found = json.loads(out)
    assert found["plan"] == wanted["plan"] and found["tokens"] == wanted["tokens"]
    assert found["output"]["relative_l2"] == pytest.approx(wanted["output"]["relative_l2"], abs=1e-5)


@pytest.mark.parametrize("spelling", ["json", "link", "file"])
def test_a_plan_may_be_json_a_link_or_a_file(run, tmp_path, spelling):
    file = tmp_path / "plan.json"
    file.write_text(PLAN.to_json())
    long = sg.Plan(*[PLAN] * 8)
    given = {"json": long.to_json(), "link": long.to_link(), "file": str(file)}[spelling]
    code, out, err = run("--json", "--text", "hi there", "--plan", given, "--capture", "none")
    assert (code, err) == (0, "")
    assert json.loads(out)["plan"] == (PLAN if spelling == "file" else long).to_dict()


def test_files_are_written_and_named(run, tmp_path):
    code, out, _ = run("--text", "hi there", "--op", "causal_mask", "--out", str(tmp_path / "new"))
    assert code == 0
    names = {path.name for path in (tmp_path / "new").iterdir()}
    assert {"comparison.json", "plan.json", "heads.csv", "layers.csv", "weights.npz", "heads.png"} <= names
    assert all(name in out for name in names)


def test_lists_of_operations_and_models(capsys):
    assert main(["ops"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in sg.REGISTRY)
    assert main(["models", "--lang", "zh"]) == 0
    assert "minilm" in capsys.readouterr().out
    assert main(["models", "--support", "minilm"]) == 0
    assert capsys.readouterr().out.count("yes") == len(sg.REGISTRY)


def test_operations_are_listed_without_importing_torch():
    code = "import sys; from surgery.__main__ import main; main(['ops']); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_standard_input_and_a_reader_that_stops_early():
    done = shell("run", "--text", "-", "--op", "hide_self", input="hello there")
    assert done.returncode == 0 and "Hide the token itself" in done.stdout and done.stderr == ""
    piped = subprocess.run(
        f"{sys.executable} -m surgery ops | head -n 1",
        shell=True, cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert piped.stderr == ""


# --- sweep ----------------------------------------------------------------------------------------------------


@pytest.fixture
def sweep(capsys):
    def act(*words: str):
        code = main(["sweep", "--device", "cpu", *words])
        return code, *capsys.readouterr()

    return act


def test_a_sweep_prints_the_plans_that_change_most_first(sweep, minilm):
    code, out, err = sweep("--text", "The dog bit the man", "--every", "head")
    assert (code, err) == (0, "")
    first, *rows = out.splitlines()
    assert "relative change" in first and len(rows) == 21 and "52 more" in rows[-1]
    table = sg.head_importance(minilm, "The dog bit the man", measure="relative_l2")
    top = table.sort_values("effect", ascending=False).iloc[0]
    assert rows[0].split()[-3:] == [f"L{int(top.layer)}.H{int(top['head'])}", f"{top.effect:.4f}", "-"]
    zh = sweep(
        "--text", "The dog bit the man", "--every", "layer", "--with", "uniform_attention", "--lang", "zh"
    )[1]
    assert "注意力" in zh.splitlines()[1]


def test_a_sweep_writes_every_row_and_judges_by_the_right_answers(sweep, tmp_path):
    texts = tmp_path / "texts.tsv"
    texts.write_text(
        "today the dogs near the cat [MASK] tired\tare\nthe queen near the king watched [MASK]\therself\n",
        encoding="utf-8",
    )
    options = [
        "--model",
        "encoder",
        "--texts",
        str(texts),
        "--grid",
        "temperature=0.5;8@L0",
        "--op",
        "weight_dropout",
    ]
    code, out, err = sweep(*options, "--seeds", "2", "--out", str(tmp_path / "kept"), "--csv", "-")
    assert (code, err) == (0, "")
    table = pandas.read_csv(io.StringIO(out))
    assert table[["text", "plan", "seeds"]].to_numpy().tolist() == [
        [text, plan, 2 if plan == 0 else 1] for text in (0, 1) for plan in (0, 1, 2)
    ]
    assert table["loss"].notna().all() and (table["accuracy_baseline"] == 1).all()
    assert len(pandas.read_parquet(tmp_path / "kept")) == 6


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--text", "a"], "--every"),
        (["--every", "head"], "--text"),
        (["--text", "a", "--grid", "temperature=x"], "0.0001"),
        (["--text", "a", "--op", "temperature=3@L9"], "0-5"),
        (["--text", "a", "--op", "hide_self", "--texts", "/no/such/file"], "/no/such/file"),
        (["--text", "a", "--op", "hide_self", "--seeds", "0"], "seeds"),
        (["--text", "a", "--op", "hide_self", "--jobs", "0"], "n_jobs"),
        (["--text", "a", "--op", "hide_self", "--with", "temperature=2"], "--every"),
        (["--text", "a", "--every", "head", "--with", "temperature=2@L0"], "selection"),
    ],
)
def test_a_sweep_that_cannot_be_is_one_line(sweep, words, said):
    code, out, err = sweep(*words)
    assert (code, out) == (2, "") and said in err and err.count("\n") == 1


def test_a_sweep_says_which_texts_failed(sweep):
    some = sweep("--text", "the dog", "--text", " ", "--op", "hide_self", "--keep-going")
    assert some[0] == 0 and "1 text(s)" in some[1] and "text 1: TextError: The text is empty" in some[1]
    none = sweep("--text", " ", "--op", "hide_self", "--keep-going", "--lang", "zh")
    assert none[0] == 0 and none[1].startswith("1 个文本无法处理")


def test_the_spread_that_a_sweep_prints_is_the_one_that_its_table_has(sweep, minilm):
    texts = ["The dog bit the man", "a cat slept"]
    out = sweep("--text", texts[0], "--text", texts[1], "--every", "head")[1]
    table = sg.head_importance(minilm, texts, measure="relative_l2")
    top = table.sort_values("effect", ascending=False).iloc[0]
    assert out.splitlines()[1].split()[-2:] == [f"{top.effect:.4f}", f"{top.sd:.4f}"]
