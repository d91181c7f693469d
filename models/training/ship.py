"""Makes the checkpoints that come with the project, each with a card whose numbers were measured just now."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Iterable
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from ..shipped import CHECKPOINTS
from ..tasks import TASKS, Task, task
from .loop import Training
from .schedule import TrainingError

NAMES = ("encoder", "encoder-zh", "characters", "translator")


def ship(
    names: Iterable[str] = NAMES,
    seeds: Iterable[int] = (0, 1, 2),
    folder: str | Path = CHECKPOINTS,
    progress: bool = True,
) -> list[str]:
    """Trains each model with each seed, keeps the first seed's weights, and returns what the cards say."""
    cards, names = [], list(names)
    for name in names:  # before minutes of training
        _tokenizer(task(name))
    for name in names:
        runs, seconds = [], []
        for seed in seeds:
            started = time.process_time()
            runs.append(Training(task(name), seed=seed).run(progress=progress))
            seconds.append(time.process_time() - started)
            print(f"{name} seed {seed}: {_line(measures(runs[-1]))} ({seconds[-1]:.0f} CPU s)", flush=True)
        target = Path(folder) / name
        shutil.rmtree(target, ignore_errors=True)
        save(runs[0], target)
        cards.append(card(runs, seconds))
        (target / "README.md").write_text(cards[-1], encoding="utf-8")
    return cards


def save(run: Training, folder: Path) -> None:
    """What `models.load` reads: configuration, safetensors, tokenizer."""
    run.model.set_attn_implementation("sdpa")
    run.model.save_pretrained(folder)
    _tokenizer(run.task).save_pretrained(folder)
    for file in folder.iterdir():
        file.chmod(0o644)  # safetensors writes for its owner's eyes only


def _tokenizer(asked: Task) -> PreTrainedTokenizerBase:
    """What goes with a task's model. Raises TrainingError where there is none."""
    found = asked.tokenizer()
    if found is None:
        raise TrainingError(
            f"{asked.name} has no tokenizer, so no text could be given to its model: choose one of {', '.join(NAMES)}.",
            f"{asked.name} 没有分词器，无法向它的模型输入文本：可选 {'、'.join(NAMES)}。",
        )
    return found


def measures(run: Training) -> dict[str, float]:
    """What the last evaluation said."""
    own = ("step", "loss", "scored", "rate", "gradient")
    return {key: value for key, value in run.history[-1].items() if key not in own}


def _line(values: dict[str, float]) -> str:
    return ", ".join(f"{key} {value:.3f}" for key, value in values.items())


def card(runs: list[Training], seconds: list[float]) -> str:
    """The model card of a checkpoint."""
    first = runs[0]
    recipe, config, blind = first.recipe, first.model.config, first.task.order_blind()
    title, rows = TASKS[first.task.name].en, []
    for key in measures(first):
        values = [measures(run)[key] for run in runs]
        spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
        best = f"{blind[key]:.3f}" if key in blind else ""
        rows.append(f"| {key} | {values[0]:.3f} | {statistics.mean(values):.3f}{spread} | {best} |")
    parameters = sum(p.numel() for p in first.model.parameters())
    both = " on each side" if config.is_encoder_decoder else ""
    seeds = " ".join(str(run.seed) for run in runs)
    lines = [
        f"# {first.task.name}",
        "",
        f"{title[0].upper()}{title[1:]}. Made by `python -m models.training --ship {first.task.name} --seeds {seeds}`.",
        "",
        f"**Model.** {type(first.model).__name__}, {parameters:,} parameters: d_model {config.d_model}, "
        f"{config.num_heads} heads of {config.d_model // config.num_heads}, {config.num_layers} layer{'s' * (config.num_layers > 1)}{both}, "
        f"feed-forward {config.d_ff}, {config.positions} positions, {config.norm}-norm, "
        f"{config.vocab_size} tokens.",
        "",
        f"**Data.** Made by a seeded generator in `models/tasks/`. {_first_line(type(first.task).__doc__)} "
        f"Evaluated on {first.task.evaluated}.",
        "",
        f"**Recipe.** {recipe.steps:,} steps of {recipe.batch}, AdamW {recipe.betas}, rate {recipe.rate:g}, "
        f"{recipe.warmup} steps of warm-up, then {recipe.schedule}; weight decay {recipe.weight_decay:g}, "
        f"clipping {recipe.clip}; {statistics.mean(seconds):.0f} CPU seconds on one core.",
        "",
        f"| measure | these weights (seed {first.seed}) | mean ± sd over {len(runs)} seeds | best order-blind answer |",
        "|---|---|---|---|",
        *rows,
        "",
        "**Limits.** It knows its own few words and sentence forms and nothing else: a subject of experiments.",
        "",
    ]
    return "\n".join(lines)


def _first_line(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())
