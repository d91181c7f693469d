"""Training repeats, resumes, stops, counts what it skips, and touches nothing that is not its own."""

import contextlib
import json
import math
from dataclasses import replace

import joblib
import pandas as pd
import pytest
import torch

import surgery as sg
from bilingual import SurgeryError
from models import EncoderConfig, EncoderForMaskedLM, EncoderForSequenceClassification
from models.tasks import IGNORED, Batch, Probe, Recipe, Task, task
from models.training import (
    Cell,
    Training,
    TrainingError,
    cells,
    check_targets,
    rate_at,
    run_cell,
    scored_loss,
    shorter,
    stream,
    summary,
    table,
)
from models.training.__main__ import main, plan_of
from models.training.loop import CHECKPOINT
from surgery.steps import EachStep


class Sixteen(Task):
    """C40's sanity check: 16 rows of 6 ids in two classes, decided by the id at place 2."""

    name = "sixteen"
    recipe = Recipe(
        steps=200, batch=16, rate=1e-3, warmup=1, schedule="constant", betas=(0.9, 0.999), weight_decay=0.0
    )

    def __init__(self, rows=16, label=None):
        generator = torch.Generator().manual_seed(4)
        self.ids = torch.randint(3, 13, (16, 6), generator=generator)[:rows]
        self.labels = (self.ids[:, 2] % 2) if label is None else torch.full((rows,), label)

    def model(self, **choices):
        sizes = {"d_model": 32, "num_heads": 4, "num_layers": 2, "d_ff": 64, "initializer_range": 0.02}
        return EncoderForSequenceClassification(EncoderConfig(vocab_size=13, **{**sizes, **choices}))

    def batch(self, size, generator):
        return Batch({"input_ids": self.ids[:size]}, self.labels[:size])

    def evaluate(self, model):
        right = model(self.ids).logits.argmax(-1) == self.labels
        return {"accuracy": right.float().mean().item()}

    def probe(self):
        return Probe({"input_ids": self.ids[:1]}, tuple("abcdef"))


def short(name, steps=6, **more):
    chosen = task(name)
    return Training(chosen, recipe=replace(shorter(chosen.recipe, steps), batch=8), evaluate_every=0, **more)


def losses(run):
    return [entry["loss"] for entry in run.history]


def weights(run):
    return torch.cat([p.detach().flatten() for p in run.model.parameters()])


# --- C37: nothing is scored ---------------------------------------------------------------------------------


def test_a_loss_over_nothing_is_nothing():
    logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]], requires_grad=True)
    loss, scored = scored_loss(logits, torch.tensor([IGNORED, IGNORED]))
    assert (loss.item(), scored) == (0.0, 0)
    loss.backward()
    assert not logits.grad.any()
    loss, scored = scored_loss(logits, torch.tensor([0, IGNORED]))
    assert loss.item() == pytest.approx(0.239545, abs=1e-6) and scored == 1
    loss, _ = scored_loss(torch.zeros(0, 4), torch.zeros(0, dtype=torch.long))
    assert loss.item() == 0
    loss, _ = scored_loss(torch.zeros(5, 4), torch.tensor([0, 1, 2, 3, 0]))
    assert loss.item() == pytest.approx(math.log(4))


def test_steps_with_nothing_to_learn_are_counted_and_change_nothing():
    class Silent(Sixteen):
        def batch(self, size, generator):
            return Batch({"input_ids": self.ids}, torch.full_like(self.labels, IGNORED))

    run = Training(Silent(), recipe=replace(Sixteen.recipe, steps=3))
    before = weights(run)
    run.run()
    assert run.skipped == 3 and losses(run) == [0.0] * 3
    assert torch.equal(weights(run), before)
    json.loads(json.dumps(run.history, allow_nan=False))


@pytest.mark.parametrize("label", [2, 3, -1])
def test_a_label_that_is_no_class_is_named_before_training(label):
    with pytest.raises(
        TrainingError, match=f"Label {label} does not exist: there are 2 classes, 0-1"
    ) as error:
        Training(Sixteen(label=label))
    assert isinstance(error.value, SurgeryError) and str(label) in error.value.say("zh")
    check_targets(torch.tensor([0, 1, IGNORED]), 2)
    with pytest.raises(TrainingError, match=r"Label 3 .* 3 classes"):
        check_targets(torch.tensor([0, 3]), 3)


# --- C40: rates and the sanity check ------------------------------------------------------------------------


def test_noams_rates_begin_with_step_one():
    recipe = Recipe(schedule="noam", warmup=10)
    found = [rate_at(step, recipe, d_model=64) for step in (1, 5, 10, 20)]
    assert found == pytest.approx([0.003953, 0.019764, 0.039528, 0.027951], abs=1e-6)
    assert max(range(1, 50), key=lambda step: rate_at(step, recipe, 64)) == 10
    with pytest.raises(TrainingError, match="Step 0 does not exist"):
        rate_at(0, recipe)


def test_the_other_schedules():
    cosine = Recipe(steps=100, rate=2.0, warmup=10)
    assert [rate_at(s, cosine) for s in (1, 5, 10, 55, 100)] == pytest.approx([0.2, 1.0, 2.0, 1.0, 0.04])
    constant = replace(cosine, schedule="constant")
    assert [rate_at(s, constant) for s in (1, 10, 99)] == pytest.approx([0.2, 2.0, 2.0])
    assert rate_at(1, replace(cosine, warmup=0)) > 0
    with pytest.raises(TrainingError, match="'linear' is not known: choose one of cosine, constant, noam"):
        rate_at(11, replace(cosine, schedule="linear"))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sixteen_rows_are_learnt_by_heart(seed):
    run = Training(Sixteen(), seed=seed).run()
    assert 0.6 < losses(run)[0] < 0.85  # near ln 2
    assert losses(run)[-1] < 0.01
    assert run.history[-1]["accuracy"] == 1.0
    if seed == 0:
        assert losses(run) == losses(Training(Sixteen(), seed=seed).run())


@pytest.mark.parametrize("rows", [1, 3])
def test_tiny_data(rows):
    run = Training(Sixteen(rows), recipe=replace(Sixteen.recipe, steps=2, batch=64)).run()
    assert len(run.history) == 2 and all(math.isfinite(loss) for loss in losses(run))
    assert Training(Sixteen(rows), recipe=replace(Sixteen.recipe, steps=0)).run().history == []


# --- the same again -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["role", "characters", "translator"])
def test_a_run_repeats_by_seed_and_leaves_the_process_alone(name):
    state = torch.get_rng_state()
    one, again, other = (short(name, 3, seed=seed).run() for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert losses(one) == losses(again) != losses(other)
    assert torch.equal(weights(one), weights(again))


def test_dropout_repeats_too_and_gives_the_random_numbers_back():
    state = torch.get_rng_state()
    one, again = (short("first", 4, choices={"dropout": 0.3}).run() for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    assert losses(one) == losses(again) != losses(short("first", 4).run())


@pytest.mark.parametrize(
    "surgery", [None, EachStep(sg.WeightDropout(0.3, 5))], ids=["intact", "under surgery"]
)
def test_a_resumed_run_is_the_run_that_was_not_interrupted(surgery, tmp_path):
    more = {"surgery": surgery, "plan": "dropout" if surgery else "", "capture_every": 2}
    whole = short("first", 6, **more).run()
    short("first", 6, **more).run(folder=tmp_path, stop=_after(3))
    resumed = short("first", 6, **more).resume(tmp_path)
    assert resumed.step == 3
    resumed.run(folder=tmp_path)
    assert resumed.history == whole.history
    assert torch.equal(weights(resumed), weights(whole))
    assert [c.step for c in resumed.captures] == [2, 4, 6]
    assert torch.equal(resumed.captures[0].weights, whole.captures[0].weights)


def _after(steps):
    asked = iter(range(1000))
    return lambda: next(asked) >= steps


def test_a_checkpoint_is_whole_or_the_old_one(tmp_path, monkeypatch):
    run = short("first", 4)
    run.advance()
    path = run.save(tmp_path)
    before = path.read_bytes()
    run.advance()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("no power")))
    with pytest.raises(OSError, match="no power"):
        run.save(tmp_path)
    assert path.read_bytes() == before
    assert short("first", 4).resume(tmp_path).step == 1


def test_another_run_is_not_resumed(tmp_path):
    with pytest.raises(TrainingError, match="nothing to resume"):
        short("first", 4).resume(tmp_path)
    short("first", 4).run(folder=tmp_path)
    assert (tmp_path / CHECKPOINT).is_file()
    for other, says in (
        (short("first", 4, seed=1), "seed = 0, not 1"),
        (short("first", 5), "recipe"),
        (short("first", 4, plan="x"), "plan = '', not 'x'"),
        (short("role", 4), "task = 'first'"),
    ):
        with pytest.raises(TrainingError, match=says):
            other.resume(tmp_path)


# --- stopping -----------------------------------------------------------------------------------------------


def test_a_stop_is_heard_within_one_step():
    run = short("first", 50)
    run.run(stop=lambda: run.step >= 3)
    assert run.step == 3 == len(run.history)
    steps = []
    for entry in run:  # or by whoever iterates
        steps.append(entry["step"])
        if len(steps) == 2:
            break
    assert steps == [4, 5]


def test_patience():
    class Stuck(Sixteen):
        def evaluate(self, model):
            return {"accuracy": 0.5}

    run = Training(Stuck(), recipe=replace(Sixteen.recipe, steps=50), evaluate_every=2, patience=3).run()
    assert run.step == 8  # the first evaluation is an improvement, and three more are not


def test_one_run_does_not_touch_another_model():
    one, other = short("first", 3), short("first", 3, seed=0)
    before = weights(other)
    one.run()
    assert torch.equal(weights(other), before)


def test_mixed_precision_needs_cuda():
    with pytest.raises(
        TrainingError, match=r"Mixed precision .* needs a CUDA device, and this run is on cpu"
    ):
        short("first", dtype="bfloat16")
    with pytest.raises(SurgeryError, match="not on this machine"):
        short("first", device="cuda:7")


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("surgery", [None, EachStep(sg.Temperature(2.0), sg.WeightDropout(0.1, 1))])
def test_mixed_precision_learns_and_resumes(dtype, surgery, tmp_path):
    more = {"device": "cuda", "dtype": dtype, "surgery": surgery}
    run = Training(Sixteen(), evaluate_every=0, **more).run(folder=tmp_path)
    assert run.history[-1]["loss"] < 0.1 < run.history[0]["loss"]
    assert next(run.model.parameters()).dtype == torch.float32
    resumed = Training(Sixteen(), evaluate_every=0, **more).resume(tmp_path)
    assert torch.equal(weights(resumed), weights(run))


# --- under surgery ------------------------------------------------------------------------------------------


def test_a_plan_acts_from_its_step_on():
    plan = EachStep(sg.CausalMask())
    intact, whole, late = (
        short("role", 4, surgery=surgery, from_step=step).run()
        for surgery, step in ((None, 0), (plan, 0), (plan, 2))
    )
    assert losses(late)[:2] == losses(intact)[:2] != losses(whole)[:2]
    assert losses(late)[2:] != losses(intact)[2:]


def test_captures_are_of_the_operated_model():
    run = short("first", 4, surgery=EachStep(sg.UniformAttention().at("L0.H1")), capture_every=2, from_step=2)
    run.run()
    before, after = run.captures
    n = before.weights.shape[-1]
    assert before.weights.shape == (2, 2, n, n)
    torch.testing.assert_close(after.weights[0, 1], torch.full((n, n), 1 / n))
    assert after.entropy[0, 1].item() == pytest.approx(math.log(n))
    assert after.diagonal[0, 1].item() == pytest.approx(1 / n)
    assert not torch.allclose(before.weights[0, 1], torch.full((n, n), 1 / n), atol=1e-3)


def test_captures_of_an_encoder_decoder_hold_all_three_kinds():
    run = short("translator", 1, capture_every=1).run()
    probe = run.task.probe()
    source, written = len(probe.tokens), len(probe.written)
    (capture,) = run.captures
    assert capture.weights.shape == (3, 4, max(source, written), max(source, written))
    assert capture.weights[2, 0, :written, :source].sum(-1).tolist() == pytest.approx([1.0] * written)
    assert capture.entropy.isfinite().all()


def test_surgery_is_opened_for_each_step_alone():
    opened = []

    @contextlib.contextmanager
    def scope(model, step, **witnesses):
        opened.append(("in", step))
        yield
        opened.append(("out", step))

    run = short("first", 3, surgery=scope)
    for _ in run:
        assert opened[-1][0] == "out"
    assert [step for what, step in opened if what == "in"] == [1, 2, 3, 3]  # the last one for the evaluation


# --- grids --------------------------------------------------------------------------------------------------


def tiny(name="first", **more):
    return {"recipe": replace(shorter(task(name).recipe, 2), batch=4), **more}


def test_a_grid_is_a_table_and_a_failed_run_is_a_row():
    broken = [Cell("first", 0, "broken", **tiny(choices={"num_heads": 3}))]
    grid = cells(["first"], {"none": None, "causal": EachStep(sg.CausalMask())}, [0, 1], **tiny())
    rows = table([*grid, *broken], also={"flat": EachStep(sg.UniformAttention())})
    assert len(rows) == 4 + 2 + 1  # the plan is applied after training to the two intact runs
    (failure,) = rows[rows["error"].notna()].to_dict("records")
    assert failure["plan"] == "broken" and "num_heads=3" in failure["error"]
    means = summary(rows)
    assert set(means.index.get_level_values("plan")) == {"none", "causal", "flat"}
    assert means.loc[("first", "none", 0, "with"), ("runs", "")] == 2
    values = rows[(rows["plan"] == "none") & (rows["applied"] == "with")]["loss"]
    assert means.loc[("first", "none", 0, "with"), ("loss", "mean")] == pytest.approx(values.mean())
    assert means.loc[("first", "none", 0, "with"), ("loss", "std")] == pytest.approx(values.std())


def test_rows_stream_in_as_runs_end():
    rows = stream([Cell("first", seed, **tiny()) for seed in (0, 1)])
    assert next(rows)["seed"] == 0
    assert next(rows)["seed"] == 1
    assert next(rows, None) is None


def test_two_at_once_find_what_one_finds():
    grid = cells(["first"], {"causal": EachStep(sg.KeyDropout(0.2, 1))}, [0, 1], **tiny())
    alone = table(grid).sort_values("seed").drop(columns="seconds").reset_index(drop=True)
    with joblib.parallel_config(backend="threading"):  # the caller's backend: threads, processes, Dask, Ray
        rows = table(grid, n_jobs=2).sort_values("seed").drop(columns="seconds").reset_index(drop=True)
    pd.testing.assert_frame_equal(rows, alone)


def test_a_cell_can_be_sent_to_another_process():
    cell = Cell("first", 0, "causal", EachStep(sg.CausalMask().at("L0")), **tiny())
    (here,) = run_cell(cell)
    ((there,),) = joblib.Parallel(n_jobs=2)([joblib.delayed(run_cell)(cell)])
    assert {**here, "seconds": 0} == {**there, "seconds": 0}


# --- the command line ---------------------------------------------------------------------------------------


def test_the_command_trains_saves_and_resumes(tmp_path, capsys):
    command = ["--task", "role", "--steps", "4", "--capture-every", "2", "--out", str(tmp_path)]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "step     4" in said and "role" in said and "ignores order: role 0.500" in said
    assert {"config.json", "model.safetensors", "tokenizer.json", CHECKPOINT} <= {
        p.name for p in tmp_path.iterdir()
    }
    assert main([*command, "--resume"]) == 0
    assert capsys.readouterr().out == said
    assert main([*command, "--resume", "--seed", "3"]) == 2
    assert "seed" in capsys.readouterr().err
    from models import load

    assert load(tmp_path, device="cpu").kind == "masked_lm"
    assert isinstance(load(tmp_path, device="cpu").model, EncoderForMaskedLM)


def test_the_command_runs_a_grid_under_plans(tmp_path, capsys):
    command = [
        "--task",
        "first",
        "--steps",
        "2",
        "--seeds",
        "0",
        "1",
        "--plan",
        "causal_mask@L0 temperature=2",
    ]
    assert main([*command, "--compare", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.count("causal_mask@L0 temperature=2") >= 4 and "mean" in said and "std" in said
    rows = pd.read_csv(tmp_path / "grid.csv")
    assert sorted(rows["applied"]) == ["after"] * 2 + ["with"] * 4


def test_shipping_writes_what_load_reads_and_a_card_of_what_was_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(type(task("translator")), "recipe", Recipe(steps=2, batch=4, warmup=1))
    assert main(["--ship", "translator", "--seeds", "3", "4", "--out", str(tmp_path)]) == 0
    assert "translator seed 4: sentences 0.000, aligned" in capsys.readouterr().out
    card = (tmp_path / "translator" / "README.md").read_text(encoding="utf-8")
    assert "--ship translator --seeds 3 4" in card and "over 2 seeds" in card
    assert "| sentences | 0.000 | 0.000 ± 0.000 | 0.500 |" in card
    from models import load

    patient = load(tmp_path / "translator", device="cpu")
    assert (patient.kind, patient.max_tokens) == ("translator", 32)


def test_plans_come_as_words_json_and_files(tmp_path):
    assert plan_of("") is None
    expected = sg.Plan(sg.DropScaling(), sg.Temperature(2.0).at("L1.H0"))
    assert plan_of("drop_scaling temperature=2@L1.H0").plan == expected
    assert plan_of(expected.to_json()).plan == expected
    (tmp_path / "plan.json").write_text(expected.to_json())
    assert plan_of(str(tmp_path / "plan.json")).plan == expected


def test_the_command_says_what_is_wrong_in_one_line(capsys, tmp_path):
    for words, says in (
        (["--task", "rolle"], "no task called 'rolle'"),
        (["--task", "first", "--plan", "causal_mas"], "causal_mask"),
        (["--task", "first", "--resume"], "--out"),
        (["--task", "first", "--dtype", "float16"], "CUDA"),
    ):
        assert main(words) == 2
        assert says in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["--task", "first", "--steps", "1", "--out", str(tmp_path / "file" / "run")]) == 2
    assert "file" in capsys.readouterr().err
    assert main(["--lang", "zh", "--task", "rolle"]) == 2
    assert "没有名为" in capsys.readouterr().err
    assert main([]) == 0
    assert "translator" in capsys.readouterr().out


def test_what_has_no_tokenizer_is_not_shipped_and_says_so_before_training(tmp_path, capsys):
    assert main(["--ship", "translator", "first", "--out", str(tmp_path)]) == 2
    assert "first" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
