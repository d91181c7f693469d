"""The endpoints for scripts: the same numbers as the library, and errors in words."""

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

import surgery as sg
from models import load
from ui.link import LinkError, Setting, SettingError

PLAN = sg.Plan(sg.Temperature(2.0).at("L0-3.H1,5"))


@pytest.fixture(scope="module")
def client(app_url):
    return Client(app_url, verbose=False)


def test_only_what_a_script_wants_is_public(client):
    assert sorted(client.view_api(return_format="dict")["named_endpoints"]) == [
        "/models",
        "/operate",
        "/sweep",
    ]


def test_operate_gives_what_compare_gives(client):
    found = client.predict(
        text="The dog bit the man", plan=PLAN.to_dict(), other="hello", api_name="/operate"
    )
    wanted = sg.compare(load("minilm"), "The dog bit the man", PLAN, other="hello").to_dict()
    assert found["verdict"] == wanted["verdict"]
    assert found["output"]["sentence_cosine"] == pytest.approx(wanted["output"]["sentence_cosine"], abs=1e-6)
    assert found["similarity"]["operated"] == pytest.approx(wanted["similarity"]["operated"], abs=1e-6)


def test_sweep_gives_what_sweep_gives(client):
    plans = sg.grid(sg.Temperature, t=[0.5, 2.0])
    found = client.predict(texts=["hello there"], plans=[p.to_dict() for p in plans], api_name="/sweep")
    wanted = sg.sweep(load("minilm"), "hello there", plans)
    assert [row["label"] for row in found] == wanted["label"].tolist()
    assert [row["relative_l2"] for row in found] == pytest.approx(wanted["relative_l2"].tolist(), abs=1e-5)
    assert found[0]["kl"] is None


def test_models_are_those_on_offer(client):
    assert "minilm" in [model["name"] for model in client.predict(api_name="/models")]


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"text": "", "plan": PLAN.to_dict()}, "The text is empty"),
        ({"text": "hi", "plan": {"version": 99, "operations": []}}, "version 99"),
        ({"text": "hi", "plan": {"version": 1, "operations": [{"operation": "temprature"}]}}, "temperature"),
        ({"text": "hi", "plan": sg.Plan(sg.Temperature(2.0).at("L9")).to_dict()}, "layers are 0-5"),
        ({"text": "hi", "plan": PLAN.to_dict(), "pad_to": 99999}, "99999"),
        ({"text": "hi", "plan": PLAN.to_dict(), "pad_to": "x"}, "pad_to"),
        ({"text": "hi", "plan": PLAN.to_dict(), "model": "/no/such/folder"}, "/no/such/folder"),
        ({"text": "  ", "plan": PLAN.to_dict(), "lang": "zh"}, "文本为空"),
        ({"text": 7, "plan": PLAN.to_dict()}, "text"),
    ],
)
def test_what_cannot_be_done_is_said_and_the_server_goes_on(client, arguments, said):
    with pytest.raises(AppError, match=said):
        client.predict(**arguments, api_name="/operate")
    assert client.predict(text="hello", plan=PLAN.to_dict(), api_name="/operate")["tokens"][1] == "hello"


def test_a_setting_survives_its_link_and_refuses_other_kinds():
    setting = Setting(
        "t", "o", "encoder", [{"operation": "temperature", "t": 2.0, "at": "L*", "on": False}], 0, 8, True
    )
    assert Setting.from_token(setting.to_token()) == setting
    for wrong in ({"text": 3}, {"pad_to": True}, {"steps": [3]}, {"view": []}):
        with pytest.raises(SettingError):
            Setting(**wrong)
    for junk in ("", "AAAA", "?s=", sg.Plan().to_link()):
        with pytest.raises(LinkError):
            Setting.from_token(junk)
