"""The gates of channel attention (models/channel.py): a bar for each channel, and for CBAM a map of the places."""

import numpy as np
from matplotlib.figure import Figure

from bilingual import SurgeryError, Words
from surgery.drawing import panels
from surgery.drawing.page import BODY, GREY, Page
from surgery.drawing.trends import BASELINE

CHANNEL, GATE = Words("channel", "通道"), Words("gate", "门")
CHANNELS = Words("what each channel is multiplied by", "每个通道所乘的数")
PLACES = Words("what each channel, and then each place, is multiplied by", "每个通道、然后每个位置所乘的数")
NOT_TOKENS = Words(
    "Channel attention: one number from 0 to 1 for each channel. No token attends to another, and nothing sums to 1.",
    "通道注意力：每个通道一个 0 到 1 之间的数。没有词元之间的注意力，也没有归一化为 1 的行。",
)


def gates(found: tuple, name: str, row: int = 0, lang: str = "en") -> Figure:
    """What `SE`, `ECA` or `CBAM(...).gates(x)` gave for one picture of the batch, under a title that begins with `name`.

    Raises SurgeryError if it is not (row, channel, 1, 1), or of places (row, 1, height, width).
    """
    arrays = [np.asarray(gate.detach().float().cpu()) for gate in found]
    fits = len(arrays) in (1, 2) and all(a.ndim == 4 and row < len(a) for a in arrays)
    if not fits or arrays[0].shape[2:] != (1, 1) or (len(arrays) == 2 and arrays[1].shape[1] != 1):
        raise SurgeryError(
            "These are no gates: give what SE, ECA or CBAM(channels).gates(x) returned, and a row of the batch.",
            "这不是门：请给 SE、ECA 或 CBAM(channels).gates(x) 的结果，以及批次中的一行。",
        )
    channel = arrays[0][row, :, 0, 0]
    places = arrays[1][row, 0] if len(arrays) == 2 else None
    page = Page(lang)
    page.note(NOT_TOKENS)
    width = float(np.clip(0.09 * len(channel), 3.6, 9.0))
    right = 0.0 if places is None else 3.4
    page.open(width + 0.7 + right, 2.6, name, CHANNELS if places is None else PLACES)
    bars = page.axes(0.55, 0.46, width, 1.95)
    bars.bar(range(len(channel)), channel, color=BASELINE, width=0.85)
    bars.set_ylim(0, 1)
    bars.set_xlim(-0.6, len(channel) - 0.4)
    bars.set_xlabel(page.say(CHANNEL), fontsize=BODY, color=GREY)
    bars.set_ylabel(page.say(GATE), fontsize=BODY, color=GREY)
    if places is not None:
        norm = panels.from_zero(np.ones(1))
        axes = page.axes(width + 1.0, 0.46, 1.95, 1.95)
        axes.imshow(places, norm=norm, cmap=panels.SEQUENTIAL, interpolation="nearest")
        axes.set_xticks([]), axes.set_yticks([])
        bar = page.axes(width + 3.05, 0.46, 0.12, 1.95)
        panels.colour_bar(bar, norm, panels.SEQUENTIAL, page.say(GATE), False)
    return page.close()
