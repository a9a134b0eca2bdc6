# SPDX-License-Identifier: Apache-2.0
"""A real Chromium without a screen, and what a test asks of it.

By itself it takes a picture of a page: browser.py URL FILE"""

import base64
import json
import pathlib
import re
import shutil
import sys
import tempfile
import time

import pytest

from harness import lab

DRIVER = shutil.which("chromedriver")
PICTURES = pathlib.Path(lab.process.os.environ.get("TIERPROBE_BUILD", "build"), "screenshots")


class Browser:
    """One window. At its end nothing was said on the console, and nothing was asked of anybody else."""

    def __init__(self, profile, scripts=True):
        from selenium import webdriver
        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                         "--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}",
                         "--window-size=1200,900", "--disable-features=Translate,OptimizationHints"):
            options.add_argument(argument)
        if not scripts:
            options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=webdriver.chrome.service.Service(DRIVER), options=options)
        self.driver.set_page_load_timeout(60)
        self.expected = []  # patterns of what may stand on the console

    def open(self, service, path="/"):
        self.origin = f"http://{service.listen}"
        self.driver.get(self.origin + path)

    def text(self, selector="body"):
        from selenium.common.exceptions import StaleElementReferenceException

        def look():
            try:
                found = self.driver.find_elements("css selector", selector)
                return [found[0].text if found else ""]
            except StaleElementReferenceException:  # the page was renewed meanwhile
                return None
        return lab.wait_for(f"the text of {selector}", look)[0]

    def element(self, selector, text=""):
        """The one that is shown, and has TEXT, once it is there."""
        from selenium.common.exceptions import StaleElementReferenceException

        def look():
            try:
                return next((one for one in self.driver.find_elements("css selector", selector)
                             if one.is_displayed() and text in one.text), None)
            except StaleElementReferenceException:  # the page was renewed meanwhile
                return None
        return lab.wait_for(f"{selector} with '{text}'", look)

    def click(self, selector, text=""):
        """What is renewed under the mouse is clicked again."""
        from selenium.common.exceptions import WebDriverException

        def attempt():
            try:
                self.element(selector, text).click()
                return True
            except WebDriverException:
                return False
        lab.wait_for(f"a click on {selector}", attempt)

    def wait_text(self, text, selector="body"):
        return lab.wait_for(f"'{text}'", lambda: text in self.text(selector))

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def scheme(self, name):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def picture(self, name):
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(PICTURES / f"{name}.png"))

    def pages_of_print(self):
        pdf = base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
        return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))

    def check(self):
        for entry in self.driver.get_log("browser"):
            said = entry["message"]
            assert any(re.search(pattern, said) for pattern in self.expected), said
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                assert url.startswith((self.origin, "data:", "blob:", "chrome", "about:")), url


@pytest.fixture
def browser():
    """browser(scripts=) opens a window."""
    if not DRIVER:
        pytest.skip("chromedriver is not installed (chromium-driver)")
    pytest.importorskip("selenium")
    windows = []

    def start(scripts=True):
        profile = tempfile.mkdtemp(prefix="tierprobe-chromium-")
        windows.append((Browser(profile, scripts), profile))
        return windows[-1][0]
    yield start
    try:
        for window, _ in windows:
            window.check()
    finally:
        for window, profile in windows:
            window.driver.quit()
            shutil.rmtree(profile, ignore_errors=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="tierprobe-chromium-") as home:
        picture = Browser(home)
        picture.size(1200, 1230)
        picture.driver.get(sys.argv[1])
        time.sleep(5)  # samples to draw
        picture.driver.save_screenshot(sys.argv[2])
        picture.driver.quit()
