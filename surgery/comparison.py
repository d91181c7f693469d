"""Everything measured on one text under one plan."""

import json
import math
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from bilingual import SurgeryError, Words
from surgery import metrics
from surgery.plan import Plan
from surgery.reading import Reading

UNCHANGED = 1e-5  # a relative change below this is float32 rounding


class NotCapturedError(SurgeryError):
    """Something that this comparison did not keep."""


@dataclass(frozen=True, eq=False)
class Run:
    """One of the two runs.

    weights: float32, (layer, head, query, key), of the captured `layers`, as they met the values: after dropout, if a
    WeightDropout acted. None if none were kept. no_key: bool, (layer, head, query), True where no key was permitted.
    hidden: (layer + 1, token, width), 0 is the embeddings. embedding: (width,), the mean of the real tokens' last vectors.
    predictions: for each [MASK], the next token, or the class: [(label, probability), ...].
    """

    layers: tuple[int, ...]
    weights: Tensor | None
    no_key: Tensor | None
    hidden: Tensor
    embedding: Tensor
    predictions: list[list[tuple[str, float]]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Baseline and operated, on the same weights, tokens and padding. Made by `compare`.

    heads: one row per (layer, head); divergences and entropies in nats, distances in tokens, masses as shares of weight; means
    over the real queries. layers: one row per hidden state, 0 = embeddings. receipt: per operation the cells it reached and
    what the result owes to it: mean |difference| of scores, share of weight moved, relative L2 of the heads' output and of
    the last hidden state. output: what changed at the end. similarity: of this and the `other` text, under each run.
    In `heads`, scores_mean, _std, _min and _max are of the scores of real query-key pairs, permitted counts those pairs that
    the masks let through, weight_max is the mean largest weight of a query, output_rms the root mean square of a head's output.
    kind and mask_token are the model's (see models.LoadedModel); d_k is the width of one of its heads_per_layer heads, scale the
    model's own factor on q·kᵀ.
    """

    model: str
    caveats: tuple[Words, ...]
    reading: Reading
    plan: Plan
    baseline: Run
    operated: Run
    heads: pd.DataFrame
    layers: pd.DataFrame
    receipt: list[dict[str, Any]]
    output: dict[str, Any]
    similarity: dict[str, float] | None = None
    other: Any = None
    kind: str = "encoder"
    mask_token: str | None = None
    heads_per_layer: int = 0
    scale: float = 1.0
    d_k: int = 0

    @property
    def text(self) -> Any:
        return self.reading.text

    @property
    def tokens(self) -> list[str]:
        """The tokens as a person reads them, padding included."""
        return list(self.reading.tokens)

    @property
    def truncated(self) -> bool:
        """Whether the text was cut to what the model takes."""
        return self.reading.truncated

    def notices(self, lang: str = "en") -> list[str]:
        """What a reader should know: caveats of the model, cut text, unknown tokens, closed rows, one draw."""
        said = [*self.caveats, *self.reading.notices]
        closed = [] if self.operated.no_key is None else self.operated.no_key.any(dim=(0, 1)).tolist()
        empty = sum(
            no_key for no_key, kind in zip(closed, self.reading.kinds, strict=False) if kind != "padding"
        )
        if empty:
            said.append(
                Words(
                    f"{empty} tokens have no permitted key in some head: weights and output 0 there.",
                    f"有 {empty} 个词元在某些头中没有允许的键：那里的权重和输出为 0。",
                )
            )
        if self.plan.stochastic:
            said.append(
                Words(
                    "One random draw: another seed gives other numbers.", "这是一次随机抽样：换种子数值会变。"
                )
            )
        return [words.say(lang) for words in said]

    def verdict(self, lang: str = "en") -> str:
        """What happened, in a sentence or two. lang: "en" or "zh"."""
        from surgery.verdict import verdict

        return verdict(self).say(lang)

    @property
    def top_head(self) -> tuple[int, int] | None:
        """The captured (layer, head) with the largest Jensen-Shannon divergence; None if no head was captured."""
        if self.heads.empty:
            return None
        top = self.heads.loc[self.heads["js_divergence"].fillna(-1.0).idxmax()]
        return int(top["layer"]), int(top["head"])

    def head(self, layer: int, head: int) -> pd.Series:
        """The row of `heads` of one captured head. Raises NotCapturedError for another one."""
        found = self.heads[(self.heads["layer"] == layer) & (self.heads["head"] == head)]
        if found.empty:
            raise NotCapturedError(
                f"Layer {layer} head {head} was not captured.", f"没有采集第 {layer} 层第 {head} 头。"
            )
        return found.iloc[0]

    def layer(self, layer: int) -> int:
        """Where a captured layer stands in `weights`. Raises NotCapturedError."""
        if layer in self.baseline.layers:
            return self.baseline.layers.index(layer)
        kept = ", ".join(map(str, self.baseline.layers)) or "none"
        raise NotCapturedError(
            f"The weights of layer {layer} were not kept; kept layers: {kept}. Capture it: capture=[{layer}] or 'all'.",
            f"没有保留第 {layer} 层的权重；保留的层：{kept}。请用 capture=[{layer}] 或 'all'。",
        )

    def heatmap(self, layer: int, head: int, lang: str = "en") -> Any:
        """A matplotlib Figure: baseline | operated | difference of one head.

        Raises SelectionError for a head that the model does not have, NotCapturedError for one that was not kept.
        """
        from surgery import figures

        return figures.heatmap(self, layer, head, lang)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for strict JSON: what is undefined is None, what is infinite is "infinite"."""
        return _plain(
            {
                "model": self.model,
                "text": self.text,
                "tokens": self.tokens,
                "kinds": list(self.reading.kinds),
                "truncated": self.truncated,
                "kept_tokens": self.reading.kept,
                "total_tokens": self.reading.total,
                "plan": self.plan.to_dict(),
                "verdict": {lang: self.verdict(lang) for lang in ("en", "zh")},
                "notices": {lang: self.notices(lang) for lang in ("en", "zh")},
                "output": self.output,
                "similarity": self.similarity,
                "predictions": {"baseline": self.baseline.predictions, "operated": self.operated.predictions},
                "receipt": self.receipt,
                "heads": self.heads.to_dict("records"),
                "layers": self.layers.to_dict("records"),
            }
        )

    def save(self, folder: str | os.PathLike, lang: str = "en") -> list[Path]:
        """Writes comparison.json, plan.json, heads.csv, layers.csv, weights.npz and figures (in `lang`) into `folder`.

        Nothing is half-written: each file is complete before it gets its name. Returns the paths. Raises OSError.
        """
        from surgery import figures

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as name:
            draft = Path(name)
            text = json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)
            (draft / "comparison.json").write_text(text, encoding="utf-8")
            (draft / "plan.json").write_text(self.plan.to_json(indent=1), encoding="utf-8")
            self.heads.to_csv(draft / "heads.csv", index=False)
            self.layers.to_csv(draft / "layers.csv", index=False)
            if self.baseline.weights is not None and self.operated.weights is not None:
                np.savez_compressed(
                    draft / "weights.npz",
                    baseline=self.baseline.weights.numpy(),
                    operated=self.operated.weights.numpy(),
                    layers=np.array(self.baseline.layers),
                    tokens=np.array(self.tokens),
                )
            for stem, figure in figures.everything(self, lang).items():
                figures.write(figure, draft / f"{stem}.png")
            return [path.replace(folder / path.name) for path in sorted(draft.iterdir())]


def _plain(value: Any) -> Any:
    if isinstance(value, Words):
        return value._asdict()
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "infinite"
    return value


def heads_table(changes: dict[int, dict[str, Tensor]], row: int, touched: frozenset) -> pd.DataFrame:
    """One row per (layer, head) from the captured changes of one text."""
    if not changes:
        return pd.DataFrame(columns=["layer", "head", "touched"])
    layers = sorted(changes)
    names = list(changes[layers[0]])
    table = {name: torch.stack([changes[layer][name][row] for layer in layers]) for name in names}
    cells = [(layer, head) for layer in layers for head in range(table[names[0]].shape[1])]
    return pd.DataFrame(
        {
            "layer": [layer for layer, _ in cells],
            "head": [head for _, head in cells],
            "touched": [cell in touched for cell in cells],
            **{name: values.flatten().numpy(force=True) for name, values in table.items()},
        }
    )


def layers_table(before: Tensor, after: Tensor) -> pd.DataFrame:
    """Drift through depth, from hidden states (layer + 1, token, width) of the real tokens."""
    return pd.DataFrame(
        {
            "layer": range(len(before)),
            "cosine": metrics.mean(metrics.cosine(before, after)).tolist(),
            "relative_l2": metrics.relative_l2(after.flatten(1), before.flatten(1)).tolist(),
            "cka": [float(metrics.linear_cka(a, b)) for a, b in zip(before, after, strict=True)],
        }
    )
