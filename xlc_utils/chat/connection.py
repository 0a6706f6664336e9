"""Requests to one address over aiohttp, as bytes and without a retry.

The openai client on this very transport would make objects of each request and reply; benchmarks/calls.py has what
that costs. Retries, pacing and the reading of replies belong to openai_api.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from xlc_utils.chat.event_loop import event_loop

if TYPE_CHECKING:
    import aiohttp

CONNECT_SECONDS = 20


@dataclass(frozen=True)
class Answer:
    """What a server answered, unread."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def error(self) -> tuple[str, str]:
        """The code ("" if none) and the words of an answer that is an error, in OpenAI's form or any other."""
        text = self.body.decode("utf-8", "replace").strip()
        try:
            error = json.loads(text)
            error = error.get("error", error)
            return str(error.get("code") or ""), str(error["message"])
        except (ValueError, LookupError, AttributeError, RecursionError):
            return "", text or "an empty reply"


@dataclass
class Broken(Exception):
    """A request without an answer."""

    detail: str
    unreachable: bool = False  # not even a connection came about


class Connection:
    """Posts to one address; connections are kept open between requests.

    Args:
        url: the address up to the API's version, `https://host/v1`.
        key: sent as the bearer of each request.
        most: connections at a time.
    """

    def __init__(self, url: str, key: str, most: int):
        self._url, self._key, self._most = url.rstrip("/"), key, most
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # the session's: a forked process has another
        self._parents: list[aiohttp.ClientSession | None] = []  # kept, since what closes them closes the parent's
        self._proxy: dict[str, Any] = {}

    async def post(self, path: str, body: dict[str, Any], seconds: float) -> Answer:
        """The answer to a request, whatever its status.

        Args:
            path: after the address, beginning with "/".
            body: sent as JSON.
            seconds: for all of it, from the connection to the last byte.

        Raises:
            Broken: there was none.
        """
        import aiohttp

        if self._session is None or self._loop is not asyncio.get_running_loop():
            self._parents.append(self._session)
            self._loop, self._session, self._proxy = asyncio.get_running_loop(), self._opened(), _proxy(self._url)
        try:
            async with self._session.post(
                self._url + path,
                data=json.dumps(body).encode(),
                timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS),
                allow_redirects=False,  # elsewhere it may arrive as another request, or where it should not
                **self._proxy,
            ) as answer:
                return Answer(answer.status, answer.headers, await answer.read())
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise Broken(str(error), unreachable=True) from None
        except TimeoutError:
            raise Broken(f"no reply in time ({seconds:g} s)") from None
        except aiohttp.ClientError as error:
            raise Broken(f"the connection broke ({str(error) or type(error).__name__})") from None

    def _opened(self) -> aiohttp.ClientSession:
        """A session without the environment's settings, of which ~/.netrc would come into the key's way."""
        import aiohttp

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._most, ssl=_trusted() if self._url.startswith("https") else True),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"},
        )

    async def close(self) -> None:
        """Closes what this process has opened."""
        if self._session is not None and self._loop is asyncio.get_running_loop():
            await self._session.close()


def _proxy(url: str) -> dict[str, Any]:
    """The environment's proxy for an address, as arguments of a request; looked up once, not with each of them."""
    from aiohttp.helpers import get_env_proxy_for_url
    from yarl import URL

    if not takes_proxy(url):
        return {}
    try:
        proxy, login = get_env_proxy_for_url(URL(url))
    except LookupError:
        return {}
    return {"proxy": proxy, "proxy_auth": login}


def _trusted() -> ssl.SSLContext:
    """Whom to trust: what this machine trusts, and certifi's list, since some Pythons know no certificate."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def takes_proxy(url: str) -> bool:
    """Whether a proxy of the environment is meant for an address: one for the internet does not know this machine's
    own servers."""
    return urlsplit(url).hostname not in ("localhost", "127.0.0.1", "::1")


def close_all(connections: list) -> None:
    """Closes connections where they were opened: in the event loop, if there ever was one."""
    if not event_loop.cache_info().currsize:
        return

    async def close() -> None:
        for connection in connections:
            await connection.close()

    closing = asyncio.run_coroutine_threadsafe(close(), event_loop())
    if threading.current_thread() is threading.main_thread():  # at the program's end nobody else waits for it
        with contextlib.suppress(TimeoutError):
            closing.result(timeout=2)
