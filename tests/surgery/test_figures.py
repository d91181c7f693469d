import io
import math
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter

import surgery as sg
from surgery import figures
from surgery.comparison import Comparison, NotCapturedError, Run, layers_table
from surgery.drawing import fonts, panels
from surgery.reading import Reading

DOLLARS = ["$", "$$", "$5$", "US$5 and US$6", r"$\frac$", "\\", "a_b^c"]
NOTICE = "Some characters have no glyph"


# --- comparisons ------------------------------------------------------------------------------------------


def made(before, after=None, tokens=None, no_key=None, model="toy", plan=None, kinds=None) -> Comparison:
    """A comparison with exactly these weights: (query, key), or (layer, head, query, key)."""
    before = torch.as_tensor(before, dtype=torch.float32)
    after = before if after is None else torch.as_tensor(after, dtype=torch.float32)
    before, after = (w if w.ndim == 4 else w[None, None] for w in (before, after))
    layers, _, n, _ = before.shape
    tokens = tokens or [f"t{i}" for i in range(n)]
    reading = Reading(
        text="", ids=tuple(range(n)), segments=(0,) * n, tokens=tuple(tokens), kinds=kinds or ("word",) * n,
        separators=(False,) * n, masks=(), total=n, unknown=(), notices=(),
    )  # fmt: skip
    hidden = torch.randn(layers + 1, n, 5, generator=torch.Generator().manual_seed(0))

    def run(weights, closed):
        closed = torch.zeros(weights.shape[:-1], dtype=torch.bool) if closed is None else closed
        return Run(tuple(range(layers)), weights, closed, hidden, hidden[-1].mean(0))

    return Comparison(
        model=model, caveats=(), reading=reading, plan=plan or sg.Plan(), baseline=run(before, None),
        operated=run(after, no_key), heads=pd.DataFrame(), layers=layers_table(hidden, hidden), receipt=[], output={},
    )  # fmt: skip


def rows(n, seed=0):
    return torch.rand(n, n, generator=torch.Generator().manual_seed(seed)).softmax(-1)


@pytest.fixture(scope="module")
def real(minilm):
    plan = sg.Plan(sg.DropScaling().at("L0-3.H1,5"), sg.WeightDropout(0.3, 1).at("L4.H2"))
    return sg.compare(minilm, "The dog bit the man because he was angry", plan)


# --- reading a figure -------------------------------------------------------------------------------------


def maps(figure):
    """The axes with a picture, without the colour bars."""
    return [axes for axes in figure.axes if axes.images]


def bars(figure):
    return [axes for axes in figure.axes if not axes.images]


def drawn(figure, dpi=100) -> np.ndarray:
    """Its pixels, row 0 at the bottom."""
    figure.set_dpi(dpi)
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[::-1, :, :3].copy()


def pixel(figure, pixels, axes, x, y):
    column, row = axes.transData.transform((x, y))
    return pixels[int(row), int(column)] / 255


def png(figure) -> bytes:
    buffer = io.BytesIO()
    figures.write(figure, buffer, dpi=60)
    return buffer.getvalue()


def said(figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text))


# --- one head: colours are numbers ------------------------------------------------------------------------


FLAT, SHARP = [[0.51, 0.49], [0.49, 0.51]], [[0.98, 0.02], [0.02, 0.98]]


@pytest.mark.parametrize("one, other", [(FLAT, SHARP), (SHARP, FLAT)])
def test_both_runs_share_one_scale_and_look_different(one, other):  # C33
    figure = figures.heatmap(made(one, other), 0, 0)
    before, after, _ = maps(figure)
    for axes in (before, after):
        assert (axes.images[0].norm.vmin, axes.images[0].norm.vmax) == (0.0, pytest.approx(0.98))
    norm = before.images[0].norm
    assert norm(0.51) == pytest.approx(0.5204, abs=1e-4)
    assert norm(0.98) == pytest.approx(1.0)
    assert "0.98" in [t.get_text() for t in bars(figure)[0].get_yticklabels()]
    pixels = drawn(figure)
    seen = [pixel(figure, pixels, axes, 0.3, 0.3) for axes in (before, after)]
    assert np.abs(seen[0] - seen[1]).max() > 0.2


def test_the_difference_is_symmetric_about_zero():  # C33
    before = torch.full((2, 2), 0.5)
    figure = figures.heatmap(made(before, before + torch.tensor([[0.3, -0.05], [-0.05, -0.2]])), 0, 0)
    norm = maps(figure)[2].images[0].norm
    assert norm.vmax == pytest.approx(0.3) and norm.vmin == -norm.vmax
    assert norm(0.0) == 0.5
    ends = [t.get_text() for t in bars(figure)[1].get_yticklabels()]
    assert (ends[0], ends[-1]) == ("−0.3", "+0.3")
    assert "0" in ends


@pytest.mark.parametrize("lang, words", [("en", "no difference"), ("zh", "没有差别")])
def test_no_difference_is_flat_and_says_so(lang, words):  # C33
    figure = figures.heatmap(made([[0.5, 0.5], [0.5, 0.5]]), 0, 0, lang)
    axes = maps(figure)[2]
    assert words in [text.get_text() for text in axes.texts]
    pixels = drawn(figure)
    seen = [pixel(figure, pixels, axes, x, y) for x in (-0.3, 1.3) for y in (-0.3, 1.3)]
    assert np.allclose(seen, panels.DIVERGING(0.5)[:3], atol=2 / 255)


def test_differences_of_rounding_are_not_stretched():
    w = rows(3)
    figure = figures.heatmap(made(w, w + torch.tensor([[1e-6, -1e-6, 0]] * 3)), 0, 0)
    assert maps(figure)[2].images[0].norm.vmax == pytest.approx(panels.TINY)
    assert "All differences are below 0.0001" in said(figure)


def test_every_cell_has_the_colour_of_its_number():
    before, after = rows(13), rows(13, 1)
    figure = figures.heatmap(made(before, after), 0, 0)
    pixels = drawn(figure)
    for axes, values in zip(maps(figure), (before, after, after - before), strict=True):
        image, values = axes.images[0], values.numpy()
        for (query, key), value in np.ndenumerate(values):
            wanted = image.cmap(image.norm(value))[:3]
            assert np.allclose(pixel(figure, pixels, axes, key, query), wanted, atol=2 / 255), (query, key)


def test_not_a_number_and_infinity_have_their_own_colour():
    after = rows(13)
    after[2, 3], after[4, 5] = math.nan, math.inf
    figure = figures.heatmap(made(rows(13), after), 0, 0)
    pixels = drawn(figure)
    for axes in maps(figure)[1:]:
        for query, key in ((2, 3), (4, 5)):
            assert np.allclose(pixel(figure, pixels, axes, key, query), to_rgb(panels.NAN), atol=2 / 255)
    assert "not a number" in said(figure)
    assert maps(figure)[1].images[0].norm.vmax < 1


def test_weights_that_are_all_zero_are_drawn():
    assert png(figures.heatmap(made(torch.zeros(3, 3)), 0, 0)).startswith(b"\x89PNG")


# --- one head: labels and numbers -------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 13, 30, 64])
def test_label_i_sits_on_the_centre_of_cell_i(n):
    tokens = [f"word{i}" for i in range(n)]
    figure = figures.heatmap(made(rows(n), tokens=tokens), 0, 0)
    figure.canvas.draw()
    for index, axes in enumerate(maps(figure)):
        assert list(axes.get_xticks()) == list(axes.get_yticks()) == list(range(n))
        assert [t.get_text() for t in axes.get_xticklabels()] == tokens
        if index != 1:
            assert [t.get_text() for t in axes.get_yticklabels()] == tokens
        for i, tick in enumerate(axes.yaxis.get_major_ticks()):
            cell = axes.transData.transform((0, i))[1]
            assert tick.tick1line.get_transform().transform((0, tick.get_loc()))[1] == pytest.approx(cell)
        labels = [t.get_window_extent() for t in axes.get_yticklabels() if t.get_text()]
        for i, box in enumerate(labels):
            cell = abs(np.diff(axes.transData.transform([(0, i), (0, i + 1)])[:, 1])[0])
            assert abs((box.y0 + box.y1) / 2 - axes.transData.transform((0, i))[1]) < max(2, 0.3 * cell)


@pytest.mark.parametrize("n", [6, 12, 30, 64])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_labels_overlap_and_none_leaves_the_figure(n, lang):
    tokens = [["[CLS]", "extraordinarily", "注意力机制", "i", "##ing"][i % 5] for i in range(n)]
    plan = sg.Plan(*[sg.LocalMask(1).at("L0")] * 12)
    no_key = torch.zeros(1, 1, n, dtype=torch.bool)
    no_key[..., -1] = True
    figure = figures.heatmap(made(rows(n), tokens=tokens, no_key=no_key, plan=plan), 0, 0, lang)
    figure.canvas.draw()
    page = figure.bbox
    boxes = []
    for text in figure.findobj(Text):
        if not text.get_text().strip() or not text.get_visible():
            continue
        box = text.get_window_extent()
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1, text
        if text.get_rotation() != 45:  # its box is not its ink
            boxes.append((text.get_text(), box))
    for i, (one, a) in enumerate(boxes):
        for other, b in boxes[i + 1 :]:
            over = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
            assert min(over) < 1.5, (one, other, over)


def test_beyond_64_tokens_labels_are_thinned_and_it_says_so():
    figure = figures.heatmap(made(rows(130)), 0, 0)
    axes = maps(figure)[0]
    assert list(axes.get_xticks()) == list(range(0, 130, 3))
    assert axes.get_xticklabels()[2].get_text() == "t6"
    assert "One token in 3 is labelled." in said(figure)


def test_numbers_stand_in_up_to_12_tokens():
    w = torch.eye(12) * 0.875 + 0.0001
    w[3, 4] = 0
    texts = {(t.get_position()): t.get_text() for t in maps(figures.heatmap(made(w), 0, 0))[0].texts}
    assert (texts[0, 0], texts[1, 0], texts[4, 3]) == (".88", ".00", "0")
    assert not maps(figures.heatmap(made(rows(13)), 0, 0))[0].texts


@pytest.mark.parametrize(
    "value, sign, spelled",
    [(0, True, "0"), (1, False, "1"), (0.999, False, "1"), (0.5, False, ".50"), (1.25, False, "1.25"),
     (0.3, True, "+.30"), (-0.05, True, "−.05"), (-1e-6, True, ".00"), (12.34, False, "12.3"), (-123.4, True, "−123")],
)  # fmt: skip
def test_short_numbers(value, sign, spelled):
    assert panels.short(value, sign) == spelled


def test_title_names_model_layer_head_plan_and_axes(real):
    text = said(figures.heatmap(real, 2, 5))
    for words in ("minilm", "layer 2, head 5", real.plan.describe("en"), "query", "key", "attention weight"):
        assert words in text
    text = said(figures.heatmap(real, 2, 5, "zh"))
    for words in ("第 2 层，第 5 头", "查\n询", "键", "基线", "手术后", "注\n意\n力\n权\n重"):
        assert words in text


def test_weights_after_dropout_are_called_so(real):
    assert "weights after dropout" in said(figures.heatmap(real, 4, 2))
    assert "weights after dropout" not in said(figures.heatmap(real, 4, 3))
    assert "Dropout 之后的权重" in said(figures.heatmap(real, 4, 2, "zh"))


def test_rows_with_no_permitted_key_are_hatched_and_named(minilm):  # C01
    c = sg.compare(minilm, "the cat", sg.LocalMask(1).at("L1"), pad_to=7)
    closed = c.operated.no_key[1, 3].nonzero().flatten().tolist()
    assert closed == [5, 6]
    figure = figures.heatmap(c, 1, 3)
    marked = [
        [p.get_y() + 0.5 for p in axes.patches if isinstance(p, Rectangle) and p.get_hatch()]
        for axes in maps(figure)
    ]
    assert marked == [[], closed, closed]
    assert "no permitted key" in said(figure)
    assert "没有允许的键" in said(figures.heatmap(c, 1, 3, "zh"))
    assert "no permitted key" not in said(figures.heatmap(c, 0, 3))
    assert "no permitted key" in said(figures.all_heads(c, "operated"))
    png(figure)


# --- text is literal and can be drawn ---------------------------------------------------------------------


@pytest.mark.parametrize("token", DOLLARS)
def test_dollars_are_drawn_literally(token):  # C30
    c = made(rows(3), tokens=[token, "a", "b"], model=token)
    figure = figures.heatmap(c, 0, 0)
    for text in figure.findobj(Text):
        assert not text.get_parse_math()
    assert fonts.label(token)[0] in [t.get_text() for t in maps(figure)[0].get_xticklabels()]
    assert token in figure.texts[0].get_text()
    assert png(figure).startswith(b"\x89PNG")
    svg = io.BytesIO()
    figures.write(figure, svg, format="svg")
    assert b"</svg>" in svg.getvalue()


def test_dollars_equal_their_escaped_form_pixel_by_pixel():  # C30
    c = made(rows(3), tokens=["$5$", "a", "b"], model="$5$")
    ours, escaped = figures.heatmap(c, 0, 0), figures.heatmap(c, 0, 0)
    for text in escaped.findobj(Text):
        text.set_parse_math(True)
        text.set_text(text.get_text().replace("$", r"\$"))
    for axes in maps(escaped):
        for axis in (axes.xaxis, axes.yaxis):
            seq = [s.replace("$", r"\$") for s in axis.get_major_formatter().seq]
            axis.set_major_formatter(FixedFormatter(seq))
            for text in axis.get_ticklabels():
                text.set_parse_math(True)
    assert np.array_equal(drawn(ours), drawn(escaped))


def test_text_added_later_is_literal_too():
    figure = figures.heatmap(made(rows(3)), 0, 0)
    figure.axes[0].set_title(r"$\frac$ 你好")
    png(figure)


ODD = [
    "你好",
    "한국",
    "日本",
    "𠮷",
    "\U0001f9ec",
    "שלום",
    "a\tb\x00",
    "\U0001f600",
    "ไทย",
    "हिन्दी",
    "\ud83d",
    " ",
    "\u202e",
]


def test_any_script_is_drawn_without_a_warning(recwarn):  # C31; warnings are errors
    figure = figures.heatmap(made(rows(len(ODD)), tokens=ODD), 0, 0)
    png(figure)
    assert not recwarn.list
    labels = [t.get_text() for t in maps(figure)[0].get_xticklabels()]
    assert labels[0] == "你好" and labels[2] == "日本" and labels[5] == "שלום"
    assert labels[4] == "U+1F9EC" and labels[6] == r"a\tb\x00" and labels[10:] == [r"\ud83d", "␣", r"\u202e"]
    assert sum(NOTICE in text.get_text() for text in figure.texts) == 1


def test_no_notice_where_nothing_is_missing(real):
    assert NOTICE not in said(figures.heatmap(real, 0, 0))


def test_without_chinese_fonts_labels_fall_back_to_codes(monkeypatch, recwarn):  # C31
    monkeypatch.setattr(fonts, "_chinese", lambda: [])
    fonts._register.cache_clear()
    try:
        figure = figures.heatmap(made(rows(len(ODD)), tokens=ODD), 0, 0, "zh")
        labels = [t.get_text() for t in maps(figure)[0].get_xticklabels()]
        assert labels[0] == "U+4F60 U+597D"
        assert "U+" in figure.texts[-1].get_text()
        png(figure)
    finally:
        fonts._register.cache_clear()
    assert not recwarn.list


def test_a_chinese_font_is_there_and_draws():
    assert len(fonts.families()) >= 2 and fonts.has("你")
    one, other = (drawn(figures.heatmap(made(rows(2), tokens=[t, "b"]), 0, 0)) for t in "你我")
    assert one.shape == other.shape and not np.array_equal(one, other)  # two boxes would be equal


def test_the_chinese_font_is_found_in_its_wheel_without_running_it():
    path = fonts._in_wheel()
    assert path is not None and path.is_file() and "pylopdf_fonts_zh_cn" not in sys.modules


def test_a_font_known_to_matplotlib_serves_if_no_file_is_found(monkeypatch):
    monkeypatch.setattr(fonts, "_in_wheel", lambda: None)
    monkeypatch.setattr(fonts, "_DEBIAN", ())
    monkeypatch.setattr(fonts, "_ELSEWHERE", ("No Such Font", "DejaVu Serif", "DejaVu Sans"))
    assert [path.rsplit("/", 1)[-1].split("-")[0].removesuffix(".ttf") for path in fonts._chinese()] == [
        "DejaVuSerif"
    ]


def test_long_labels_end_in_an_ellipsis():
    assert fonts.label("internationalization") == ("international…", False)
    assert fonts.label("fourteen chars") == ("fourteen chars", False)


def test_lines_break_at_words_and_between_chinese_characters():
    assert fonts.wrap("one two three", 8) == ["one two", "three"]
    assert fonts.wrap("注意力机制", 6) == ["注意力", "机制"]
    assert fonts.wrap("a b c d e f", 2, lines=2)[-1].endswith("…")
    assert all(fonts.columns_of(line) <= 42 for line in fonts.wrap("x" * 200, 40, lines=9))


# --- all heads --------------------------------------------------------------------------------------------


def test_thumbnails_are_the_numbers():
    values = torch.rand(2, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    c = made(values, plan=sg.Plan(sg.CausalMask().at("L1.H2")))
    figure = figures.all_heads(c, "baseline")
    (axes,) = maps(figure)
    pixels = drawn(figure, dpi=150)
    norm = panels.from_zero(values.numpy())
    assert list(axes.get_xticks()) == [0, 1, 2] and list(axes.get_yticks()) == [0, 1]
    share = 1 - panels.GAP / (panels.GAP + 5 * panels.thumbnail_size(2, 3, 5)[1])
    for (layer, head, query, key), value in np.ndenumerate(values.numpy()):
        x, y = (at + ((i + 0.5) / 5 - 0.5) * share for at, i in ((head, key), (layer, query)))
        wanted = panels.SEQUENTIAL(norm(value))[:3]
        assert np.allclose(pixel(figure, pixels, axes, x, y), wanted, atol=2 / 255)


def test_baseline_and_operated_share_the_thumbnails_scale():
    c = made(torch.full((1, 1, 2, 2), 0.5), torch.tensor([[[[0.9, 0.1], [0.1, 0.9]]]]))
    for which in ("baseline", "operated"):
        ticks = [t.get_text() for t in bars(figures.all_heads(c, which))[0].get_yticklabels()]
        assert (ticks[0], ticks[-1]) == ("0", "0.9")
    ticks = [t.get_text() for t in bars(figures.all_heads(c, "difference"))[0].get_yticklabels()]
    assert (ticks[0], ticks[-1]) == ("−0.4", "+0.4")


def test_long_texts_show_the_strongest_weight_of_a_block_and_say_so():
    values = np.zeros((1, 1, 300, 300), np.float32)
    values[0, 0, 7, 11], values[0, 0, 200, 5] = 0.5, -0.75
    small = panels.furthest(values, 3)
    assert small.shape == (1, 1, 100, 100)
    assert small[0, 0, 2, 3] == 0.5 and small[0, 0, 66, 1] == -0.75 and np.count_nonzero(small) == 2
    assert "One pixel is 3 × 3 weights" in said(figures.all_heads(made(values), "baseline"))


def test_no_difference_between_any_heads():
    assert "no difference" in said(figures.all_heads(made(torch.ones(2, 2, 3, 3) / 3), "difference"))


def test_144_heads_in_one_picture(capsys):
    c = made(torch.rand(12, 12, 32, 32).softmax(-1))
    figures.all_heads(c)
    started = time.perf_counter()
    figure = figures.all_heads(c, "baseline")
    made_in = time.perf_counter() - started
    png(figure)
    with capsys.disabled():
        print(
            f"\n12 x 12 heads of 32 tokens: {made_in:.3f} s, {time.perf_counter() - started:.3f} s with PNG"
        )
    assert len(maps(figure)) == 1


# --- measures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["js_divergence", "entropy_operated", "output"])
def test_a_measure_of_every_head(real, measure):
    figure = figures.heads(real, measure)
    (axes,) = maps(figure)
    shown = np.asarray(axes.images[0].get_array())
    table = real.heads
    for layer, head, value in zip(table["layer"], table["head"], table[measure], strict=True):
        assert shown[layer, head] == pytest.approx(value)
    assert figures.MEASURES[measure].en in said(figure)
    assert figures.MEASURES[measure].zh in said(figures.heads(real, measure, "zh"))


def test_every_measure_has_words_in_both_languages(real):
    columns = set(real.heads) - {"layer", "head", "touched"}
    assert columns <= set(figures.MEASURES)


def test_a_measure_with_negative_values_is_symmetric_about_zero(real):
    figure = figures.heads(real, "scores_mean_baseline")
    norm = maps(figure)[0].images[0].norm
    assert norm.vmin == -norm.vmax == -np.abs(real.heads["scores_mean_baseline"]).max()


def test_heads_operated_on_are_outlined(real):
    lines = [
        segment
        for collection in maps(figures.heads(real))[0].collections
        if collection.get_linewidth()[0] == 1.6
        for segment in np.asarray(collection.get_segments()).round(1).tolist()
    ]
    touched = np.zeros((6, 12), bool)
    touched[:4, [1, 5]] = touched[4, 2] = True
    wanted = 0
    for layer, head in np.argwhere(touched):
        sides = {
            (layer - 1, head): [[head - 0.5, layer - 0.5], [head + 0.5, layer - 0.5]],
            (layer + 1, head): [[head - 0.5, layer + 0.5], [head + 0.5, layer + 0.5]],
            (layer, head - 1): [[head - 0.5, layer - 0.5], [head - 0.5, layer + 0.5]],
            (layer, head + 1): [[head + 0.5, layer - 0.5], [head + 0.5, layer + 0.5]],
        }
        for (row, column), segment in sides.items():
            beyond = row < 0 or not touched[row, column]
            assert (segment in lines) == beyond
            wanted += beyond
    assert len(lines) == wanted


def test_entropy_marks_the_maximum_and_shows_every_head(real):
    figure = figures.entropy(real)
    left, right = figure.axes
    (line,) = [line for line in left.lines if "uniform" in line.get_label()]
    assert line.get_ydata()[0] == pytest.approx(math.log(len(real.tokens)))
    shown = np.concatenate([c.get_offsets()[:, 1] for c in left.collections if len(c.get_offsets()) > 1])
    wanted = np.concatenate([real.heads["entropy_baseline"], real.heads["entropy_operated"]])
    assert np.allclose(np.sort(shown), np.sort(wanted))
    assert left.get_ylim()[0] == right.get_ylim()[0] == 0
    assert f"uniform: ln {len(real.tokens)}" in said(figure)
    assert "熵（nats）" in said(figures.entropy(real, "zh"))


def test_undefined_entropy_is_named(minilm):  # nothing left to attend to
    c = sg.compare(minilm, "the cat", sg.CustomMask(["0000"] * 4).at("L2.H3,4"))
    assert c.heads["entropy_operated"].isna().sum() == 2
    assert "No entropy is defined for 2 heads (no permitted key): L2.H3-4" in said(figures.entropy(c))
    assert "undefined" in said(figures.heads(c, "entropy_operated"))
    for figure in figures.everything(c).values():
        png(figure)


def test_drift_shows_the_layers_table(real):
    figure = figures.drift(real)
    shown = [line.get_ydata() for axes in figure.axes for line in axes.lines]
    for values, name in zip(shown, ("cosine", "cka", "relative_l2"), strict=True):
        assert np.array_equal(values, real.layers[name])
    left, right = figure.axes
    assert left.get_ylim()[0] <= 0.9 and left.get_ylim()[1] == 1.0  # small changes look small
    assert right.get_ylim()[0] == 0 and right.get_ylim()[1] >= 0.1
    assert "0 = embeddings" in said(figure) and "0 = 嵌入" in said(figures.drift(real, "zh"))


# --- what there is ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "capture, stems",
    [
        ("all", ["drift", "heads", "entropy", "all_heads_baseline", "all_heads_operated", "all_heads_difference"]),
        ([1, 4], ["drift", "heads", "entropy", "all_heads_baseline", "all_heads_operated", "all_heads_difference"]),
        ("stats", ["drift", "heads", "entropy"]),
        (None, ["drift"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_everything_that_was_captured(minilm, capture, stems, lang):
    c = sg.compare(minilm, "The dog bit the man", sg.Temperature(3.0).at("L1.H2"), capture=capture)
    found = figures.everything(c, lang)
    assert list(found)[: len(stems)] == stems
    assert list(found)[len(stems) :] == (["heatmap_L1_H2"] if c.baseline.weights is not None else [])
    for figure in found.values():
        assert png(figure).startswith(b"\x89PNG")


def test_captured_layers_keep_their_numbers(minilm):
    c = sg.compare(minilm, "The dog bit the man", sg.CausalMask().at("L4.H2"), capture=[2, 4])
    for figure in (figures.heads(c), figures.all_heads(c, "operated")):
        assert [t.get_text() for t in maps(figure)[0].get_yticklabels()] == ["2", "4"]
    shown = np.asarray(maps(figures.heatmap(c, 4, 2))[1].images[0].get_array())
    assert np.array_equal(shown, c.operated.weights[1, 2].numpy())
    with pytest.raises(NotCapturedError, match="layer 3 were not kept"):
        figures.heatmap(c, 3, 0)


def test_what_is_not_there_is_refused_by_name(minilm, real):
    with pytest.raises(sg.SelectionError, match="Head 12 does not exist in minilm: heads are 0-11"):
        figures.heatmap(real, 0, 12)
    with pytest.raises(sg.SelectionError, match="Layer 6 does not exist in minilm: layers are 0-5"):
        figures.heatmap(real, 6, 0)
    for layer, head in ((-1, 0), (0, -1)):
        with pytest.raises(sg.SelectionError):
            figures.heatmap(real, layer, head)
    with pytest.raises(sg.SurgeryError, match="choose one of js_divergence"):
        figures.heads(real, "layer")
    with pytest.raises(sg.SurgeryError, match="choose one of baseline, operated, difference"):
        figures.all_heads(real, "both")
    bare = sg.compare(minilm, "the cat", capture=None)
    for draw in (figures.heads, figures.entropy, figures.all_heads, lambda c: figures.heatmap(c, 0, 0)):
        with pytest.raises(NotCapturedError):
            draw(bare)


def test_save_writes_the_figures(real, tmp_path):
    names = {path.name for path in real.save(tmp_path)}
    assert {"drift.png", "heads.png", "entropy.png", "all_heads_difference.png"} <= names


def test_format_is_read_from_the_name(tmp_path):
    figure = figures.heatmap(made(rows(2)), 0, 0)
    figures.write(figure, tmp_path / "a.svg")
    figures.write(figure, tmp_path / "a.png")
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


# --- safe in a server -------------------------------------------------------------------------------------


def test_48_pictures_from_8_threads_are_right():
    cases = [made(rows(n, n), tokens=[f"${n}$", "你好", *"abcdefg"][:n]) for n in range(2, 8)]
    wanted = [png(figures.heatmap(c, 0, 0)) for c in cases]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: png(figures.heatmap(cases[i % 6], 0, 0)), range(48)))
    assert sum(found[i] != wanted[i % 6] for i in range(48)) == 0


def test_statistics_from_4_threads_are_right(real):
    wanted = {lang: png(figures.entropy(real, lang)) for lang in ("en", "zh")}
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: png(figures.entropy(real, ("en", "zh")[i % 2])), range(8)))
    assert all(found[i] == wanted[("en", "zh")[i % 2]] for i in range(8))


def test_drawing_leaves_settings_and_random_numbers_alone(real):
    import matplotlib

    settings, state = dict(matplotlib.rcParams), np.random.get_state()[1].copy()
    for figure in figures.everything(real).values():
        png(figure)
    assert dict(matplotlib.rcParams) == settings
    assert np.array_equal(np.random.get_state()[1], state)


def test_no_figure_is_left_in_pyplot(real):
    figures.everything(real)
    import matplotlib.pyplot as plt  # seaborn imports it

    assert plt.get_fignums() == []


def test_maps_are_drawn_without_pyplot():
    code = """
import sys, io, surgery as sg
from models import load
from surgery import figures
c = sg.compare(load("minilm", device="cpu"), "the cat", sg.CausalMask())
for figure in (figures.heatmap(c, 0, 0), figures.all_heads(c), figures.heads(c), figures.drift(c)):
    figures.write(figure, io.BytesIO())
print("matplotlib.pyplot" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- channel attention --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ["SE", "ECA", "CBAM"])
def test_the_gates_of_channel_attention_are_drawn(name, lang):
    from models import channel

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        block, x = getattr(channel, name)(32), torch.randn(2, 32, 5, 7)
    with torch.no_grad():
        found = block.gates(x)
    figure = figures.gates(found, name, row=1, lang=lang)
    bars = figure.axes[0]
    assert [round(bar.get_height(), 5) for bar in bars.patches] == [
        round(float(gate), 5) for gate in found[0][1, :, 0, 0]
    ]
    assert bars.get_ylim() == (0, 1) and name in figure.texts[0].get_text()
    if name == "CBAM":
        assert np.allclose(figure.axes[1].images[0].get_array(), found[1][1, 0].detach().numpy())
    said = " ".join(text.get_text() for text in figure.texts)
    assert ("attends to another" if lang == "en" else "通道注意力") in said
    figures.write(figure, io.BytesIO(), "png")


def test_what_is_no_gate_is_refused():
    from bilingual import SurgeryError

    for wrong in ((), (torch.ones(1, 3),), (torch.ones(1, 3, 2, 2),), (torch.ones(1, 3, 1, 1),) * 2):
        with pytest.raises(SurgeryError, match="no gates") as caught:
            figures.gates(wrong, "SE")
        assert "门" in caught.value.say("zh")
