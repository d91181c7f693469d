"""What goes wrong inside an event reaches the reader as one sentence: no path, no traceback, no name of a class."""

import logging
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from bilingual import LANGUAGES, SurgeryError, Words
from ui.limits import OWN, Limits

log = logging.getLogger(__name__)

UNREADABLE = Words(
    "A value of this request is not of the kind that this server takes.",
    "请求中有一个值的类型不被本服务器接受。",
)
UNEXPECTED = Words(
    "Something went wrong on the server and was written down there. Nothing of yours is lost: try again, or try other settings.",
    "服务器出错，已记录。您的设置没有丢失：请重试，或换一组设置。",
)
NO_MEMORY = Words(
    "The accelerator has no memory left for this. It was freed: try a shorter text, fewer operations, or "
    "start the app with --device cpu.",
    "加速器的显存不足，已释放。请换更短的文本、减少操作，或用 --device cpu 启动本应用。",
)


class Refused(gr.Error):
    """A sentence for the reader; nothing is printed on the server."""

    def __init__(self, sentence: str):
        super().__init__(sentence, print_exception=False)


class Guarded(gr.Blocks):
    """A page whose every event ends in a result or in a sentence in the reader's language.

    limits, endpoints: of the server, and the names that scripts may call; what those keep of a caller is dropped.
    """

    limits: Limits = OWN
    endpoints: tuple[str, ...] = ()

    async def process_api(self, block_fn: Any, inputs: list[Any], *args: Any, **kwargs: Any) -> Any:
        lang = _language(block_fn, inputs, kwargs.get("request"))
        caller: Any = kwargs.get("session_hash")
        try:
            # No event of ours is about a file; and one that happens in the browser alone cannot be asked for.
            if block_fn.fn is None or any(_paths(getattr(kwargs.get("event_data"), "_data", None))):
                raise _Unreadable(*UNREADABLE)
            return await super().process_api(block_fn, inputs, *args, **kwargs)
        except Refused:
            raise
        except Exception as error:
            raise refusal(error, lang) from error
        finally:
            if getattr(block_fn, "api_name", None) in self.endpoints:
                self.state_holder.session_data.pop(caller, None)

    async def preprocess_data(self, block_fn: Any, inputs: list[Any], *args: Any, **kwargs: Any) -> Any:
        try:
            if any("://" in path for path in _paths(inputs)):  # which Gradio would download
                raise ValueError("the address of a file")
            return await super().preprocess_data(block_fn, inputs, *args, **kwargs)
        except Exception as error:
            log.info("unreadable request: %r", error)
            raise _Unreadable(*UNREADABLE) from error


class _Unreadable(SurgeryError):
    """A value that a component does not take."""


def _paths(value: Any) -> Iterator[str]:
    """Every "path" in JSON data."""
    if isinstance(value, dict):
        if "path" in value:
            yield str(value["path"])
        value = value.values()
    elif not isinstance(value, list):
        return
    for part in value:
        yield from _paths(part)


def refusal(error: Exception, lang: str) -> Refused:
    """What the reader is told of an error. What the frames of its traceback held, a model and tensors, is let go."""
    words = error.words if isinstance(error, SurgeryError) else explained(error)
    for one in _chain(error):
        traceback.clear_frames(one.__traceback__)
    if words is NO_MEMORY:
        free()
    return Refused(words.say(lang))


def _chain(error: BaseException) -> list[BaseException]:
    """An error, what it was raised from or while handling, and so on."""
    chain: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in chain:
        chain.append(one)
        one = one.__cause__ or one.__context__
    return chain


def explained(error: Exception) -> Words:
    """What to say of an error that nobody raised on purpose; it is logged with its traceback."""
    if out_of_memory(error):
        log.error("out of memory", exc_info=error)
        return NO_MEMORY
    log.error("unexpected", exc_info=error)
    return UNEXPECTED


def out_of_memory(error: BaseException | None) -> bool:
    """Whether an accelerator ran out of memory."""
    import torch

    return isinstance(error, torch.OutOfMemoryError)


def free() -> None:
    """Gives unused memory of the accelerators back."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _language(block_fn: Any, inputs: list[Any], request: Any) -> str:
    """The reader's language: what the page says among the inputs, else what the browser prefers."""
    for box, value in zip(getattr(block_fn, "inputs", ()), inputs or (), strict=False):
        if getattr(box, "elem_id", None) == "lang" and isinstance(value, str) and value in LANGUAGES:
            return value
    headers = getattr(request, "headers", None)
    get: Callable[[str, str], str] = getattr(headers, "get", lambda _, default: default)
    return "zh" if get("accept-language", "").strip().lower().startswith("zh") else "en"
