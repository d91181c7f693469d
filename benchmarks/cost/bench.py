"""One model ready to be measured: the patient, its stock twins over the same weights, texts of any length."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

import surgery as sg
from benchmarks.cost import patients
from benchmarks.cost.measure import Act, Ratio, gemm, operations, python_calls, ratio, seconds
from benchmarks.cost.table import Row
from benchmarks.cost.truth import Judge

MOST = 61  # turns
LONG = 1.0  # seconds of a turn from which on three have to do


@dataclass(frozen=True, eq=False)
class Bench:
    """budget: seconds that the turns of one row may take; never fewer than `least` turns nor more than MOST."""

    name: str
    device: str = "cpu"
    dtype: torch.dtype = torch.float32
    budget: float = 1.0
    least: int = 5

    @cached_property
    def patient(self) -> Any:
        found = patients.patient(self.name, self.device, self.dtype)
        self.__dict__["stock"] = patients.twin(found.model)
        self.__dict__["eager"] = patients.twin(found.model, "eager")
        sg.admit(found.model)
        return found

    @cached_property
    def stock(self) -> Any:
        """The model as transformers has it (SDPA). So is `eager`."""
        return self.patient and self.__dict__["stock"]

    @cached_property
    def eager(self) -> Any:
        return self.patient and self.__dict__["eager"]

    @property
    def config(self) -> Any:
        return self.stock.config

    @property
    def layers(self) -> int:
        return self.config.num_hidden_layers

    @property
    def heads(self) -> int:
        return self.config.num_attention_heads

    def text(self, tokens: int) -> dict[str, torch.Tensor]:
        """The inputs of a text of so many tokens."""
        coded = self.patient.tokenizer(
            patients.SENTENCE * 30, return_tensors="pt", truncation=True, max_length=tokens
        )
        return {name: value.to(self.device) for name, value in coded.items()}

    def words(self, tokens: int) -> str:
        """The same text as a string."""
        ids = self.text(tokens)["input_ids"][0]
        return self.patient.tokenizer.decode(ids, skip_special_tokens=True)

    @cached_property
    def gemm(self) -> float:
        return gemm(self.device, self.dtype)

    def judge(self, text: dict[str, torch.Tensor]) -> Judge:
        """Float64's, for this dtype: what another one than float32 rounds more is measured on the stock model."""
        ids = text["input_ids"].cpu()
        judge = Judge(self.stock, ids)
        if self.dtype != torch.float32:
            own = judge(self.stock(**text).last_hidden_state)
            judge.precision, judge.noise = own.times, own.distance
        return judge

    # --- measuring ----------------------------------------------------------------------------------------

    def ratio(self, reference: Act, subject: Act, times: float = 1.0) -> Ratio:
        once = seconds(reference, self.device) + seconds(subject, self.device)  # warms both
        least = self.least if once < LONG else min(self.least, 3)
        turns = max(least, min(MOST, int(self.budget / once)))
        return ratio(reference, subject, turns, self.device, times)

    def row(self, what: str, reference: Act, subject: Act, count: bool, **more: Any) -> Row:
        """Time of subject over reference, and counts: the same at any length."""
        if count:
            more["operations"] = operations(subject), operations(reference)
            more["calls"] = python_calls(subject), python_calls(reference)
        return Row(what, self.ratio(reference, subject), **more)
