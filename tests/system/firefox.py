# SPDX-License-Identifier: Apache-2.0
"""A real Firefox without a screen, by WebDriver BiDi: what a test asks of it, in few words."""

import base64
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

import lab
from browser import PICTURES

PROGRAM = shutil.which("firefox-esr")
EVENTS = ["log.entryAdded", "network.beforeRequestSent"]


class Firefox:
    """One window. At its end nothing was said on the console, and nothing was asked of anybody else."""

    def __init__(self, folder):
        import websocket
        self.said = pathlib.Path(folder, "said")
        with self.said.open("wb") as out:
            self.process = subprocess.Popen([PROGRAM, "--headless", "--no-remote", "--remote-debugging-port", "0", "--profile", folder],
                                            stdout=out, stderr=out, env={**os.environ, "HOME": folder})
        url = lab.wait_for("Firefox", lambda: re.search(r"BiDi listening on (ws://\S+)", self.said.read_text()))[1]
        self.socket = websocket.create_connection(f"{url}/session", suppress_origin=True, timeout=60)
        self.numbers, self.events = itertools.count(1), []
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=EVENTS)
        self.window = self.call("browsingContext.getTree")["contexts"][0]["context"]

    def call(self, method, **params):
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while (answer := json.loads(self.socket.recv())).get("id") != number:
            self.events.append(answer)
        assert answer["type"] == "success", answer
        return answer["result"]

    def open(self, service, path="/"):
        self.origin = f"http://{service.listen}"
        self.call("browsingContext.navigate", context=self.window, url=self.origin + path, wait="complete")

    def script(self, expression):
        """What EXPRESSION comes to, as JSON holds it."""
        result = self.call("script.evaluate", target={"context": self.window}, awaitPromise=True,
                           expression=f"JSON.stringify({expression})")
        assert result["type"] == "success", result
        return json.loads(result["result"].get("value", "null"))

    def wait_text(self, text):
        return lab.wait_for(f"'{text}'", lambda: text in self.script("document.body.innerText"))

    def click(self, selector, text):
        """A press of the mouse in the middle of what has TEXT, once it is there."""
        place = lab.wait_for(f"{selector} with '{text}'", lambda: self.script(
            f"(e => {{ e?.scrollIntoView({{block: 'center'}}); const b = e?.getBoundingClientRect(); "
            f"return b && b.width ? [Math.round(b.x + b.width / 2), Math.round(b.y + b.height / 2)] : null }})"
            f"([...document.querySelectorAll({json.dumps(selector)})].find(e => e.textContent.includes({json.dumps(text)})))"))
        moves = [{"type": "pointerMove", "x": place[0], "y": place[1]}, {"type": "pointerDown", "button": 0},
                 {"type": "pointerUp", "button": 0}]
        self.call("input.performActions", context=self.window, actions=[{"type": "pointer", "id": "mouse", "actions": moves}])

    def picture(self, name):
        PICTURES.mkdir(parents=True, exist_ok=True)
        data = self.call("browsingContext.captureScreenshot", context=self.window)["data"]
        (PICTURES / f"{name}.png").write_bytes(base64.b64decode(data))

    def check(self):
        self.call("session.status")
        for event in self.events:
            if event["method"] == "log.entryAdded":
                assert event["params"]["level"] not in ("error", "warn"), event["params"]
            else:
                url = event["params"]["request"]["url"]
                assert url.startswith((self.origin, "data:", "blob:", "about:")), url

    def quit(self):
        self.socket.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def firefox():
    if not PROGRAM:
        pytest.skip("firefox-esr is not installed")
    pytest.importorskip("websocket")
    folder = tempfile.mkdtemp(prefix="tierprobe-firefox-")
    window = Firefox(folder)
    yield window
    try:
        window.check()
    finally:
        window.quit()
        shutil.rmtree(folder, ignore_errors=True)
