"""Beyond one process and one device: a cluster's scheduler, and models that accelerate has spread."""

import contextlib

import joblib
import pandas
import pytest
import torch

import surgery as sg
from tests.surgery.patients import patient

TEXTS = ["The dog bit the man.", "hello there", "sleep furiously"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning")
def test_a_dask_cluster_gives_the_same_table(minilm):
    distributed = pytest.importorskip("distributed")
    plans = sg.every_layer(minilm)
    alone = sg.sweep(minilm, TEXTS, plans)
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=False, **options) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        there = sg.sweep(minilm, TEXTS, plans, n_jobs=2)
    pandas.testing.assert_frame_equal(there, alone, atol=1e-5, check_exact=False)


def test_a_model_that_accelerate_keeps_elsewhere_is_operated_on(tmp_path):
    accelerate = pytest.importorskip("accelerate")
    here, there = patient("BertModel", "encoder"), patient("BertModel", "encoder")
    there.model.load_state_dict(here.model.state_dict())
    accelerate.disk_offload(there.model, str(tmp_path), execution_device=torch.device("cpu"))
    assert {p.device.type for p in there.model.parameters()} == {"meta"}
    inputs = here.tokenizer("the cat saw the dog", return_tensors="pt")
    for plan in (
        sg.Plan(),
        sg.Plan(sg.DropScaling().at("L0.H1")),
        sg.Plan(sg.RemovePositions(), sg.CausalMask()),
    ):
        found = []
        for model in (here.model, there.model):
            with torch.no_grad(), sg.operate(model, plan) if len(plan) else contextlib.nullcontext():
                found.append(model(**inputs).last_hidden_state)
        assert torch.equal(*found)
