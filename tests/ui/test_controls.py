"""The form of a step: what it suggests, and what a new step does."""

import pytest

import surgery as sg
from surgery.selection import Selection
from ui import controls, steps


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 12])
@pytest.mark.parametrize("layers", [1, 2, 3, 6, 24])
def test_the_example_of_a_selection_names_only_what_the_model_has(layers, heads):
    ways = controls.example(layers, heads).split(" · ")
    assert all(Selection.parse(way).cells(layers, heads) for way in ways)
    assert len(set(ways)) == len(ways) >= 3


def test_the_example_is_that_of_the_model_at_hand():
    assert controls.example(6, 12) == "L0-3.H1,5 · L* · H2 · L0.H1+L2"
    assert controls.example(2, 4) == "L0-1.H1,3 · L* · H2 · L0.H1+L1"


def test_a_step_that_was_added_changes_nothing_until_somebody_says_what():
    (step,) = steps.to_plan([steps.idle()])
    assert step.operation == sg.Temperature(1.0) and step.operation.neutral
