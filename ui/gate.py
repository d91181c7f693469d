"""What stands before the page: size, depth and rate of requests, and room in the queue, checked before anything is read."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bilingual import Words
from ui.limits import Limits

if TYPE_CHECKING:
    from ui.guard import Guarded

log = logging.getLogger(__name__)

API = "/gradio_api/"
JOINS = ("queue/join", "call/")  # what joins the queue
POSTS = (*JOINS, "run/predict", "upload", "cancel", "reset")  # all that the page and scripts post to
ADDRESSES = 10_000  # that are remembered at a time

NO_SUCH = Words("There is no such address on this server.", "本服务器没有这个地址。")
NO_JSON = Words("This request is not a JSON object.", "该请求不是 JSON 对象。")
LATE = Words("The request took too long to arrive.", "请求传输时间过长。")
UNREADABLE = Words(
    "This request cannot be read: the address, a name or a value is not one that this server knows. "
    "GET /gradio_api/info lists what there is.",
    "无法读取该请求：地址、名称或值不被本服务器识别。GET /gradio_api/info 列出可用的内容。",
)
_OPENINGS = re.compile(
    rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL
)  # never fails on a string: linear

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Gate:
    """ASGI middleware. What it refuses, it refuses in one sentence, in the language that the browser prefers."""

    def __init__(self, app: Any, limits: Limits, demo: Guarded):
        self.app, self.limits, self.demo = app, limits, demo
        self.rates = Rates(limits.requests_a_minute)
        self.open: dict[str, int] = {}  # requests that are open, by address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        who = address(scope, self.limits.proxies)
        self.open[who] = self.open.get(who, 0) + 1
        try:
            await self._admit(scope, receive, send, who)
        finally:
            self.open[who] -= 1
            if not self.open[who]:
                del self.open[who]

    async def _admit(self, scope: Scope, receive: Receive, send: Send, who: str) -> None:
        refusal = self.refusal(scope, who)
        body = b""
        if refusal is None and scope["method"] == "POST":
            is_file = _route(scope).startswith("upload")
            most = self.limits.file_bytes + 10_000 if is_file else self.limits.request_bytes
            try:
                body = await asyncio.wait_for(_read(receive, most), self.limits.request_seconds)
            except TooMuch:
                refusal = 413, _too_many(most, Words("bytes in a request", "请求的字节数"))
            except asyncio.TimeoutError:
                refusal = 408, LATE
            if refusal is None and not is_file:
                refusal = self.unfit(body)
        if refusal is not None:
            await _response(*refusal, scope)(scope, receive, send)
            return
        await self._pass(scope, _again(body, receive) if scope["method"] == "POST" else receive, send)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hands the request on; what the framework trips over is said in a sentence, not shown as a traceback."""
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception as error:
            log.warning("%s %s: %r", scope["method"], scope["path"][:200], error)
            if started:
                raise
            await _response(400, UNREADABLE, scope)(scope, receive, send)

    def refusal(self, scope: Scope, who: str) -> tuple[int, Words] | None:
        """Status and sentence for a request that is not even read; None lets it on."""
        if self.open[who] > self.limits.connections:
            return 429, _too_many(
                self.limits.connections, Words("open requests of one address", "同一地址同时打开的请求数")
            )
        if scope["method"] not in ("GET", "HEAD", "POST", "OPTIONS"):
            return 405, NO_SUCH
        if scope["method"] != "POST":
            return None
        route = _route(scope)
        if not route.startswith(POSTS):
            return 404, NO_SUCH
        if (
            route.startswith("call/")
            and route.removeprefix("call/").removeprefix("v2/").strip("/") not in self.demo.endpoints
        ):
            return 404, NO_SUCH
        if not self.rates.may(who):
            per_minute = self.limits.requests_a_minute
            return 429, _too_many(
                per_minute, Words("requests a minute from one address", "同一地址每分钟的请求数")
            )
        return self._full(who) if route.startswith(JOINS) else None

    def _full(self, who: str) -> tuple[int, Words] | None:
        waiting = [e for q in self.demo._queue.event_queue_per_concurrency_id.values() for e in q.queue]
        if len(waiting) >= self.limits.queue:
            return 429, _full(len(waiting), self.limits.queue)
        mine = sum(address(event.request.scope, self.limits.proxies) == who for event in waiting)
        if mine >= self.limits.queue_share:
            return 429, _full(mine, self.limits.queue_share)
        return None

    def unfit(self, body: bytes) -> tuple[int, Words] | None:
        """Status and sentence for a body that is too deep, or no JSON."""
        most = self.limits.request_depth
        if not body.strip():
            return None
        if depth(body, most) > most:
            return 413, _too_many(
                most, Words("lists and objects inside each other", "相互嵌套的列表和对象层数")
            )
        try:
            whole = isinstance(json.loads(body), dict)
        except (ValueError, RecursionError):
            whole = False
        return None if whole else (400, NO_JSON)


class Rates:
    """How often each address may ask: a bucket of tokens that fills up within a quarter of a minute's worth."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic):
        self.per_second, self.most, self.clock = per_minute / 60, max(1.0, per_minute / 4), clock
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # address: (tokens, when)
        self._lock = threading.Lock()

    def may(self, who: str) -> bool:
        """Takes a token, if there is one."""
        now = self.clock()
        with self._lock:
            tokens, then = self.buckets.pop(who, (self.most, now))
            tokens = min(self.most, tokens + (now - then) * self.per_second)
            allowed = tokens >= 1
            self.buckets[who] = (tokens - allowed, now)
            while len(self.buckets) > ADDRESSES:
                self.buckets.popitem(last=False)
        return allowed


class TooMuch(Exception):
    """A body of more bytes than are read."""


def address(scope: Scope, proxies: int) -> str:
    """Who asks: the hop that the outermost of so many proxies of ours names (before it anybody can write), or the other end."""
    if proxies:
        said = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
        hops = [hop.strip() for hop in ",".join(said).split(",")]
        if len(hops) >= proxies and hops[-proxies]:
            return hops[-proxies][:60]
    return (scope.get("client") or ("unknown",))[0]


def depth(body: bytes, most: int) -> int:
    """How deep lists and objects stand inside each other; no more than `most` + 1 is counted."""
    now = deepest = 0
    for match in _OPENINGS.finditer(body):
        first = match.group()[:1]
        now += (first in b"[{") - (first in b"]}")
        deepest = max(deepest, now)
        if deepest > most:
            break
    return deepest


async def _read(receive: Receive, most: int) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise TooMuch
        if not message.get("more_body"):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """`receive` that gives a body that was read already, and then whatever comes after it."""
    given = False

    async def once() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once


def unreadable(request: Request, _: Exception) -> Response:
    """For FastAPI: what to answer where a body has not the fields that it should have."""
    return _response(422, UNREADABLE, request.scope)


def _response(status: int, words: Words, scope: Any) -> Response:
    text = words.say(_lang(scope))
    return JSONResponse({"detail": text, "error": text}, status)


def _route(scope: Scope) -> str:
    return scope["path"].removeprefix(scope.get("root_path", "")).removeprefix(API)


def _lang(scope: Scope) -> str:
    """The language of the page that asks (`?lang=`), else the one that the browser prefers."""
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    asked = re.search(r"[?&]lang=(en|zh)\b", headers.get(b"referer", ""))
    if asked:
        return asked[1]
    return "zh" if headers.get(b"accept-language", "").strip().lower().startswith("zh") else "en"


def _too_many(most: int, what: Words) -> Words:
    return Words(
        f"Too many {what.en}: this server takes at most {most}.", f"{what.zh}太多：本服务器最多接受 {most}。"
    )


def _full(waiting: int, most: int) -> Words:
    return Words(
        f"The queue is full: {waiting} runs are waiting, and at most {most} may. Try again in a moment.",
        f"队列已满：已有 {waiting} 个任务在等待，最多 {most} 个。请稍后再试。",
    )
