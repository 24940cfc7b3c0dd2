"""A headless Chromium without a network, driven over the DevTools protocol on a pipe."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_chromium() -> str | None:
    """The path of an installed Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page in a browser that cannot reach any network; `events` keeps all that it reports."""

    def __init__(self, program: str, width: int = 1280, height: int = 900) -> None:
        self.events: list[dict[str, Any]] = []
        self._last = 0
        self._buffer = b""
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.downloads = Path(self._profile.name) / "downloads"
        read_commands, self._commands = os.pipe()
        self._answers, write_answers = os.pipe()
        # Chromium reads its commands from file 3 and answers on file 4. The two are first moved
        # out of the way, since either may itself be 3 or 4.
        script = 'exec 3<&"$0" 4>&"$1" && shift && exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", script, str(read_commands), str(write_answers), program,
             "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND",
             f"--user-data-dir={self._profile.name}", "--remote-debugging-pipe", "about:blank"],
            pass_fds=(read_commands, write_answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(read_commands)
        os.close(write_answers)
        target = self._send("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self._send("Target.attachToTarget", {"targetId": target, "flatten": True})
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send(
            "Network.emulateNetworkConditions",
            offline=True, latency=0, downloadThroughput=0, uploadThroughput=0,
        )  # fmt: skip
        self.downloads.mkdir()
        self._send(
            "Browser.setDownloadBehavior",
            {"behavior": "allow", "downloadPath": str(self.downloads), "eventsEnabled": True},
        )
        self.resize(width, height)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._send("Browser.close", {})
        finally:
            os.close(self._commands)
            os.close(self._answers)
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._profile.cleanup()

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol for the page and wait for its answer."""
        return self._send(method, params, self._session)

    def open(self, path: Path) -> float:
        """Open a file, wait until it has loaded; the seconds that took."""
        self.events.clear()
        started = time.perf_counter()
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")
        return time.perf_counter() - started

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        answer = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True,
            userGesture=True,
        )  # fmt: skip
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait_for(self, condition: str, seconds: float = 30) -> None:
        """Wait until a JavaScript condition holds."""
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise AssertionError(f"never true: {condition}")
            time.sleep(0.02)

    def downloaded(self, name: str, seconds: float = 10) -> Path:
        """The path of a file that the page saved, once it is there."""
        end = time.monotonic() + seconds
        path = self.downloads / name
        while not path.is_file():
            if time.monotonic() > end:
                raise AssertionError(f"{name} was not saved")
            time.sleep(0.02)
        return path

    def resize(self, width: int, height: int, mobile: bool = False) -> None:
        """Set the size of the window in pixels."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=mobile,
        )  # fmt: skip

    def prefer(self, scheme: str, media: str = "") -> None:
        """Prefer the "light" or the "dark" colour scheme, on the screen or in `media` "print"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", media=media, features=features)

    def picture(self, path: Path) -> None:
        """Save a screenshot of the whole page."""
        answer = self.send("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    @property
    def requests(self) -> list[str]:
        """Addresses that were asked for, those inside the page (data:, blob:) left out."""
        asked = [
            event["params"]["request"]["url"] for event in self._named("Network.requestWillBeSent")
        ]
        return [address for address in asked if not address.startswith(("data:", "blob:"))]

    @property
    def complaints(self) -> list[str]:
        """Failed requests, exceptions, and warnings and errors on the console."""
        found = [str(event["params"]) for event in self._named("Network.loadingFailed")]
        found += [str(event["params"]) for event in self._named("Runtime.exceptionThrown")]
        found += [
            str(event["params"]["args"])
            for event in self._named("Runtime.consoleAPICalled")
            if event["params"]["type"] in ("error", "warning", "assert")
        ]
        found += [
            str(event["params"]["entry"])
            for event in self._named("Log.entryAdded")
            if event["params"]["entry"]["level"] in ("error", "warning")
        ]
        return found

    def _named(self, method: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("method") == method]

    def _send(
        self, method: str, params: dict[str, Any], session: str | None = None
    ) -> dict[str, Any]:
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._answers, 1 << 20)
            if not part:
                raise AssertionError("Chromium ended")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)
