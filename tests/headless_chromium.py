"""A real browser for tests, without a package for it: Chromium's DevTools protocol over a pair of pipes."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

_SECONDS = 30

_KEYS = {"Tab": 9, "Enter": 13, " ": 32}


def installed() -> str | None:
    """Where a Chromium is, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Chromium:
    """A running browser with a profile of its own, which outlives it."""

    def __init__(self, profile: Path):
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        command = [
            installed(), "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", "--disable-background-networking",
            "--disable-component-update", "--hide-scrollbars", "--lang=en", f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        # Chromium reads its commands from descriptor 3 and answers on 4.
        duplicate = f'exec 5<&{to_read} 6>&{to_write} 3<&5 4>&6 5<&- 6>&-; exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", duplicate, "bash", *command],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._count, self.events = b"", 0, []

    def close(self) -> None:
        """Ends it as a person would, so that it writes its profile."""
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            self.call("Browser.close")
        try:
            self._process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def call(self, method: str, session: str | None = None, **params: object) -> dict:
        """One command and its answer; events that come before it are kept in `events`.

        Raises:
            RuntimeError: the browser refuses the command.
            TimeoutError: it does not answer.
        """
        self._count += 1
        message = {"id": self._count, "method": method, "params": params} | ({"sessionId": session} if session else {})
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while True:
            answer = self._next_message()
            if answer.get("id") == message["id"]:
                break
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def event(self, method: str, that: Callable[[dict], bool] = lambda _: True) -> dict:
        """The first event of that kind that has not been taken yet, waited for."""
        while True:
            for event in self.events:
                if event["method"] == method and that(event["params"]):
                    self.events.remove(event)
                    return event["params"]
            self._next_message()

    def _next_message(self) -> dict:
        until = time.monotonic() + _SECONDS
        while b"\0" not in self._buffer:
            if not select.select([self._from], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser says nothing")
            read = os.read(self._from, 1 << 20)
            if not read:
                raise RuntimeError("the browser has ended")
            self._buffer += read
        data, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(data)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, page: Path, width: int = 1100, height: int = 900, private: bool = True, fragment: str = "") -> Tab:
        """A page from the disk in a new tab, which, if private, finds nothing that was kept before.

        The fragment is what follows the page's address in a link, "#" included.
        """
        context = {"browserContextId": self.call("Target.createBrowserContext")["browserContextId"]} if private else {}
        target = self.call("Target.createTarget", url="about:blank", **context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session, context)
        for domain in ("Page", "Runtime", "Network", "Log"):
            tab.call(f"{domain}.enable")
        tab.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        tab.go(page.resolve().as_uri() + fragment)
        return tab


class Tab:
    """One page, driven with keys, clicks and files as a person drives it."""

    def __init__(self, browser: Chromium, session: str, context: dict[str, str]):
        self.browser, self._session, self._context = browser, session, context

    def call(self, method: str, **params: object) -> dict:
        return self.browser.call(method, self._session, **params)

    def go(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self._loaded()

    def reload(self) -> None:
        self.call("Page.reload")
        self._loaded()

    def _loaded(self) -> None:
        self.browser.event("Page.loadEventFired")

    def js(self, expression: str) -> object:
        """The value of a JavaScript expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", expression))
        return result["result"].get("value")

    def text(self, selector: str) -> str:
        return self.js(f"document.querySelector({json.dumps(selector)}).textContent.trim()")

    def until(self, expression: str) -> None:
        """Waits until a JavaScript expression is true."""
        end = time.monotonic() + _SECONDS
        while not self.js(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {expression}")
            time.sleep(0.02)

    def press(self, key: str, code: str = "", shift: bool = False) -> None:
        """A key, with its place on the keyboard where that matters."""
        number = _KEYS.get(key, ord(key[0].upper()))
        what = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": 8 if shift else 0}
        text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **what, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **what)

    def type(self, text: str) -> None:
        """Text into the field that has the focus, as an input method writes it."""
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """A mouse click in the middle of an element."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.js(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        box = self.js(f"{found}.getBoundingClientRect().toJSON()")
        where = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **where, button="left", clickCount=1)

    def answer_dialog(self, accept: bool) -> str:
        """Says yes or no to the question that the page asks; the question."""
        question = self.browser.event("Page.javascriptDialogOpening")["message"]
        self.call("Page.handleJavaScriptDialog", accept=accept)
        return question

    def download_by(self, selector: str, folder: Path) -> Path:
        """What a click on an element downloads."""
        how = {"behavior": "allow", "downloadPath": str(folder.resolve()), "eventsEnabled": True}
        self.browser.call("Browser.setDownloadBehavior", **how, **self._context)
        self.click(selector)
        name = self.browser.event("Browser.downloadWillBegin")["suggestedFilename"]
        self.browser.event("Browser.downloadProgress", lambda progress: progress["state"] == "completed")
        return folder / name

    def give_file(self, selector: str, path: Path) -> None:
        """Chooses a file in a file field."""
        node = self.call("Runtime.evaluate", expression=f"document.querySelector({json.dumps(selector)})")
        self.call("DOM.setFileInputFiles", files=[str(path.resolve())], objectId=node["result"]["objectId"])

    def screenshot(self, path: Path, whole: bool = False) -> None:
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])
