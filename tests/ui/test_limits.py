"""The limits: one settings file, strict for strangers, each met in words."""

import dataclasses
import re
import threading
import weakref
from pathlib import Path

import pytest

from surgery import OperationError, Plan, Temperature
from ui import limits, operating, sweeping, training
from ui.limits import OWN, PUBLIC, LimitError, Limits, SettingsError
from ui.link import Setting
from ui.pool import NotAllowedError, Pool
from ui.steps import from_plan

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
TIGHT = Limits(text_characters=20, plan_steps=2, sweep_texts=2, sweep_plans=3, sweep_seeds=2, train_steps=5)


@pytest.fixture(scope="module")
def pool():
    return Pool("encoder", device="cpu", limits=TIGHT)


def test_the_readme_lists_every_limit_with_its_values():
    assert limits.table() in README


def test_nothing_is_looser_for_strangers():
    for name in limits.names():
        assert getattr(PUBLIC, name) <= getattr(OWN, name), name


def test_the_environment_changes_limits_and_nonsense_in_it_is_said():
    assert Limits.of(False, {"SURGERY_TOKENS": "64", "HOME": "x"}) == dataclasses.replace(OWN, tokens=64)
    assert Limits.of(True, {"SURGERY_TOKENS": "64"}) == dataclasses.replace(PUBLIC, tokens=64)
    assert Limits.of(True, {"SPACE_ID": "a/b"}).proxies == 1
    for wrong in ("", "0", "-1", "1.5", "x", "9" * 30, "٣"):
        with pytest.raises(SettingsError, match="SURGERY_TOKENS"):
            Limits.of(False, {"SURGERY_TOKENS": wrong})
    with pytest.raises(SettingsError, match="SURGERY_TOKEN is no limit"):
        Limits.of(False, {"SURGERY_TOKEN": "3"})


def steps(count):
    return from_plan(Plan(*[Temperature(2.0)] * count))


def kept_to(call, most):
    """The call is refused, in two languages that both name the limit; returns where it is said."""
    with pytest.raises(LimitError) as caught:
        call()
    for lang in ("en", "zh"):
        assert re.search(rf"\b{most}\b" if lang == "en" else f" {most}。", caught.value.say(lang))
    assert re.search("[一-鿿]", caught.value.say("zh"))
    return caught.value.place


def test_a_run_is_limited(pool):
    assert operating.operate(pool, Setting("x" * 20, model="encoder", steps=steps(2)))
    assert kept_to(lambda: operating.operate(pool, Setting("x" * 21, model="encoder")), 20) == "text"
    assert kept_to(lambda: operating.operate(pool, Setting("x", "y" * 21, model="encoder")), 20) == "text"
    long = Setting("x", model="encoder", steps=steps(3))
    assert kept_to(lambda: operating.operate(pool, long), 2) == "plan"
    assert kept_to(lambda: pool.get("x" * 1001), 1000) == "model"


def test_a_sweep_is_limited(pool):
    plan = Plan(Temperature(2.0)).to_dict()

    def sweep(texts, plans, seeds=1):
        return sweeping.sweep_plans(pool, "encoder", texts, plans, seeds)

    assert len(sweep(["dog", "cat"], [plan], 2)) == 2
    kept_to(lambda: sweep(["dog"] * 3, [plan]), 2)
    kept_to(lambda: sweep(["x" * 21], [plan]), 20)
    kept_to(lambda: sweep(["dog"], [plan] * 4), 3)
    kept_to(lambda: sweep(["dog"], [plan] * 2, 2), 3)
    kept_to(lambda: sweep(["dog"], [plan], 3), 2)
    kept_to(lambda: sweep(["dog"], [Plan(*[Temperature(2.0)] * 3).to_dict()]), 2)
    kept_to(lambda: next(sweeping.sweep(pool, "encoder", "a\nb\nc", "heads")), 2)
    kept_to(lambda: next(sweeping.sweep(pool, "encoder", "dog", "heads")), 3)


@pytest.mark.parametrize("public", [False, True])
def test_every_sweep_of_the_page_fits_its_own_limits(public):
    pool = Pool(device="cpu", public=public)
    for kind in sweeping.KINDS:
        assert len(sweeping.plans(kind, pool.get("minilm"))) <= pool.limits.sweep_plans


def test_a_sweep_reads_only_so_many_tokens():
    pool = Pool("encoder", device="cpu", limits=dataclasses.replace(OWN, sweep_tokens=4))
    plan = Plan(Temperature(2.0)).to_dict()
    long, short = (
        sweeping.sweep_plans(pool, "encoder", [text], [plan], 1)[0]["relative_l2"]
        for text in ("the dog saw the cat", "the dog")
    )
    assert long == short


def test_training_is_limited():
    with pytest.raises(training.TrainRequestError, match="1 to 5"):
        next(training.train("agree", 0, 6, Plan(), TIGHT))
    for wrong in (float("nan"), float("inf"), 1e308, -1, 2.5, True, "3", None, [1], 10**400):
        with pytest.raises(training.TrainRequestError):
            next(training.train("agree", 0, wrong, Plan(), TIGHT))
    for wrong in (None, [], {}, "chess"):
        with pytest.raises(training.TrainRequestError):
            next(training.train(wrong, 0, 1, Plan(), TIGHT))


@pytest.mark.parametrize(
    "name",
    ["/etc", "../x", "~", "https://example.org/x", "google/bert", "translator", "", 3, None, ["minilm"]],
)
def test_strangers_get_only_the_models_on_offer(name, monkeypatch):
    import models

    monkeypatch.setattr(models, "load", lambda *_, **__: pytest.fail("it was loaded"))
    with pytest.raises(NotAllowedError, match="This server offers minilm"):
        Pool(public=True).get(name)


def test_strangers_are_not_told_where_our_files_lie(monkeypatch):
    import models

    def load(name, **_):
        raise models.LoadError("/home/me/model.safetensors is damaged", "/home/me/model.safetensors 已损坏")

    monkeypatch.setattr(models, "load", load)
    with pytest.raises(NotAllowedError, match="minilm cannot be loaded") as caught:
        Pool(public=True).get("minilm")
    assert "/home" not in caught.value.say("en") + caught.value.say("zh")
    with pytest.raises(models.LoadError, match="/home/me"):
        Pool().get("minilm")


def test_a_model_that_cannot_be_loaded_leaves_the_ones_that_are(monkeypatch):
    pool = Pool("encoder", device="cpu", limits=dataclasses.replace(OWN, models=1))
    patient = pool.get("encoder")
    with pytest.raises(Exception, match="/no/such"):
        pool.get("/no/such/folder/")
    assert pool.ready("encoder") and pool.get("encoder") is patient
    pool.get("encoder-zh")
    assert not pool.ready("encoder") and not pool.ready([])


def test_who_waits_for_a_turn_holds_no_model():
    pool = Pool("encoder", device="cpu", limits=dataclasses.replace(OWN, models=1, runs_at_once=1))
    waiting = threading.Thread(target=operating.operate, args=(pool, Setting(text="a b", model="characters")))
    with pool.use("encoder"):
        waiting.start()
        waiting.join(2)
        assert waiting.is_alive() and pool.ready("encoder") and not pool.ready("characters")
    waiting.join(60)
    assert pool.ready("characters") and not pool.ready("encoder")


def test_between_two_texts_a_sweep_holds_no_model():
    pool = Pool("encoder", device="cpu", limits=dataclasses.replace(OWN, models=1))
    rows = sweeping.sweep(pool, "characters", "a\nb", "heads")
    next(rows)
    held = weakref.ref(pool.get("characters").model)
    pool.get("encoder")
    assert held() is None


def test_a_wrong_value_is_not_the_fault_of_a_model_that_was_not_loaded_yet():
    pool = Pool("encoder", device="cpu")
    steps = from_plan(Plan(Temperature(2.0)))
    steps[0]["t"] = "abc"
    with pytest.raises(OperationError, match="'abc'"):
        operating.operate(pool, Setting("a b", model="characters", steps=steps))
    assert pool.ready("characters")  # whose fault it is, is told by this
