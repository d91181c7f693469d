"""The models that this server holds: loaded once, shared by all visitors, a few at a time."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from bilingual import SurgeryError, Words
from ui.limits import Limits
from ui.memory import trim
from ui.zero import Task

log = logging.getLogger(__name__)
FALLBACK = "minilm"
NAME = Words("characters in the name of a model", "模型名的字符数")
TWO_TEXTS = ("translator",)  # reads one text and writes another; a comparison shows one


class NotAllowedError(SurgeryError):
    """A model that this server does not load for visitors."""


class Pool:
    """Loaded models by name, least recently used out first; a model in use lives on with whoever uses it.

    default: the model to start with. device: as for `models.load`. public: only `allowed` names are loaded, and nothing of
    this computer is told. limits: of this server; by default those of the environment.
    """

    def __init__(
        self,
        default: str = FALLBACK,
        *,
        device: str = "auto",
        public: bool = False,
        limits: Limits | None = None,
    ):
        from models import available

        self.default, self.device, self.public = default, device, public
        self.limits = Limits.of(public) if limits is None else limits
        self._turn = threading.BoundedSemaphore(self.limits.runs_at_once)
        self.allowed = tuple(name for name in dict.fromkeys((default, *available())) if name not in TWO_TEXTS)
        self.elsewhere: Task | None = None  # makes the runs in a process of its own, see ui.zero
        self.problem: Words | None = None  # why the default is not the model that was asked for
        self._futures: OrderedDict[str, Future] = OrderedDict()
        self._lock = threading.Lock()
        self._loading = threading.Lock()  # one at a time, however many are asked for

    def warm(self) -> None:
        """Loads the default model in the background; falls back to minilm if it cannot be had."""
        threading.Thread(target=self._warm, daemon=True).start()

    def _warm(self) -> None:
        error = self._future(self.default).exception()
        if isinstance(error, SurgeryError) and self.default != FALLBACK:
            self.problem = self._told(self.default, error).words
            self.default = FALLBACK
            self._future(FALLBACK)

    def ready(self, name: str) -> bool:
        """Whether `get(name)` would answer at once."""
        future = self._futures.get(name) if isinstance(name, str) else None
        return future is not None and future.done() and future.exception() is None

    def get(self, name: str) -> Any:
        """The loaded model, loading it if need be. Raises LimitError, LoadError or NotAllowedError."""
        if isinstance(name, str):
            self.limits.check("name_characters", len(name), NAME, "model")
        if not isinstance(name, str) or (self.public and name not in self.allowed):
            listed = ", ".join(self.allowed)
            raise NotAllowedError(
                f"This server offers {listed}; not {str(name)[:60]!r}. Run the app yourself to load any model.",
                f"本服务器提供 {listed}，不提供 {str(name)[:60]!r}。在自己的电脑上运行本应用即可加载任何模型。",
            )
        try:
            return self._future(name).result()
        except SurgeryError as error:
            if not self.public:
                raise
            raise self._told(name, error) from error

    @contextmanager
    def use(self, name: str) -> Iterator[Any]:
        """The loaded model, to run it: after waiting for one's turn, so that who waits keeps no model alive.

        Loading takes a turn, too: loaded before, models would come and go while they wait. Gradio's own limit is not enough: it takes
        a run whose visitor left for ended. Not to be nested. Raises as `get`.
        """
        with self._turn:
            yield self.get(name)

    def _told(self, name: str, error: SurgeryError) -> SurgeryError:
        """What a visitor is told of a model that cannot be loaded: to strangers nothing that names our folders."""
        if not self.public:
            return error
        log.warning("%s: %s", name, error)
        return NotAllowedError(
            f"{name} cannot be loaded on this server at present. Choose another model, or try again later.",
            f"本服务器目前无法加载 {name}。请选择其他模型，或稍后再试。",
        )

    def _future(self, name: str) -> Future:
        with self._lock:
            future = self._futures.get(name)
            mine = future is None or (future.done() and future.exception() is not None)
            if future is None or mine:
                future = self._futures[name] = Future()
            self._futures.move_to_end(name)
        if mine:
            self._load(name, future)
        return future

    def _load(self, name: str, future: Future) -> None:
        try:
            from models import load
            from surgery import admit

            with self._loading:
                patient = load(name, device=self.device)
            admit(patient.model)  # a model that surgery cannot reach is refused here, before it is shown
        except BaseException as error:
            future.set_exception(error)
            with self._lock:
                self._futures.pop(name, None)
            if not isinstance(error, Exception):
                raise
            return
        future.set_result(patient)
        with self._lock:
            while len(self._futures) > self.limits.models:
                self._futures.popitem(last=False)
        trim()

    def about(self, name: str, lang: str) -> str:
        """A line on what a model is."""
        from models import available

        known = available().get(name)
        return known.say(lang) if known else Words("a model of yours", "您自己的模型").say(lang)
