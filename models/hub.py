"""A hub id -> a folder in the hub's cache. The cache is asked first, and a silent hub is soon given up."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    hf_hub_url,
    snapshot_download,
    try_to_load_from_cache,
)
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)
from huggingface_hub.utils import validate_repo_id

from bilingual import Words

from .folders import is_complete
from .loaded import LoadError

ANSWER_WITHIN = 6.0  # seconds for the hub's first answer, looking up its address included
WANTED = ("*.json", "*.safetensors", "*.txt", "*.model")
UNWANTED = ("*/*",)  # folders inside a repository hold the same weights for other software

WAYS_OUT = Words(
    "Behind a firewall, set HF_ENDPOINT to a mirror before Python starts; or give a local folder; "
    'or use "minilm", which needs no network.',
    "若网络受限，请在启动 Python 之前把 HF_ENDPOINT 设为镜像地址；或给出本地文件夹；"
    "或使用无需网络的 “minilm”。",
)

Result = TypeVar("Result")


def fetch(repo_id: str) -> Path:
    """The folder of a model on the hub: cached, or else downloaded."""
    check_id(repo_id)
    folder = cached(repo_id)
    if folder is None:
        knock(repo_id)
        folder = download(repo_id)
    return folder


def check_id(repo_id: str) -> None:
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise refusal(
            f'"{repo_id}" is not a model id: an id is "name" or "owner/name", of letters, digits and -_.',
            f"“{repo_id}” 不是模型名：模型名形如 “name” 或 “owner/name”，只含字母、数字和 -_. 。",
        ) from error


def cached(repo_id: str) -> Path | None:
    config = try_to_load_from_cache(repo_id, "config.json")
    folder = Path(config).parent if isinstance(config, str) else None
    return folder if folder and is_complete(folder) else None


def knock(repo_id: str) -> None:
    """Ask for one small file, to learn soon whether there is a hub and whether it has this model."""
    url = hf_hub_url(repo_id, "config.json")
    with explained(repo_id):
        within(ANSWER_WITHIN, lambda: get_hf_file_metadata(url, timeout=ANSWER_WITHIN))


def download(repo_id: str) -> Path:
    with explained(repo_id):
        return Path(snapshot_download(repo_id, allow_patterns=list(WANTED), ignore_patterns=list(UNWANTED)))


def within(seconds: float, call: Callable[[], Result]) -> Result:
    """`call()`, or TimeoutError after so many seconds. No HTTP timeout covers a silent name server."""
    answer: queue.SimpleQueue = queue.SimpleQueue()

    def work() -> None:
        try:
            answer.put((call(), None))
        except Exception as error:
            answer.put((None, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        result, error = answer.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    if error is not None:
        raise error
    return result


@contextlib.contextmanager
def explained(repo_id: str) -> Iterator[None]:
    """Turn whatever goes wrong with the hub into a LoadError that says which of the many things it was."""
    try:
        yield
    except (
        Exception
    ) as error:  # HTTP libraries change between versions of huggingface_hub, and so do their errors
        raise explain(repo_id, error) from error


def explain(repo_id: str, error: Exception) -> LoadError:
    hub = constants.ENDPOINT
    if isinstance(error, GatedRepoError):  # before RepositoryNotFoundError, of which it is a kind
        return refusal(
            f'"{repo_id}" is gated: its owners ask who you are. Apply at {hub}/{repo_id} and log in.',
            f"“{repo_id}” 需要授权：请在 {hub}/{repo_id} 申请访问权限并登录。",
        )
    if isinstance(error, RepositoryNotFoundError):
        return unknown_to_hub(repo_id)
    if isinstance(error, EntryNotFoundError):
        return refusal(
            f'"{repo_id}" is on the hub but has no config.json: it is not a transformers model.',
            f"hub 上的 “{repo_id}” 没有 config.json：它不是 transformers 模型。",
        )
    if isinstance(error, OfflineModeIsEnabled):
        return refusal(
            f'HF_HUB_OFFLINE is set, so the hub was not asked, and "{repo_id}" is not complete in the cache.',
            f"已设置 HF_HUB_OFFLINE，因此没有访问 hub，而缓存中没有完整的 “{repo_id}”。",
        )
    if isinstance(error, HfHubHTTPError) and error.response is not None:
        status = error.response.status_code
        if status in (401, 404):  # a mirror may not say which of its many things is missing
            return unknown_to_hub(repo_id)
        return refusal(
            f'The hub at {hub} answered {status} for "{repo_id}". Try again later.',
            f"{hub} 对 “{repo_id}” 的应答为 {status}。请稍后再试。",
        )
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    return refusal(
        f'No connection to the hub at {hub} ({reason}), and "{repo_id}" is not complete in the cache.',
        f"无法连接 {hub}（{reason}），而缓存中没有完整的 “{repo_id}”。",
    )


def unknown_to_hub(repo_id: str) -> LoadError:
    return refusal(
        f'The hub at {constants.ENDPOINT} has no model "{repo_id}" (or it is private). Check owner and name.',
        f"{constants.ENDPOINT} 上没有名为 “{repo_id}” 的模型（或未公开）。请检查拼写。",
    )


def refusal(en: str, zh: str) -> LoadError:
    return LoadError(f"{en} {WAYS_OUT.en}", f"{zh}{WAYS_OUT.zh}")
