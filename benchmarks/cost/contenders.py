"""What each peer is asked to do, in its own words. Runs in the peer's environment: needs torch, transformers and the peer.

    python benchmarks/cost/contenders.py PEER SHAPE OUT

writes a table of ratios to the stock model of the same process. Every contender does the same four things: nothing; scores
at temperature 2 in every head; one head off; every layer's attention weights.
"""

import copy
import logging
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch

from benchmarks.cost import patients
from benchmarks.cost.measure import operations, python_calls, ratio, seconds
from benchmarks.cost.table import Row, Table
from benchmarks.cost.truth import Judge

TOKENS, LAYER, HEAD = 32, 1, 2
BUDGET, LEAST, MOST = 1.0, 5, 61  # seconds and turns of a row

Act = Callable[[], Any]  # gives what is judged, or (that, weights by layer)


class Contender:
    """A model of random weights and what is asked of it. rows: (name, reference, act, what it is to float64)."""

    model_class = "BertModel"

    def __init__(self, shape: str):
        import transformers

        self.model = patients.shaped(shape, getattr(transformers, self.model_class))
        self.prepare()
        self.stock = patients.twin(self.model)
        self.eager = patients.twin(self.model, "eager")
        self.config = self.model.config
        self.layers, self.width = self.config.num_hidden_layers, self.config.hidden_size
        self.d_k = self.width // self.config.num_attention_heads
        self.ids = patients.ids(TOKENS, self.config.vocab_size)
        self.slice = slice(HEAD * self.d_k, (HEAD + 1) * self.d_k)
        self.judge = Judge(self.stock, self.ids)

    def prepare(self) -> None:
        """Before the twins are made."""

    @staticmethod
    def end(out: Any) -> torch.Tensor:
        """Of what a model returns, what is judged."""
        return out.last_hidden_state

    def plain(self) -> Any:
        return self.end(self.stock(self.ids))

    def maps(self) -> Any:
        out = self.eager(self.ids, output_attentions=True)
        return self.end(out), out.attentions

    def asked(self) -> list[tuple[str, Act, Act, dict]]:
        heads = self.config.num_attention_heads
        off = np.ones((1, heads, 1, 1))
        off[:, HEAD] = 0
        softer = {"cuts": {n: {"temperature": 2.0} for n in range(self.layers)}}
        without = {"cuts": {LAYER: {"output_factor": off}}}
        changes = {"temperature": softer, "head": without}
        rows = [
            ("control: stock / stock", self.plain, self.plain, {}),
            ("stock eager with output_attentions / stock", self.plain, self.maps, {}),
        ]
        for name, kind, act in self.deeds():
            rows.append((f"{name} / stock", self.plain, act, changes.get(kind, {})))
        return rows

    def deeds(self) -> list[tuple[str, str, Act]]:
        """(name, "none", "temperature", "head" or "capture", act)."""
        raise NotImplementedError


class Nnsight(Contender):
    def prepare(self) -> None:
        from nnsight import NNsight

        self.traced = NNsight(patients.twin(self.model))
        self.traced_eager = NNsight(patients.twin(self.model, "eager"))

    def nothing(self) -> Any:
        with self.traced.trace(self.ids):
            end = self.traced.output.last_hidden_state.save()
        return end

    def softer(self) -> Any:
        with self.traced.trace(self.ids):
            for layer in self.traced.encoder.layer:
                layer.attention.self.query.output = layer.attention.self.query.output / 2
            end = self.traced.output.last_hidden_state.save()
        return end

    def without(self) -> Any:
        with self.traced.trace(self.ids):
            self.traced.encoder.layer[LAYER].attention.self.output[0][..., self.slice] = 0
            end = self.traced.output.last_hidden_state.save()
        return end

    def capture(self) -> Any:
        import nnsight

        with self.traced_eager.trace(self.ids):
            kept = nnsight.save([layer.attention.self.output[1] for layer in self.traced_eager.encoder.layer])
            end = self.traced_eager.output.last_hidden_state.save()
        return end, kept

    def deeds(self) -> list[tuple[str, str, Act]]:
        return [
            ("a trace that does nothing", "none", self.nothing),
            ("temperature 2 (query.output / 2)", "temperature", self.softer),
            ("one head off (self.output[0])", "head", self.without),
            ("capture of all weights (eager, self.output[1])", "capture", self.capture),
        ]


class Pyvene(Contender):
    def intervened(self, model: Any, *interventions: tuple[str, Callable]) -> Any:
        import pyvene

        chosen = [{"component": where, "intervention": act} for where, act in interventions]
        return pyvene.IntervenableModel(chosen, model=patients.twin(model))

    def run(self, model: Any, **options: Any) -> Any:
        return model(base={"input_ids": self.ids, **options})[1]

    def deeds(self) -> list[tuple[str, str, Act]]:
        def same(base, source=None, *args, **kwargs):
            return base

        def halved(base, source=None, *args, **kwargs):
            return base / 2

        def silent(base, source=None, *args, **kwargs):
            base = base.clone()
            base[..., self.slice] = 0
            return base

        place = "embeddings.position_embeddings.output"
        nothing = self.intervened(self.model, (place, same))
        seen = self.intervened(self.eager, (place, same))
        queries = [(f"encoder.layer[{n}].attention.self.query.output", halved) for n in range(self.layers)]
        softer = self.intervened(self.model, *queries)
        # what goes into the output projection is the heads side by side
        without = self.intervened(
            self.model, (f"encoder.layer[{LAYER}].attention.output.dense.input", silent)
        )

        def capture() -> Any:
            out = self.run(seen, output_attentions=True)
            return out.last_hidden_state, out.attentions

        return [
            ("one intervention that changes nothing", "none", lambda: self.end(self.run(nothing))),
            ("temperature 2 (query.output / 2)", "temperature", lambda: self.end(self.run(softer))),
            ("one head off (output.dense.input)", "head", lambda: self.end(self.run(without))),
            ("capture of all weights (eager, output_attentions)", "capture", capture),
        ]


class TransformerLens(Contender):
    """Its bridge takes a masked language model; with a vocabulary of 8 words the head at the end costs next to nothing."""

    model_class = "BertForMaskedLM"

    def prepare(self) -> None:
        from transformer_lens.model_bridge import TransformerBridge

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(2)
            decoder = torch.nn.Linear(self.model.config.hidden_size, 8).requires_grad_(False)
        self.model.cls.predictions.decoder = decoder
        given = patients.twin(self.model)  # the bridge rewires what it gets
        self.bridge = TransformerBridge.boot_transformers(
            "google-bert/bert-base-uncased", hf_model=given, tokenizer=tokenizer(), device="cpu"
        )

    def __init__(self, shape: str):
        super().__init__(shape)
        self.judge = Judge(self.stock.bert, self.ids, end=self.head)

    @staticmethod
    def end(out: Any) -> torch.Tensor:
        return out.logits

    def head(self, hidden: np.ndarray) -> np.ndarray:
        """The head in the precision of `hidden`, by its own code: it is no part of what is compared."""
        state = torch.from_numpy(hidden)
        return copy.deepcopy(self.stock.cls).to(state.dtype)(state).numpy()

    def hooked(self, name: str, act: Callable, layers: Any = None) -> Any:
        layers = range(self.layers) if layers is None else layers
        hooks = [(f"blocks.{layer}.attn.{name}", act) for layer in layers]
        return self.bridge.run_with_hooks(self.ids, fwd_hooks=hooks)

    def capture(self) -> Any:
        out, cache = self.bridge.run_with_cache(
            self.ids, names_filter=lambda name: name.endswith("hook_pattern")
        )
        return out, [cache[f"blocks.{layer}.attn.hook_pattern"] for layer in range(self.layers)]

    def without(self) -> Any:
        def silent(z, hook):
            z = z.clone()
            z.view(1, TOKENS, -1, self.d_k)[:, :, HEAD] = 0
            return z

        return self.hooked("hook_z", silent, [LAYER])

    def deeds(self) -> list[tuple[str, str, Act]]:
        def halved(tensor, hook):
            return tensor / 2

        return [
            ("the bridge, nothing hooked", "none", lambda: self.bridge(self.ids)),
            (
                "temperature 2 (hook_attn_scores, the obvious hook)",
                "temperature",
                lambda: self.hooked("hook_attn_scores", halved),
            ),
            ("temperature 2 (hook_q)", "temperature", lambda: self.hooked("hook_q", halved)),
            ("one head off (hook_z)", "head", self.without),
            ("capture of all weights (hook_pattern)", "capture", self.capture),
        ]


class Ours(Contender):
    """This repository, asked the same."""

    def prepare(self) -> None:
        import surgery

        self.own = patients.twin(self.model)
        surgery.admit(self.own)

    def under(self, plan: Any, **witnesses: Any) -> Any:
        from surgery.theatre import run

        with run(self.own, [plan], **witnesses):
            return self.end(self.own(self.ids))

    def capture(self) -> Any:
        import surgery
        from surgery.capture import Keep

        book = Keep(scores=False)
        end = self.under(surgery.Plan(), witnesses=book)
        return end, [book.sites[layer].weights for layer in range(self.layers)]

    def deeds(self) -> list[tuple[str, str, Act]]:
        import surgery as sg

        softer, without = sg.Plan(sg.Temperature(2.0)), sg.Plan(sg.AblateHead().at(layers=LAYER, heads=HEAD))
        return [
            ("admitted, no plan", "none", lambda: self.end(self.own(self.ids))),
            ("temperature 2 (Temperature)", "temperature", lambda: self.under(softer)),
            ("one head off (AblateHead)", "head", lambda: self.under(without)),
            ("capture of all weights (Keep)", "capture", self.capture),
        ]


def tokenizer() -> Any:
    """One that nobody asks anything: texts come as ids."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    words = {word: n for n, word in enumerate(special)}
    names = dict(
        zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True)
    )
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, "[UNK]")), **names)


PEERS: dict[str, type[Contender]] = {
    "ours": Ours,
    "nnsight": Nnsight,
    "pyvene": Pyvene,
    "transformer-lens": TransformerLens,
}


def measured(contender: Contender, title: str) -> Table:
    table = Table(title)
    for what, reference, act, changes in contender.asked():
        try:
            found = act()
        except Exception as error:  # a peer that cannot do it is a result
            said = str(error).strip().split("\n")[0][:120]
            table.add(Row(what, verdict=f"fails: {type(error).__name__}: {said}"))
            continue
        end, maps = found if isinstance(found, tuple) else (found, None)
        verdict = contender.judge(end, maps, **changes)
        once = seconds(reference) + seconds(act)
        time = ratio(reference, act, max(LEAST, min(MOST, int(BUDGET / once))))
        counts = {
            "operations": (operations(act), operations(reference)),
            "calls": (python_calls(act), python_calls(reference)),
        }
        table.add(Row(what, time, verdict=verdict, **counts))
    return table


def main() -> None:
    import importlib.metadata

    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    peer, shape, out = sys.argv[1:]
    named = [*([] if peer == "ours" else [peer]), "transformers", "torch"]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in named)
    with torch.no_grad():
        table = measured(PEERS[peer](shape), f"{peer}, {shape}'s shape, {TOKENS} tokens ({versions})")
    Path(out).write_text(table.markdown(), encoding="utf-8")


if __name__ == "__main__":
    main()
