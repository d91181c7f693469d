import json
import math
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import models
import surgery as sg
from surgery.comparison import Comparison
from ui import charts, panels, steps
from ui.markup import printable, render
from ui.numbers import number, percent
from ui.panel import Panel

ROOT = Path(__file__).parents[2]
LANGUAGES = ("en", "zh")
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a<b&c",
    "**x**",
    "|",
    "\"'",
    "{{ t }}${x}",
    "<s>",
    "\u202eabc\x07",
    "שלום",
]
VOID = {"img", "meta", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """HTML as a flat list of elements, each [tag, attributes, text inside, classes around and on it].

    said: every piece of text, with the tag that it stands in and the classes around it.
    """

    def __init__(self, html: str):
        super().__init__()
        self.elements: list[list] = []
        self.open: list[list] = []
        self.said: list[tuple[str, str, set]] = []
        self.feed(str(html))
        assert self.open == [], "an element was never closed"

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        around = self.open[-1][3] if self.open else set()
        element = [tag, attributes, "", around | set((attributes.get("class") or "").split())]
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for element in self.open:
            element[2] += data
        if self.open:
            self.said.append((data, self.open[-1][0], self.open[-1][3]))

    def of(self, tag: str | None = None, **attributes) -> list[list]:
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        found = [e for e in self.elements if tag in (None, e[0])]
        return [
            e for e in found if all(value in (e[1].get(name) or "").split() for name, value in wanted.items())
        ]

    def texts(self, tag: str | None = None, **attributes) -> list[str]:
        return [" ".join(e[2].split()) for e in self.of(tag, **attributes)]


def rows(html: str) -> list[list[str]]:
    """The body rows of the first table, as texts."""
    body = html[html.index("<tbody>") : html.index("</tbody>")]
    return [
        Page(row).texts("th") + Page(row).texts("td") for row in re.findall("<tr.*?</tr>", body, re.DOTALL)
    ]


def everything(comparison: Comparison, lang: str) -> dict[str, str]:
    made = {
        name: getattr(panels, name)(comparison, lang)
        for name in ("verdict", "outputs", "heads", "layers", "receipt", "pipeline")
    }
    made["plan"] = panels.plan(steps.from_plan(comparison.plan), 0, lang)
    made["code"] = panels.code(comparison.model, comparison.text, comparison.plan, lang=lang)
    return made


@pytest.fixture(scope="module")
def bare(minilm) -> Comparison:
    plan = sg.Plan(sg.DropScaling().at("L0-3.H1,5"), sg.KeyDropout(0.3, 1), sg.Temperature(1.0))
    return sg.compare(minilm, "The dog bit the man", plan, other="A cat sleeps", pad_to=11)


@pytest.fixture(scope="module")
def masked(encoder) -> Comparison:
    return sg.compare(encoder, "the [MASK] chased the [MASK] zebra", sg.RemovePositions())


def with_hostile_labels(comparison: Comparison) -> Comparison:
    """The same numbers, with tokens and answers that would like to be markup."""
    count = len(comparison.tokens)
    reading = replace(comparison.reading, tokens=tuple((HOSTILE * count)[:count]))
    runs = []
    for run in (comparison.baseline, comparison.operated):
        answers = [
            [(label, p) for label, (_, p) in zip(HOSTILE * 2, site, strict=False)] for site in run.predictions
        ]
        runs.append(replace(run, predictions=answers))
    return replace(comparison, reading=reading, baseline=runs[0], operated=runs[1])


@pytest.fixture(scope="module")
def hostile(encoder) -> Comparison:
    text = " [MASK] ".join(HOSTILE)
    return with_hostile_labels(sg.compare(encoder, text, sg.CausalMask().at("L1")))


@pytest.fixture(scope="module")
def closed(encoder) -> Comparison:
    """A query without any key: what is undefined must be shown as undefined."""
    return sg.compare(encoder, "the dog", sg.KeyDropout(1.0, 0))


# --- numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "infinite"),
        (0.0, "0.0000"),
        (-0.0, "0.0000"),
        (1e-7, "<0.0001"),
        (-0.25, "−0.2500"),
        (1.00004, "1.0000"),
        (33.5, "33.5000"),
    ],
)
def test_numbers_are_readable(value, text):
    assert number(value, "en") == text


def test_shares_are_in_per_cent_and_infinity_is_a_word():
    assert [percent(share) for share in (0.0, 0.001, 0.376, 1.0, math.nan, None)] == [
        "0%",
        "<1%",
        "38%",
        "100%",
        "–",
        "–",
    ]
    assert number(math.inf, "zh") == "无穷大"


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("", "''"),
        ("  ", "␣␣"),
        ("a\tb\x00", "a\\tb\\x00"),
        ("\u202eabc", "\\u202eabc"),
        ("שלום", "שלום"),
        ("𠮷", "𠮷"),
    ],
)
def test_what_cannot_be_seen_is_shown_as_an_escape(token, shown):
    assert printable(token) == shown


# --- every panel ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("which", ["bare", "masked", "hostile", "closed"])
def test_every_panel_is_sound_html_without_nan(which, lang, request):
    for name, html in everything(request.getfixturevalue(which), lang).items():
        page = Page(html)
        text = "".join(e[2] for e in page.elements[:1])
        assert not re.search(r"\bnan\b|\binf\b|None|Undefined", text), name
        assert page.elements[0][1]["lang"] == {"en": "en", "zh": "zh-CN"}[lang]
        for element in page.of("button"):
            assert element[2].strip() or element[1]["aria-label"], name
            if "data-action" in element[1]:
                assert json.loads(element[1]["data-action"])["do"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_tokens_and_texts_never_become_markup(hostile, lang):
    for name, html in everything(hostile, lang).items():
        page = Page(html)
        assert page.of("script") == page.of("img") == page.of("strong") == [], name
        assert not any(attribute.startswith("on") for e in page.elements for attribute in e[1]), name
    shown = Page(panels.outputs(hostile, lang)).texts("bdi")
    assert {printable(token) for token in HOSTILE} <= set(shown)
    code = Page(panels.code("<b>m</b>", HOSTILE[0], sg.Plan(), lang=lang)).of(
        "code", data_copied_text="python"
    )[0][2]
    assert repr(HOSTILE[0]) in code
    assert "load('<b>m</b>')" in code


def test_plan_parameters_and_places_are_text_too(hostile):
    listed = [{"operation": "<b>x</b>", "at": "<i>L0</i>", "on": True}]
    page = Page(panels.plan(listed, 0, "en"))
    assert page.of("i") == []
    assert "<b>x</b>" in page.of("li")[0][2]
    assert "<i>L0</i>" in page.of("li")[0][2]


# Names of the field and of programs stay as they are in Chinese; so do names of models, parameters and tokens
ALLOWED = set(
    [
        "JS",
        "KL",
        "CKA",
        "softmax",
        "ln",
        "JSON",
        "Python",
        "Dropout",
        "BertModel",
        "MASK",
        "minilm",
        "encoder",
        "seed",
        "sg",
        "Plan",
        "plan",
        "json",
    ]
)
AS_WRITTEN = {"pn-formula", "pn-equation", "pn-equations", "pn-token", "pn-place", "pn-where"}
SPOKEN = ("aria-label", "title", "alt", "data-all", "data-less", "data-done", "data-failed")


@pytest.mark.parametrize("which", ["bare", "masked", "closed"])
def test_no_english_is_left_on_the_chinese_page(which, request):
    comparison = request.getfixturevalue(which)
    runs = (comparison.baseline.predictions, comparison.operated.predictions)
    own = set(re.findall("[A-Za-z]+", f"{comparison.text} {runs}"))
    for name, html in everything(comparison, "zh").items():
        page = Page(html)
        texts = [
            said for said, tag, around in page.said if tag not in ("code", "text") and not around & AS_WRITTEN
        ]
        texts += [e[1][attribute] for e in page.elements for attribute in SPOKEN if attribute in e[1]]
        words = {word for text in texts for word in re.findall("[A-Za-z]{2,}", text)}
        assert words <= ALLOWED | own | {"from"}, name


# --- the verdict ------------------------------------------------------------------------------------------


def test_the_verdict_shows_the_sentence_the_numbers_and_what_to_mind(bare):
    page = Page(panels.verdict(bare, "en"))
    assert page.texts("p", class_="pn-sentence") == [bare.verdict()]
    figures = page.texts(class_="pn-figure")
    assert figures[0] == f"{bare.heads['total_variation'].mean():.0%}"
    assert figures[1] == f"{bare.output['sentence_cosine']:.3f}"
    assert figures[2] == "{baseline:.3f} → {operated:.3f}".format(**bare.similarity)
    assert page.texts("li", class_="pn-notice") == ["One random draw: another seed gives other numbers."]
    top = bare.heads.nlargest(3, "js_divergence")
    opened = [json.loads(e[1]["data-action"]) for e in page.of("button")][-3:]
    assert opened == [
        {"do": "open", "layer": layer, "head": head}
        for layer, head in zip(top["layer"], top["head"], strict=True)
    ]


def test_an_untrained_model_says_so_and_an_answer_is_shown():
    untrained = models.load("encoder-untrained", device="cpu")
    masked = sg.compare(untrained, "the [MASK] chased the [MASK] zebra", sg.RemovePositions())
    page = Page(panels.verdict(masked, "en"))
    assert page.texts("li", class_="pn-caveat")[0].startswith("Untrained:")
    before, after = masked.baseline.predictions[0][0][0], masked.operated.predictions[0][0][0]
    assert page.texts("dd", class_="pn-words") == [f"{before} → {after}"]
    assert any("zebra" in notice for notice in page.texts("li", class_="pn-notice"))


def test_cut_text_is_told(encoder):
    html = panels.verdict(sg.compare(encoder, "the dog " * 60, sg.CausalMask()), "en")
    assert "kept 64 of 122 tokens" in html


def test_a_still_panel_has_no_buttons(bare, masked):
    for name in ("verdict", "heads", "outputs"):
        html = getattr(panels, name)(masked, "en", still=True)
        assert "<button" not in html
        assert "data-limit" not in html


# --- outputs ----------------------------------------------------------------------------------------------


def test_each_mask_has_its_answers_side_by_side(masked):
    html = panels.outputs(masked, "en")
    page = Page(html)
    assert [h for h in page.texts("h3") if h.startswith("Mask")] == ["Mask at token 2", "Mask at token 5"]
    before, after = masked.baseline.predictions[0], masked.operated.predictions[0]
    for rank, row in enumerate(rows(html)):
        assert row[0] == str(rank + 1)
        assert row[1] == f"{before[rank][0]} {before[rank][1]:.4f}"
        assert row[2].startswith(after[rank][0])
        assert row[2].endswith(f"{after[rank][1]:.4f}")
    site = masked.output["sites"][0]
    assert f"{site['kl']:.4f} nats" in page.texts("dd")


def test_an_infinite_divergence_is_a_word(masked):
    site = {**masked.output["sites"][0], "kl": math.inf}
    changed = replace(masked, output={**masked.output, "sites": [site, site]})
    assert "infinite nats" in Page(panels.outputs(changed, "en")).texts("dd")


def test_a_bare_encoder_shows_vectors_and_the_similarity(bare):
    html = panels.outputs(bare, "en")
    page = Page(html)
    assert "gives vectors" in html
    assert page.texts(class_="pn-figure") == [
        f"{bare.output[name]:.4f}" for name in ("sentence_cosine", "token_cosine", "relative_l2")
    ]
    strip = page.texts("li")
    assert strip == [
        f"{token}{cosine:.4f}"
        for token, cosine in zip(bare.tokens, bare.output["token_cosines"], strict=False)
    ]
    assert len(strip) == 7
    before, after = bare.similarity["baseline"], bare.similarity["operated"]
    assert rows(html)[0] == [f"{before:.4f}", f"{after:.4f}", f"{after - before:.4f}".replace("-", "−")]


def test_without_a_mask_the_model_s_own_mask_is_named(encoder):
    assert "write [MASK] where" in panels.outputs(sg.compare(encoder, "the dog", sg.Plan()), "en")


# --- heads, layers, receipt -------------------------------------------------------------------------------


def test_heads_are_all_there_the_most_changed_first(bare):
    html = panels.heads(bare, "en")
    table = rows(html)
    assert len(table) == 72
    ordered = bare.heads.sort_values("js_divergence", ascending=False, kind="stable")
    for shown, row in zip(table, ordered.to_dict("records"), strict=True):
        assert shown[0].startswith(f"L{row['layer']}.H{row['head']}")
        assert ("operated on" in shown[0]) == row["touched"]
        assert shown[1:3] == [number(row["js_divergence"], "en"), number(row["total_variation"], "en")]
        assert shown[3] == number(row["entropy_baseline"], "en", 3)
        assert shown[-1] == number(row["next_operated"], "en", 3)
    page = Page(html)
    assert len(page.of("tr", class_="pn-extra")) == 72 - 24
    assert [e[2].strip() for e in page.of("th", aria_sort="descending")] == ["JS divergence"]
    assert bare.top_head == (ordered.iloc[0]["layer"], ordered.iloc[0]["head"])


def test_what_is_undefined_is_a_dash(closed):
    assert rows(panels.heads(closed, "en"))[0][4] == "–"


def test_nothing_captured_is_said(encoder):
    comparison = sg.compare(encoder, "the dog", sg.CausalMask(), capture=None)
    assert "was not captured" in panels.heads(comparison, "en")
    assert "pn-figure" in panels.verdict(comparison, "en")
    assert "(4, 4, 4)" in panels.pipeline(comparison, "en")


def test_layers_have_their_drift(bare):
    table = rows(panels.layers(bare, "en"))
    assert [row[1:] for row in table] == [
        [number(v, "en") for v in row]
        for row in bare.layers[["cosine", "relative_l2", "cka"]].itertuples(index=False)
    ]
    assert table[0][0] == "0, embeddings"


def test_the_receipt_tells_what_is_owed_to_each_step(bare):
    page = Page(panels.receipt(bare, "en"))
    cards = page.texts("li")
    for card, entry in zip(cards, bare.receipt, strict=True):
        assert f"{entry['cells']} heads reached" in card
        assert number(entry["scores"], "en") in card
        assert percent(entry["weights"]) in card
        assert number(entry["result"], "en") in card
    assert "With these parameters it changes nothing." in cards[2]
    assert "changed nothing" not in cards[0]


def test_an_empty_plan_has_an_empty_receipt(encoder):
    assert "nothing to account for" in panels.receipt(sg.compare(encoder, "the dog", sg.Plan()), "en")


# --- charts -----------------------------------------------------------------------------------------------


def test_a_drift_chart_has_a_point_for_each_hidden_state(bare):
    page = Page(charts.drift(bare, "en"))
    assert len(page.of("svg", role="img")) == 3
    assert len(page.of("circle")) == 3 * 7
    assert all(e[2].strip() for e in page.of("title"))


def test_the_entropy_chart_draws_every_head_and_the_limit(bare, closed):
    page = Page(charts.entropy(bare, "en"))
    assert len(page.of("svg")) == len(page.of("path", class_="pn-limit")) == 6
    assert len(page.of("circle", class_="pn-before")) == len(page.of("circle", class_="pn-after")) == 72
    assert f"ln n = {math.log(7):.2f}" in page.texts("figcaption")[0]
    assert Page(charts.entropy(closed, "en")).of("circle", class_="pn-after") == []


# --- the pipeline -----------------------------------------------------------------------------------------


def stage_rows(html: str, stage: str) -> dict[str, list[str]]:
    part = html[html.index(f'data-keep="stage-{stage}"') :]
    return {row[0]: row[1:] for row in rows(part[: part.index("</details>")])}


def test_the_pipeline_has_this_run_s_shapes_and_its_operated_stages_lit(bare):
    html = panels.pipeline(bare, "en")
    page = Page(html)
    shapes = [re.search(r"\(.*?\)", text).group() for text in page.texts("span", class_="pn-shape")]
    square = "(12, 11, 11)"
    assert shapes == ["(11, 384)", "(12, 11, 32)", *[square] * 5, "(12, 11, 32)", "(11, 384)"]
    lit = [e[2] for e in page.of("li", class_="pn-lit")]
    assert len(lit) == 2
    assert "Drop the 1/√d_k scaling" in lit[0]
    assert "Change the softmax temperature" in lit[0]
    assert "Key dropout" in lit[1]
    assert {e[1]["name"] for e in page.of("details")} == {"pn-stages"}


@pytest.mark.parametrize(
    ("plan", "removed", "changed"),
    [
        (sg.Plan(sg.DropScaling()), {"Scale"}, set()),
        (sg.Plan(sg.RemovePositions()), {"Positions"}, set()),
        (sg.Plan(sg.SamePosition()), set(), {"Positions"}),
        (sg.Plan(sg.AblateHead()), {"Mix the values"}, set()),
        (sg.Plan(sg.LinearAttention()), {"Scale", "Softmax"}, {"Scores"}),
        (sg.Plan(sg.LocalMask(1), sg.WeightDropout(0.3, 0)), set(), {"Mask", "Weights"}),
        (sg.Plan(sg.Temperature(1.0), sg.DropScaling().at("none")), set(), set()),
    ],
)
def test_the_pipeline_strikes_out_what_is_removed_and_says_so(encoder, plan, removed, changed):
    html = panels.pipeline(sg.compare(encoder, "the dog chased the cat", plan), "en")
    said: dict[str, set[str]] = {"removed": set(), "changed": set(), "unchanged": set()}
    for part in re.findall("<summary>.*?</summary>", html, re.DOTALL):
        stage, name = Page(part), Page(part).texts("b")[0]
        words = {chip.partition(" ·")[0] for chip in stage.texts("span", class_="pn-lit-by")}
        for word in words:
            said[word].add(name)
        assert bool(stage.of("del")) == ("removed" in words)
        assert not stage.of("del") or stage.texts("del")[0] == name
    assert (said["removed"], said["changed"]) == (removed, changed)


def test_a_step_removed_in_some_heads_says_which_and_is_struck_out_only_there(bare):
    for head, struck in ((1, True), (2, False)):
        html = panels.pipeline(bare, "en", 0, head)
        assert Page(html).texts("span", class_="pn-lit-by")[:2] == [
            "removed in L0-3.H1,5 · Drop the 1/√d_k scaling",
            "unchanged · Change the softmax temperature",
        ]
        assert ("<del>Scale</del>" in html) == struck
    chips = Page(panels.pipeline(bare, "zh", 0, 1)).texts("span", class_="pn-lit-by")
    assert chips[0] == "在 L0-3.H1,5 去掉 · 去掉 1/√d_k 缩放"


def test_where_the_scale_is_replaced_no_factor_is_claimed(encoder):
    html = panels.pipeline(sg.compare(encoder, "the dog chased the cat", sg.LinearAttention()), "en")
    assert stage_rows(html, "scale") == {"factor on q·kᵀ": [number(16**-0.5, "en"), "–"]}


@pytest.mark.parametrize(("layer", "head", "factor"), [(0, 1, 1.0), (0, 2, 32**-0.5)])
def test_a_stage_shows_its_tensor_in_the_chosen_head(bare, layer, head, factor):
    html = panels.pipeline(bare, "en", layer, head)
    row = bare.heads[(bare.heads["layer"] == layer) & (bare.heads["head"] == head)].iloc[0]
    assert stage_rows(html, "scale") == {"factor on q·kᵀ": [number(32**-0.5, "en"), number(factor, "en")]}
    scores = stage_rows(html, "scores")
    for label, name in {
        "mean": "mean",
        "standard deviation": "std",
        "minimum": "min",
        "maximum": "max",
    }.items():
        assert scores[label] == [
            number(row[f"scores_{name}_{run}"], "en") for run in ("baseline", "operated")
        ]
    pairs = stage_rows(html, "mask")["permitted pairs of 49"]
    assert pairs == ["49", str(row["permitted_operated"])]
    assert int(pairs[1]) < 49
    assert stage_rows(html, "values")["root mean square"][0] == number(row["output_rms_baseline"], "en")


def test_the_pipeline_opens_on_the_head_that_changed_most(bare):
    layer, head = bare.top_head
    assert f"layer {layer}, head {head}." in panels.pipeline(bare, "en")
    assert (
        panels.pipeline(bare, "en")
        == panels.pipeline(bare, "en", 99, 99)
        == panels.pipeline(bare, "en", layer, head)
    )


# --- the plan being edited --------------------------------------------------------------------------------


def test_the_plan_lists_its_steps_with_their_actions(bare):
    listed = steps.from_plan(bare.plan)
    listed[1]["on"] = False
    page = Page(panels.plan(listed, 1, "en"))
    actions = [json.loads(e[1]["data-action"]) for e in page.of("button")]
    assert actions == [
        {"do": do, "step": i} for i in range(3) for do in ("select", "toggle", "up", "down", "remove")
    ]
    assert [e[1]["aria-checked"] for e in page.of("button", role="switch")] == ["true", "false", "true"]
    assert [i for i, e in enumerate(page.of("button", class_="pn-what")) if "aria-current" in e[1]] == [1]
    text = page.texts("li")
    assert "L0-3.H1,5" in text[0]
    assert "probability p = 0.3" in text[1]
    assert "all layers and heads" in text[1]
    disabled = [e[1]["data-action"] for e in page.of("button", aria_disabled="true")]
    assert [json.loads(action) for action in disabled] == [{"do": "up", "step": 0}, {"do": "down", "step": 2}]


def test_an_empty_plan_says_so():
    assert "No operation yet" in panels.plan([], None, "en")


# --- code -------------------------------------------------------------------------------------------------

ODD = 'It\'s a "dog" --and `$HOME` \\ <b> 狗\nsecond line'
CASES = {
    "plain": ("The dog bit the man", {}),
    "options": (ODD, {"other": "-v a cat", "pad_to": 40, "literal": True}),
    "dash": ("-x", {}),
    "hyphen": ("-", {}),
}


def blocks(case: str, plan: sg.Plan) -> tuple[str, dict, dict[str, str]]:
    text, options = CASES[case]
    page = Page(panels.code("encoder", text, plan, **options, lang="en"))
    return text, options, {e[1]["data-copied-text"]: e[2] for e in page.of("code")}


@pytest.fixture(scope="module")
def stochastic() -> sg.Plan:
    return sg.Plan(sg.KeyDropout(0.4, 7).at("L0.H1-2"), sg.Temperature(0.5))


@pytest.mark.parametrize("case", CASES)
def test_the_python_code_gives_these_numbers(encoder, stochastic, case, capsys):
    text, options, code = blocks(case, stochastic)
    expected = sg.compare(encoder, text, stochastic, **options)
    space: dict = {}
    exec(code["python"], space)
    assert space["c"].to_dict() == expected.to_dict()
    assert capsys.readouterr().out.strip() == expected.verdict()


@pytest.mark.parametrize("case", CASES)
def test_the_command_gives_these_numbers(encoder, stochastic, case):
    text, options, code = blocks(case, stochastic)
    expected = sg.compare(encoder, text, stochastic, **options)
    command = code["shell"].strip().replace("python ", f"{shlex.quote(sys.executable)} ") + " --json"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == json.loads(json.dumps(expected.to_dict()))


def test_the_json_is_the_plan(stochastic):
    assert sg.Plan.from_json(blocks("plain", stochastic)[2]["json"]) == stochastic


def test_a_pair_of_texts_has_no_command(stochastic):
    html = panels.code("encoder", ("a dog", "a cat"), stochastic, lang="en")
    assert "not a pair" in html
    assert "&#39;a dog&#39;, &#39;a cat&#39;" in html


def test_downloads_hold_the_same_text(stochastic):
    from urllib.parse import unquote

    page = Page(panels.code("encoder", ODD, stochastic, lang="en"))
    texts = [e[2] for e in page.of("code")]
    links = [unquote(e[1]["href"]).removeprefix("data:text/plain;charset=utf-8,") for e in page.of("a")]
    assert links == texts
    assert [e[1]["download"] for e in page.of("a")] == ["surgery.py", "surgery.sh", "plan.json"]


def test_a_panel_hands_on_plain_text():
    panel = Panel(render("nothing", "en", key="receipt.empty"), render=False)
    assert type(panel.postprocess(render("nothing", "en", key="receipt.empty"))) is str
    assert panel.postprocess(None) == ""
    assert panel.preprocess("<p>x</p>") == "<p>x</p>"
    assert panel.api_info()["type"] == "string"
