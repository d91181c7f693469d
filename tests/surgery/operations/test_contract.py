"""What every operation keeps: a new file in surgery/operations is checked by itself."""

import dataclasses
import inspect
import pickle
import re
from pathlib import Path

import pytest
import torch

import surgery as sg
from bilingual import SurgeryError
from surgery.operation import known
from tests.surgery import bench

FOLDER = Path(inspect.getfile(sg.operations)).parent
PROMISED = """
    DropScaling Temperature RemovePositions SamePosition ShufflePositions ReversePositions ShiftPositions
    ScoreDropout KeyDropout WeightDropout OutputDropout CausalMask LocalMask IgnorePaddingMask BlockTokens HideSelf
    CustomMask AblateHead UniformAttention IdentityAttention
"""

# Values other than the defaults, for the round trips.
OTHERS = {
    "float": [0.1, 1 / 3, 1.0],
    "int": [0, 7, 123],
    "positions": [(), (0,), (3, 5, 8)],
    "picture": [("1",), ("10", "11"), ("000", "010", "111")],
}

every_operation = pytest.mark.parametrize("operation", sg.REGISTRY.values(), ids=sg.REGISTRY)


def variants(operation) -> list:
    made = [operation()]
    for name, about in operation.parameters().items():
        some = [v for v in OTHERS[about.kind] if isinstance(v, tuple) or about.low <= v <= about.high]
        made += [operation(**{name: value}) for value in some]
    return made


def test_the_promised_operations_are_there():
    names = {operation.__name__ for operation in sg.REGISTRY.values()}
    assert names >= set(PROMISED.split())
    assert names <= set(sg.__all__) and all(getattr(sg, name) for name in names)


def test_each_file_holds_one_operation_on_one_screen():
    files = {path.stem: path for path in FOLDER.glob("*.py") if path.stem != "__init__"}
    assert files.keys() == sg.REGISTRY.keys()
    for name, path in files.items():
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) < 60, name
        assert Path(inspect.getfile(sg.REGISTRY[name])) == path
        for forbidden in ("gradio", "transformers", "theatre", "selection", "layer_idx"):
            assert not re.search(rf"^(import|from) .*{forbidden}", text, re.MULTILINE), (name, forbidden)


@every_operation
def test_it_is_described_in_both_languages(operation):
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", operation.__name__).lower()
    assert operation.name == snake
    assert operation.stage in sg.STAGES and callable(getattr(operation, operation.stage))
    assert set(operation.removes) <= {*sg.STAGES, "softmax"}
    said = [operation.title, operation.summary, operation.when_idle]
    said += [words for about in operation.parameters().values() for words in (about.label, about.help)]
    for words in said:
        assert words.en and words.zh and words.en != words.zh
    assert re.search("[\u4e00-\u9fff]", operation.title.zh + operation.summary.zh)
    assert operation.equation.strip() and len(operation.title.en) <= 48
    assert operation.summary.en.endswith(".") and operation.summary.zh.endswith("。")


@every_operation
def test_its_docstring_teaches(operation):
    text = inspect.getdoc(operation)
    first = text.splitlines()[0]
    assert first.endswith(".") and ("=" in first or "allowed(" in first), "the equation comes first"
    assert len(text) > 150
    assert re.search(r"\(.+ \d{4}", text) or len(re.findall(r"[.:;]\s", text)) >= 2, "a source or reasons"


@every_operation
def test_its_parameters_have_ranges_help_and_working_defaults(operation):
    made = operation()
    for name, about in operation.parameters().items():
        assert about.kind in OTHERS
        default = getattr(made, name)
        assert about.check(name, default, "x") == default
        if about.kind in ("float", "int"):
            assert about.low <= default <= about.high
        if about.slider:
            assert about.low <= about.slider[0] < about.slider[1] <= about.high
        if about.log:
            assert about.slider[0] > 0
    assert not made.neutral, "the default does something"


@every_operation
def test_it_is_frozen_comparable_hashable_and_picklable(operation):
    made = operation()
    assert made == operation() and hash(made) == hash(operation()) and len({made, operation()}) == 1
    assert pickle.loads(pickle.dumps(made)) == made
    for name in [*operation.parameters(), "new"]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, name, 1)
    assert made.describe("en") != made.describe("zh")


@every_operation
@pytest.mark.parametrize("where", ["L*", "L0", "H2", "L0-3.H1,5", "L0.H1+L2.H3", "none"])
def test_all_spellings_lead_back_to_it(operation, where):
    for made in variants(operation):
        plan = sg.Plan(made.at(where), made)
        assert sg.Plan.from_json(plan.to_json()) == plan
        assert sg.Plan.from_json(plan.to_json(indent=2)) == plan
        assert sg.Plan.from_link(plan.to_link()) == plan
        assert re.fullmatch(r"[\w-]+", plan.to_link(), re.ASCII)
        assert eval(plan.to_python(), {"sg": sg}) == plan == eval(repr(plan), {"sg": sg})
        assert sg.Plan.from_words(plan.to_words()) == plan
        assert pickle.loads(pickle.dumps(plan)) == plan
        assert sg.Plan.from_dict(plan.to_dict()) == plan and hash(plan) == hash(
            sg.Plan.from_json(plan.to_json())
        )


@every_operation
def test_it_refuses_what_it_does_not_have(operation):
    plan = sg.Plan(operation()).to_dict()
    plan["operations"][0]["strength"] = 3
    bench.refuses(lambda: sg.Plan.from_dict(plan), operation.__name__, "strength", error=sg.OperationError)
    name = operation.name
    bench.refuses(lambda: known(name[:-1] + "x"), name, error=sg.OperationError)


@every_operation
def test_it_acts_in_eval_mode_and_leaves_the_generator_and_the_model_alone(operation, tiny):
    intact = tiny.run()
    state = torch.get_rng_state()
    parameters = {"positions": (1, 2)} if operation is sg.BlockTokens else {}
    if operation is sg.CustomMask:
        parameters = {"rows": ["1" + "0" * 10] * 11}
    if operation.stochastic and "p" in operation.parameters():
        parameters = {"p": 0.5}
    made = operation(**parameters)
    assert not bench.same(tiny.run(made), intact)
    assert bench.same(tiny.run(made), tiny.run(made))
    assert torch.equal(torch.get_rng_state(), state)
    assert bench.same(tiny.run(), intact)
    for watched in (True, False):
        assert tiny.run(made, watched=watched).hidden[-1].isfinite().all()
    assert (tiny.run(made).hidden[-1] - tiny.run(made, watched=False).hidden[-1]).abs().max() < 1e-4


@every_operation
def test_gradients_flow_through_it(operation):
    specimen = bench.SPECIMENS["bert"]()
    made = operation(rows=["11111111111"] * 11) if operation is sg.CustomMask else operation()
    where = None if operation.stage == "positions" else "L1.H1,3"
    with sg.operate(specimen.model, made.at(where) if where else made):
        loss = specimen.model(**specimen.inputs).last_hidden_state[:, :7].square().mean()
    loss.backward()
    for name, weight in specimen.model.named_parameters():
        reached = weight.grad is not None
        unused = name.startswith("pooler") or ("position_embeddings" in name and made == sg.RemovePositions())
        assert reached or unused, name
        assert not reached or weight.grad.isfinite().all()


def test_operations_can_be_added_from_outside():
    """A class with a name registers itself; it is taken out again here."""
    try:

        @dataclasses.dataclass(frozen=True)
        class Twice(sg.Operation):
            name = "twice"
            stage = "output"
            title = summary = sg.Words("Twice", "两倍")
            equation = "2 · (weights · v)"

            def output(self, output, draw):
                return 2 * output

        specimen = bench.SPECIMENS["bert"]()
        bench.matches(specimen, Twice(), lambda layer, allowed: {"output_factor": 2.0})
        bench.leaves_others_alone(specimen, Twice())
        assert sg.Plan.from_words(["twice@L0"]) == sg.Plan(Twice().at("L0"))
    finally:
        sg.REGISTRY.pop("twice", None)


def test_errors_are_surgery_errors():
    for error in (
        sg.OperationError,
        sg.PlanError,
        sg.SelectionError,
        sg.UnsupportedError,
        sg.ScopeError,
        sg.TextError,
    ):
        assert issubclass(error, SurgeryError)
