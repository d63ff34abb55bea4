"""A real browser without a screen: Chromium, over the pipe of its DevTools protocol."""

import base64
import json
import os
import shutil
import subprocess
import time
from itertools import count
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE_MS = 60_000
KEYS = {"Tab": (9, ""), "Enter": (13, "\r")}
PICTURES = os.environ.get("JOBCAST_PICTURES")
"""A folder for pictures of pages, to be looked at."""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def found():
    """Its path, None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


needed = pytest.mark.skipif(found() is None, reason="there is no Chromium here")


class Browser:
    """One page. What its console says of mistakes, and exceptions, are in `errors`, what it asked for in `requests`."""

    def __init__(self, folder):
        self.errors, self.requests, self._numbers = [], [], count(1)
        down, up = os.pipe(), os.pipe()
        arguments = [
            found(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
            "--disable-background-networking", "--disable-dev-shm-usage", f"--user-data-dir={folder}", "about:blank",
        ]  # fmt: skip

        def as_three_and_four():
            # Away from 3 and 4 first: they may be among our own.
            read, write = os.dup(down[0]), os.dup(up[1])
            os.dup2(read, 3)
            os.dup2(write, 4)

        self._process = subprocess.Popen(
            arguments, stderr=subprocess.DEVNULL, preexec_fn=as_three_and_four, close_fds=False
        )
        os.close(down[0])
        os.close(up[1])
        self._to, self._from, self._rest = down[1], up[0], b""
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self._session = None
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._to)
        self._process.terminate()
        self._process.wait(10)
        os.close(self._from)

    def _send(self, method, **params):
        number, session = next(self._numbers), getattr(self, "_session", None)
        message = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self._hear(answer)

    def _read(self):
        while b"\0" not in self._rest:
            part = os.read(self._from, 1 << 16)
            assert part, "the browser has gone"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _hear(self, event):
        method, params = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        if method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"]["text"])
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str(params["args"]))
        if method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])

    def open(self, url, width=1200, dark=False):
        """Go to an address."""
        self._send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", media="", features=[scheme])
        self._send("Page.navigate", url=url)
        end_s = time.monotonic() + PATIENCE_MS / 1000.0
        while self.run("document.readyState + location.href") != f"complete{url}":
            assert time.monotonic() < end_s, url
            time.sleep(0.02)

    def paper(self):
        """The page as styles have it on paper, until another is opened."""
        self._send("Emulation.setEmulatedMedia", media="print")

    def run(self, script):
        """The value of an expression in the page."""
        result = self._send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, condition):
        """Until an expression is true of the page."""
        script = (
            f"new Promise((done) => {{ const end = Date.now() + {PATIENCE_MS}; const look = () => "
            f"{{ if ({condition}) done(true); else if (Date.now() > end) done(false); else setTimeout(look, 20); }}; "
            "look(); })"
        )
        assert self.run(script), f"{condition}: {self.run('document.body.innerText')}"

    def press(self, key):
        """A key goes down and up."""
        code, text = KEYS[key]
        self._send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, text=text)
        self._send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text):
        """Text goes where the focus is."""
        self._send("Input.insertText", text=text)

    def picture(self, name):
        """All of the page, as PNG, where pictures are wanted."""
        if PICTURES:
            data = self._send("Page.captureScreenshot", captureBeyondViewport=True)["data"]
            Path(PICTURES, f"{name}.png").write_bytes(base64.b64decode(data))
