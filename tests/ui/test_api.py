"""The endpoints for scripts: the same numbers as the library, and errors in words."""

import importlib
import json
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

import surgery as sg
from models import load
from ui import operating, present
from ui.link import LinkError, Setting, SettingError
from ui.pool import Pool
from ui.steps import from_plan

ROOT = Path(__file__).parents[2]
code = importlib.import_module("ui.panels.code")  # the package has a function of that name
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
        ({"text": "hi", "plan": PLAN.to_dict(), "pad_to": 99999}, "99999 .* from 3 to 128"),
        ({"text": "hi", "plan": PLAN.to_dict(), "pad_to": 250}, "250 .* from 3 to 128"),
        ({"text": "hi", "plan": PLAN.to_dict(), "pad_to": 2, "lang": "zh"}, "3 到 128"),
        ({"text": "hi", "plan": PLAN.to_dict(), "pad_to": -3}, "-3 .* from 3 to 128"),
        ({"text": "hi", "plan": PLAN.to_dict(), "pad_to": 7.5}, "pad_to"),
        ({"text": "hi", "plan": PLAN.to_dict(), "other": None}, "other"),
        ({"text": "hi", "plan": PLAN.to_dict(), "other": 7}, "other"),
        ({"text": ["hi"], "plan": PLAN.to_dict()}, "text"),
        ({"text": "hi", "plan": PLAN.to_dict(), "literal": "yes"}, "literal"),
        ({"text": "hi", "plan": [PLAN.to_dict()]}, "not a plan"),
        ({"text": "hi", "plan": PLAN.to_dict(), "lang": []}, "en, zh"),
        ({"text": "hi", "plan": PLAN.to_dict(), "lang": "fr"}, "en, zh"),
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


def test_two_visitors_at_once_each_get_their_own_answer(app_url):
    plans = {
        "hot": sg.Plan(sg.Temperature(5.0)),
        "none": sg.Plan(),
        "dropout": sg.Plan(sg.WeightDropout(0.3, 7)),
    }
    clients = {name: Client(app_url, verbose=False) for name in plans}

    def ask(name):
        found = clients[name].predict(
            text="The dog bit the man", plan=plans[name].to_dict(), api_name="/operate"
        )
        return found["output"]["token_cosines"], found["heads"][40]

    alone = {name: ask(name) for name in plans}
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda name: (name, ask(name)), [*plans] * 20))
    assert all(answer == alone[name] for name, answer in found)
    assert alone["none"][0] == pytest.approx([1.0] * 7, abs=1e-12) and alone["none"][1]["js_divergence"] == 0


def test_curl_by_name_needs_only_the_text_and_errors_are_in_words(app_url):
    def ask(**body):
        answer = httpx.post(f"{app_url}gradio_api/call/v2/operate", json=body, timeout=30).json()
        said = httpx.get(f"{app_url}gradio_api/call/operate/{answer['event_id']}", timeout=30).text
        return re.findall("event: (.*)\ndata: (.*)", said)[-1]

    event, data = ask(text="The dog bit the man", plan=PLAN.to_dict())
    assert event == "complete"
    assert json.loads(data)[0]["plan"] == PLAN.to_dict()
    assert json.loads(ask(text="hello")[1])[0]["plan"]["operations"] == []
    for wrong in ({"other": None}, {"other": 7}, {"text": []}, {"lang": []}, {"lang": None}):
        event, data = ask(**{"text": "hello", **wrong})
        assert event == "error"
        assert next(iter(wrong)) in json.loads(data)["error"]


def test_caveats_and_notices_come_in_the_language_asked_for(client):
    asked = {"text": "the dog " * 100, "plan": sg.Plan(sg.WeightDropout(0.3, 1)).to_dict()}
    found = {
        lang: client.predict(**asked, model="encoder-untrained", lang=lang, api_name="/operate")
        for lang in ("en", "zh")
    }
    for name in ("caveats", "notices"):
        assert all(re.search("[一-鿿]", said) for said in found["zh"][name])
        assert not any(re.search("[一-鿿]", said) for said in found["en"][name])
        assert len(found["zh"][name]) == len(found["en"][name]) > 0
    assert re.search("[一-鿿]", found["en"]["verdict"]["zh"])


def test_the_endpoint_says_how_to_call_it_with_curl(client):
    about = client.view_api(return_format="dict")["named_endpoints"]["/operate"]
    assert "call/v2/operate" in json.dumps(about)


def test_the_shown_code_gives_the_shown_numbers_of_a_text_that_the_page_cuts():
    setting = Setting(text="dog " * 300, steps=from_plan(PLAN))
    done = operating.operate(Pool(device="cpu"), setting)
    assert done.max_tokens == 128
    shown = present.html(done, "en")["code"]
    assert "max_tokens=128" in shown and "--max-tokens 128" in shown
    program = code.python("minilm", setting.text, done.comparison.plan, **done.options)
    space: dict = {}
    exec(program, space)
    assert space["c"].tokens == done.comparison.tokens
    assert space["c"].verdict() == done.comparison.verdict()
    assert space["c"].output == done.comparison.output
    short = present.html(operating.operate(Pool(device="cpu"), Setting(text="dog")), "en")["code"]
    assert "max_tokens" not in short and "max-tokens" not in short


def test_the_shown_command_gives_the_shown_numbers_of_a_text_that_the_page_cuts(tmp_path):
    setting = Setting(text="dog " * 300, steps=from_plan(PLAN))
    done = operating.operate(Pool(device="cpu"), setting)
    command = code.shell("minilm", setting.text, done.comparison.plan, **done.options).rstrip()
    command = command.replace("python -m", f"{shlex.quote(sys.executable)} -m", 1)
    ran = subprocess.run(f"{command} --out {tmp_path}", shell=True, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    saved = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    assert saved["tokens"] == done.comparison.tokens
    assert saved["verdict"]["en"] == done.comparison.verdict()


def test_a_second_text_that_the_page_cuts_is_told_to_the_code_too():
    done = operating.operate(Pool(device="cpu"), Setting(text="dog", other="cat " * 300))
    assert done.options["max_tokens"] == 128
