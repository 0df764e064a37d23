"""Chromium without a window, driven over a pipe by its DevTools protocol.

``Browser.page`` opens a file as a reader with a screen of some width, light or dark, or on paper;
what the page looks like there is asked of it in JavaScript.
"""

import base64
import json
import os
import shutil
import subprocess

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--remote-debugging-pipe",
)  # fmt: skip


class Browser:
    """A browser with a new profile; use it in ``with``."""

    def __init__(self, profile):
        self.profile, self.asked = profile, 0
        self.complaints = []  # errors of scripts, and what they write to the console

    def __enter__(self):
        read, self.write = os.pipe()
        self.read, write = os.pipe()

        def pipes():  # the protocol is spoken over file descriptors 3 and 4
            high = [os.dup(fd) for fd in (read, write)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(read)
        os.close(write)
        self.answers = os.fdopen(self.read, "rb")
        self.buffer = b""
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self.session = found["sessionId"]
        for domain in ("Page", "Runtime"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.answers.close()
        os.close(self.write)

    def ask(self, method, **parameters):
        """The answer to one command."""
        self.asked += 1
        message = {"id": self.asked, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.asked:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self):
        while b"\0" not in self.buffer:
            more = self.answers.read1(1 << 20)
            assert more, "the browser has ended"
            self.buffer += more
        text, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(text)
        if message.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
            self.complaints.append(message["params"])
        if message.get("method") == "Page.loadEventFired":
            self.loaded = True
        return message

    def page(self, file, width=1280, height=900, media="screen", scheme="light"):
        """Open a file and wait until it is there."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=width < 600,
        )  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", media=media, features=features)
        self.loaded = False
        self.ask("Page.navigate", url=file.as_uri())
        while not self.loaded:
            self._next()

    def see(self, script):
        """The value of an expression of JavaScript in the page."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def picture(self, whole=False):
        """What the reader sees, or the whole page, as PNG."""
        found = self.ask("Page.captureScreenshot", captureBeyondViewport=whole, **self._clip(whole))
        return base64.b64decode(found["data"])

    def _clip(self, whole):
        if not whole:
            return {}
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {**size, "scale": 1}}

    def pdf(self):
        """The page as it is printed."""
        self.ask("Emulation.setEmulatedMedia", media="print")
        found = self.ask("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        return base64.b64decode(found["data"])
