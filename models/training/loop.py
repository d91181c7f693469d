"""One training run, step by step. Nothing of it is shared: two runs in two threads do not meet.

Each step draws its examples from a generator of its own, made from (seed, step): so a run repeats exactly on
the CPU, goes on after an interruption as if there had been none, and leaves the process's random numbers alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel

from ..placement import choose_device, choose_dtype
from ..tasks.task import Batch, Recipe, Task
from .schedule import TrainingError, check_targets, private, rate_at, scored_loss

CHECKPOINT = "training.safetensors"


class Surgery(Protocol):
    """What makes a model run under a plan: opened anew for every step, never held from one to the next.

    witnesses: layer -> something whose `see(scores, weights, output, allowed)` is called with that layer's tensors.
    """

    def __call__(self, model: PreTrainedModel, step: int, **witnesses: Any) -> AbstractContextManager: ...


@dataclass(frozen=True)
class Capture:
    """What attention did with the watched example after some step: weights (layer, head, query, key).

    Layers of an encoder-decoder are its encoder's, then its decoder's, then its cross-attentions; a map smaller than
    the largest is padded with zeros.
    """

    step: int
    weights: Tensor

    @property
    def entropy(self) -> Tensor:
        """Mean over queries of -Σ w ln w, (layer, head), in nats."""
        rows = -torch.special.xlogy(self.weights, self.weights).sum(-1)
        return _over_queries(rows, self.weights)

    @property
    def diagonal(self) -> Tensor:
        """The share of weight that tokens give to themselves, (layer, head)."""
        return _over_queries(self.weights.diagonal(dim1=-2, dim2=-1), self.weights)


def _over_queries(values: Tensor, weights: Tensor) -> Tensor:
    real = weights.sum(-1) > 0  # (layer, head, query)
    return (values * real).sum(-1) / real.sum(-1).clamp(min=1)


@dataclass
class Training:
    """A run that can be stepped, watched, stopped, saved and resumed.

    surgery       a plan that acts from step `from_step` + 1 on, in evaluation too; None: none
    choices       fields of the model's configuration that differ from the task's own
    dtype         "auto" is float32; "bfloat16" or "float16" is mixed precision, on CUDA only
    patience      stop when so many evaluations in a row bring no improvement; None: never
    history       one dict per step: step, loss, scored, rate, gradient; and what `evaluate` said, where it was asked
    skipped       how many steps had nothing to learn from
    """

    task: Task
    seed: int = 0
    recipe: Recipe | Any = None  # the task's
    surgery: Surgery | None = None
    from_step: int = 0
    plan: str = ""  # what `surgery` is called
    choices: dict[str, Any] = field(default_factory=dict)
    device: torch.device | Any = "cpu"
    dtype: torch.dtype | Any = "auto"
    evaluate_every: int = 200
    capture_every: int = 0
    patience: int | None = None
    history: list[dict[str, float]] = field(default_factory=list, repr=False)
    captures: list[Capture] = field(default_factory=list, repr=False)
    skipped: int = 0
    step: int = 0

    def __post_init__(self) -> None:
        self.recipe = self.recipe or self.task.recipe
        if self.recipe.steps < 0 or self.recipe.batch < 1:
            raise TrainingError(
                f"steps={self.recipe.steps} and batch={self.recipe.batch} are not possible: at least 0 and 1.",
                f"steps={self.recipe.steps}、batch={self.recipe.batch} 不可用：至少为 0 和 1。",
            )
        self.device, self.dtype = choose_device(self.device), choose_dtype(self.dtype)
        if self.dtype != torch.float32 and self.device.type != "cuda":
            raise TrainingError(
                f"Mixed precision ({self.dtype}) needs a CUDA device, and this run is on {self.device}: "
                'leave dtype at "auto".',
                f"混合精度（{self.dtype}）需要 CUDA 设备，而这次训练在 {self.device} 上：请保留 dtype=“auto”。",
            )
        with _lent(self.seed, torch.device("cpu")):
            # Eager attention hands out its weights, and at these sizes costs the same.
            model = self.task.model(**self.choices)
        model.set_attn_implementation("eager")
        self.model = model.to(self.device)  # type: ignore[arg-type]  # the library's decorator loses its self
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=0.0,
            betas=self.recipe.betas,
            weight_decay=self.recipe.weight_decay,
        )
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.dtype == torch.float16)
        self._best, self._idle = float("-inf"), 0
        self._check()

    def _check(self) -> None:
        """Labels are looked at before the first step."""
        batch = self._batch(1)
        with torch.no_grad():
            self.model.eval()
            classes = self.model(**batch.inputs).logits.shape[-1]
        for targets, _ in batch.parts:
            check_targets(targets, classes)

    # --- one step -------------------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether nothing is left to do: all steps are made, or patience has run out."""
        return self.step >= self.recipe.steps or (self.patience is not None and self._idle >= self.patience)

    def advance(self) -> dict[str, float]:
        """Makes the next step and returns its entry of the history."""
        step = self.step + 1
        rate = rate_at(step, self.recipe, getattr(self.model.config, "d_model", 64))
        batch = self._batch(step)
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        with self._reproducible(step), self._operated(step), self._mixed():
            loss, scored = self._loss(batch)
        gradient = 0.0
        if scored:
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
            most = self.recipe.clip or float("inf")
            gradient = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), most))
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.skipped += 1
        self.model.eval()
        self.step = step
        entry = {"step": step, "loss": loss.item(), "scored": scored, "rate": rate, "gradient": gradient}
        if step == self.recipe.steps or (self.evaluate_every and step % self.evaluate_every == 0):
            entry |= self.evaluate()
            self._remember(entry.get(self.task.metric))
        self.history.append(entry)
        if self.capture_every and step % self.capture_every == 0:
            self.captures.append(self.capture())
        return entry

    def _batch(self, step: int) -> Batch:
        return self.task.batch(self.recipe.batch, private(self.seed, step)).to(self.device)

    def _loss(self, batch: Batch) -> tuple[Tensor, int]:
        logits = self.model(**batch.inputs).logits
        loss, scored = logits.new_zeros((), dtype=torch.float32), 0
        for targets, weight in batch.parts:
            part, asked = scored_loss(logits, targets)
            loss, scored = loss + weight * part, scored + asked
        return loss, scored

    def _remember(self, value: float | None) -> None:
        if value is not None and value > self._best:
            self._best, self._idle = value, 0
        else:
            self._idle += 1

    def _operated(self, step: int, **witnesses: Any) -> AbstractContextManager:
        if self.surgery is None or step <= self.from_step:
            return contextlib.nullcontext()
        return self.surgery(self.model, step, **witnesses)

    def _mixed(self) -> AbstractContextManager:
        if self.dtype == torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)

    def _reproducible(self, step: int) -> AbstractContextManager:
        """The model's own dropout draws from torch's generator: lent for one step, and given back."""
        if not getattr(self.model.config, "dropout", 0):
            return contextlib.nullcontext()
        return _lent(private(self.seed, step, 1).initial_seed(), self.device)

    # --- looking --------------------------------------------------------------------------------------------

    def evaluate(self) -> dict[str, float]:
        """The task's judgement of the model as it is, under its surgery."""
        self.model.eval()
        with torch.no_grad(), self._operated(self.step):
            return self.task.evaluate(self.model)

    def capture(self) -> Capture:
        """What attention does with the watched example now."""
        self.model.eval()
        inputs = {name: tensor.to(self.device) for name, tensor in self.task.probe().inputs.items()}
        seen: dict[int, Tensor] = {}
        with torch.no_grad():
            if self.surgery is None or self.step <= self.from_step:
                out = self.model(**inputs, output_attentions=True)
                names = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
                seen = dict(enumerate(w for name in names for w in out.get(name) or ()))
            else:
                with self._operated(self.step, witnesses=lambda layer: _Look(layer, seen)):
                    self.model(**inputs)
        maps = [seen[layer][0].float().cpu() for layer in sorted(seen)]  # (head, query, key)
        rows, columns = (max(m.shape[axis] for m in maps) for axis in (1, 2))
        grown = [torch.nn.functional.pad(m, (0, columns - m.shape[2], 0, rows - m.shape[1])) for m in maps]
        return Capture(self.step, torch.stack(grown))

    # --- running --------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[dict[str, float]]:
        """Step after step until done; whoever iterates may stop at any of them."""
        while not self.done:
            yield self.advance()

    def run(
        self,
        stop: Callable[[], bool] = lambda: False,
        progress: bool = False,
        folder: str | Path | None = None,
        save_every: int = 200,
    ) -> Training:
        """Trains until done, or until `stop()`, which is asked before each step; saves to `folder` on the way."""
        from tqdm import tqdm

        bar = tqdm(
            total=self.recipe.steps, initial=self.step, desc=self.task.name, disable=not progress, leave=False
        )
        with bar:
            while not self.done and not stop():
                entry = self.advance()
                bar.update()
                if self.task.metric in entry:
                    bar.set_postfix(
                        loss=f"{entry['loss']:.3f}", **{self.task.metric: f"{entry[self.task.metric]:.3f}"}
                    )
                if folder and self.step % save_every == 0:
                    self.save(folder)
        if folder:
            self.save(folder)
        return self

    # --- interruption ---------------------------------------------------------------------------------------

    def _identity(self) -> dict[str, Any]:
        return {
            "task": self.task.name,
            "seed": self.seed,
            "recipe": {**asdict(self.recipe), "betas": list(self.recipe.betas)},
            "plan": self.plan,
            "from_step": self.from_step,
            "choices": self.choices,
        }

    def save(self, folder: str | Path) -> Path:
        """Everything that `resume` needs, in one file that is either the old one or the new one, never half."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        names = {id(p): name for name, p in self.model.named_parameters()}
        tensors = {f"model.{name}": tensor.detach().clone() for name, tensor in self.model.named_parameters()}
        for parameter, state in self.optimizer.state.items():
            for key, value in state.items():
                tensors[f"optimizer.{key}.{names[id(parameter)]}"] = value.detach().clone()
        for capture in self.captures:
            tensors[f"capture.{capture.step}"] = capture.weights
        notes = {
            "step": self.step,
            "skipped": self.skipped,
            "best": self._best,
            "idle": self._idle,
            "history": self.history,
            "scaler": self.scaler.state_dict(),
            **self._identity(),
        }
        path = folder / CHECKPOINT
        half = path.with_suffix(".tmp")
        save_file(
            {k: t.cpu().contiguous() for k, t in tensors.items()}, half, {"training": json.dumps(notes)}
        )
        with half.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(half, path)
        return path

    def resume(self, folder: str | Path) -> Training:
        """Goes on where a run in `folder` was saved. Raises TrainingError if that was another run."""
        path = Path(folder) / CHECKPOINT
        if not path.is_file():
            raise TrainingError(
                f"There is nothing to resume in {folder}: it has no {CHECKPOINT}. Start without resuming.",
                f"{folder} 中没有可以继续的训练：缺少 {CHECKPOINT}。请从头开始。",
            )
        with safe_open(path, framework="pt") as file:
            notes = json.loads(file.metadata()["training"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        for key, value in self._identity().items():
            if notes[key] != value:
                raise TrainingError(
                    f"{path} holds a run with {key} = {notes[key]!r}, not {value!r}: give the same, or another folder.",
                    f"{path} 中的训练 {key} = {notes[key]!r}，而不是 {value!r}：请使用相同的设置，或换一个文件夹。",
                )
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(tensors[f"model.{name}"])
                state = {
                    key: tensors[f"optimizer.{key}.{name}"]
                    for key in ("step", "exp_avg", "exp_avg_sq")
                    if f"optimizer.{key}.{name}" in tensors
                }
                if state:
                    moved = {k: v if k == "step" else v.to(self.device) for k, v in state.items()}
                    self.optimizer.state[parameter] = moved
        if notes["scaler"]:
            self.scaler.load_state_dict(notes["scaler"])
        self.step, self.skipped = notes["step"], notes["skipped"]
        self._best, self._idle = notes["best"], notes["idle"]
        self.history = notes["history"]
        steps = sorted(int(name.split(".")[1]) for name in tensors if name.startswith("capture."))
        self.captures = [Capture(step, tensors[f"capture.{step}"]) for step in steps]
        return self


@dataclass(frozen=True)
class _Look:
    """A witness that keeps one layer's weights."""

    layer: int
    seen: dict[int, Tensor]
    needs_scores = False

    def see(self, scores: None, weights: Tensor, output: Tensor, allowed: Tensor | None) -> None:
        self.seen[self.layer] = weights


# Initial weights and the models' own dropout draw from torch's generator, of which there is one in a process.
_one_at_a_time = threading.Lock()


@contextlib.contextmanager
def _lent(seed: int, device: torch.device) -> Iterator[None]:
    with _one_at_a_time, torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def shorter(recipe: Recipe, steps: int | None) -> Recipe:
    """The recipe with another number of steps, its warm-up no longer than a quarter of them."""
    if steps is None:
        return recipe
    return replace(recipe, steps=steps, warmup=max(1, min(recipe.warmup, steps // 4)))
