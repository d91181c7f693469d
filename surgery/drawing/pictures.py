"""A query's weights laid over a picture."""

import numpy as np
from matplotlib.figure import Figure

from bilingual import SurgeryError, Words
from surgery.drawing import panels
from surgery.drawing.page import BODY, GREY, Page

SIDE = 2.6  # inches of a picture
PANELS = (Words("picture", "图像"), Words("baseline", "基线"), Words("operated", "手术后"))
WEIGHT = Words("weight of the query on a patch", "查询在图块上的权重")


def overlay(picture: np.ndarray, maps: list[np.ndarray], title: str, lang: str = "en") -> Figure:
    """A picture, and the same under one or two maps of weights on one colour scale (baseline, operated).

    picture: (height, width) or (height, width, 3), numbers from 0 to 1. maps: (patch row, patch column) each, as
    `surgery.patch_grid` gives them. Raises SurgeryError for other shapes.
    """
    picture, maps = np.asarray(picture), [np.asarray(each, dtype=float) for each in maps]
    right = picture.ndim == 2 or (picture.ndim == 3 and picture.shape[2] == 3)
    if not right or len(maps) not in (1, 2) or any(m.ndim != 2 or m.shape != maps[0].shape for m in maps):
        raise SurgeryError(
            "Give a picture (height, width) or (height, width, 3) and one or two maps (patch row, patch column) of one shape.",
            "请给出 (高, 宽) 或 (高, 宽, 3) 的图像，以及一到两张形状相同的 (图块行, 图块列) 权重图。",
        )
    page, norm = Page(lang), panels.from_zero(*maps)
    page.open(SIDE * (1 + len(maps)) + 0.9, SIDE + 0.3, title, WEIGHT)
    tall, wide = picture.shape[:2]
    for place, (words, each) in enumerate(zip(PANELS, [None, *maps], strict=False)):
        axes = page.axes(place * SIDE + 0.05, 0.05, SIDE - 0.1, SIDE - 0.1)
        axes.imshow(picture, cmap="gray", vmin=0, vmax=1, extent=(0, wide, tall, 0))
        if each is not None:
            axes.imshow(
                each,
                norm=norm,
                cmap=panels.SEQUENTIAL,
                alpha=0.65,
                extent=(0, wide, tall, 0),
                interpolation="nearest",
            )
        axes.set_title(page.say(words), fontsize=BODY, color=GREY)
        axes.set_xticks([]), axes.set_yticks([])
    bar = page.axes(SIDE * (1 + len(maps)) + 0.1, 0.05, 0.12, SIDE - 0.1)
    panels.colour_bar(bar, norm, panels.SEQUENTIAL, "")
    return page.close()
