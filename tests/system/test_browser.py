# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser, over real daemons and disks."""

import shutil
import subprocess

import pytest

import lab
from browser import browser  # noqa: F401
from firefox import firefox  # noqa: F401
from harness import free_port, sections_for
from lab.catalog import GOOD, MB

pytestmark = [pytest.mark.disk, pytest.mark.slow, pytest.mark.installed_only, pytest.mark.xdist_group("browser")]

LIMITS = {"write_mb_per_s": 10, "w_await_ms": 1000, "pass_ratio": 0.5}
AXE = "axe-core@4.10.2"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


@pytest.fixture
def served(daemon):
    """served(PATHS, ...) is a daemon that a browser can reach."""
    def start(targets, listen=None, **more):
        more.setdefault("limits", LIMITS)
        sections = sections_for(targets, **more)
        return daemon(sections=sections, listen=listen or f"127.0.0.1:{free_port()}")
    return start


def test_a_run_by_a_click(served, disk, browser):  # noqa: F811
    it = disk(rate=40 * MB)
    service = served(it.path, count=200)
    window = browser()
    window.open(service)
    window.wait_text("It has not been tested yet.")
    window.picture("never-run")
    assert window.script("return document.querySelector('select').value") == "small"  # the target's own
    window.click("button.primary", "Test now")
    assert "0.21 GB" in window.element("#confirm-dialog").text and str(it.path) in window.text("#confirm-dialog")
    window.click("#confirm-dialog button", "Cancel")
    assert service.get("/runs").json["runs"] == []
    window.click("button.primary", "Test now")
    window.click("#confirm-dialog button", "Start the test")
    window.wait_text("A test is running")
    window.picture("running")
    window.wait_text("This disk is fit for a caching tier.")
    run = service.target()["standing_run"]
    assert run["verdict"] == "pass"
    lab.wait_for("the charts", lambda: window.script("return document.querySelectorAll('.graph canvas').length") >= 4)
    window.picture("pass")
    window.click("#runs a")
    window.wait_text(run["id"])
    assert window.driver.current_url.endswith(f"/runs/{run['id']}")
    for text in ("MB/s", "w_await", it.name):
        assert text in window.text()
    window.picture("run")
    assert window.pages_of_print() == 1
    window.click("#copy")
    lab.wait_for("the copy", lambda: window.text("#copy") in ("Copied", "Selected: press Ctrl-C"))


def test_a_fail_with_its_reasons_and_a_refusal(served, disk, browser):  # noqa: F811
    service = served(disk(rate=5 * MB).path, count=20, guard={"cooldown": "1h"})
    assert service.whole_run()["verdict"] == "fail"
    window = browser()
    window.expected.append("429")  # the refusal
    window.open(service)
    window.wait_text("This disk is not fit for a caching tier.")
    reason = service.target()["reasons"][0]
    assert reason["detail"] in window.text("section.target .reasons")
    window.click("button.primary", "Test now")
    window.click("#confirm-dialog button", "Start the test")
    window.wait_text("Refused: ", ".answer")
    assert "Try again after" in window.text(".answer") and "cooldown" in window.text(".answer")
    window.picture("fail")


def test_in_firefox(served, disk, firefox):  # noqa: F811
    it = disk(rate=40 * MB)
    service = served(it.path, count=200)
    firefox.open(service)
    firefox.wait_text("It has not been tested yet.")
    firefox.click("button.primary", "Test now")
    firefox.click("#confirm-dialog button", "Start the test")
    firefox.wait_text("A test is running")
    firefox.wait_text("This disk is fit for a caching tier.")
    lab.wait_for("the charts", lambda: firefox.script("document.querySelectorAll('.graph canvas').length") >= 4)
    firefox.picture("firefox-pass")
    run = service.target()["standing_run"]
    firefox.open(service, f"/runs/{run['id']}")
    firefox.wait_text(run["id"])
    firefox.picture("firefox-run")


def test_by_the_keyboard_alone(served, disk, browser):  # noqa: F811
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys
    service = served(disk(rate=40 * MB).path, count=200)
    window = browser()

    def press(key):
        ActionChains(window.driver).send_keys(key).perform()

    def tab_to(text):
        """What has the focus is outlined, so that one sees where one is."""
        for _ in range(40):
            press(Keys.TAB)
            if text in window.script("const it = document.activeElement; return it === document.body ? '' : it.textContent"):
                break
        focus = "return getComputedStyle(document.activeElement)"
        assert window.script(f"{focus}.outlineStyle") == "solid" and window.script(f"{focus}.outlineWidth") == "3px"
    window.open(service)
    window.element("button.primary", "Test now")
    tab_to("Test now")
    press(Keys.ENTER)
    window.element("#confirm-dialog")
    assert window.script("return document.activeElement.textContent") == "Cancel"  # one key too many starts nothing
    press(Keys.ESCAPE)
    lab.wait_for("no dialog", lambda: not window.script("return document.querySelector('#confirm-dialog')"))
    assert window.script("return document.activeElement.textContent") == "Test now"
    press(Keys.ENTER)
    window.element("#confirm-dialog")
    tab_to("Start the test")
    press(Keys.ENTER)
    window.wait_text("This disk is fit for a caching tier.")


def test_a_hung_disk(served, disk, browser):  # noqa: F811
    it = disk(rate=GOOD, hang_after=64 * MB)
    service = served(it.path, guard={"max_duration": "2s"})
    window = browser()
    window.open(service)
    run_id = service.start_run()
    window.wait_text("This disk is not fit for a caching tier.")
    run = service.wait_run(run_id)
    stalled = next(reason["detail"] for reason in run["reasons"] if reason["code"] == "stalled")
    window.wait_text(stalled, "section.target .reasons")
    window.picture("hung")
    it.unhang()


def test_what_is_not_known_is_a_dash(served, memory, browser):  # noqa: F811
    """A path without a device, in memory: no figure, no sample, nothing to chart."""
    service = served(memory())
    window = browser()
    window.open(service)
    window.wait_text(service.target()["problems"][0]["detail"])
    lab.wait_for("the charts", lambda: window.script("return document.querySelectorAll('.graph canvas').length") >= 4)
    for word in ("null", "NaN", "undefined", "Infinity", "[object"):
        assert word not in window.text()
    window.picture("no-device")


def test_the_chart_moves_each_second(served, disk, browser):  # noqa: F811
    """Without a reload, and without asking for what has not changed."""
    window = browser()
    window.open(served(disk(rate=GOOD).path))
    lab.wait_for("a chart", lambda: window.script("return document.querySelectorAll('.graph canvas').length") >= 4)
    window.script("window.same = true; performance.clearResourceTimings()")
    asked = "return performance.getEntriesByType('resource').filter(e => e.name.includes('/history?')).map(e => e.name)"
    names = lab.wait_for("five requests", lambda: (found := window.script(asked))[4:] and found)
    assert all("since=" in name for name in names) and len(set(names)) == len(names)
    assert window.script("return window.same")


def test_abort(served, disk, browser):  # noqa: F811
    service = served(disk(rate=5 * MB).path)
    service.wait_writing(run_id := service.start_run())
    window = browser()
    window.open(service)
    window.click("button", "Abort")
    assert service.wait_run(run_id)["state"] == "aborted"
    window.wait_text("It has not been tested yet.")


def test_without_scripts(served, disk, browser):  # noqa: F811
    service = served(disk(rate=5 * MB).path, count=20)
    run = service.whole_run()
    window = browser(scripts=False)
    window.open(service)
    text = window.text()
    assert "This disk is not fit for a caching tier." in text and run["reasons"][0]["detail"] in text
    figure, unit = window.text(".figure").split()  # the sentence has it as well
    assert float(figure) == pytest.approx(run["criteria"][0]["value"], rel=0.01) and unit == "MB/s"
    assert "Test now" not in text
    window.open(service, f"/runs/{run['id']}")
    assert run["id"] in window.text()


def test_hostile_names_are_text(served, folder, browser):  # noqa: F811
    name = "<img src=x onerror=window.bad=1> & \"'`"
    (folder / name).mkdir()
    service = served(folder / name, schedule={"interval": "never"})
    window = browser()
    window.open(service)
    window.wait_text(name, "section.target")
    window.click("button.primary", "Test now")
    assert name in window.element("#confirm-dialog").text
    assert window.script("return [window.bad ?? 0, document.querySelectorAll('img').length]") == [0, 0]


def test_the_token_is_asked_for(served, folder, disk, browser):  # noqa: F811
    tokens = folder / "tokens"
    tokens.write_text("ops correct-horse-battery-staple-0123456789\n")
    tokens.chmod(0o600)
    port = free_port()
    service = served(disk(rate=40 * MB).path, count=40, listen=f"127.0.0.1:{port}",
                     http={"listen": f"0.0.0.0:{port}", "token_file": tokens})
    window = browser()
    window.expected.append("401")
    window.open(service)
    window.click("button.primary", "Test now")
    window.click("#confirm-dialog button", "Start the test")
    window.element("#token").send_keys("wrong")
    window.click("#token-dialog button", "Use it")
    window.element("#token").send_keys("correct-horse-battery-staple-0123456789")
    window.click("#token-dialog button", "Use it")
    window.wait_text("This disk is fit for a caching tier.")
    assert window.script("return [localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]


def test_a_lost_connection_is_said_and_comes_back(served, folder, browser):  # noqa: F811
    listen = f"127.0.0.1:{free_port()}"
    service = served(folder, listen=listen)
    window = browser()
    window.expected.append("ERR_CONNECTION|Failed to fetch|ERR_EMPTY|ERR_INCOMPLETE")
    window.open(service)
    window.wait_text("It has not been tested yet.")
    service.stop()
    window.wait_text("No connection to tierprobed", "#connection")
    assert float(window.script("return getComputedStyle(document.querySelector('.state')).opacity")) < 0.6
    window.picture("lost")
    served(folder, listen=listen)
    lab.wait_for("the connection", lambda: window.text("#connection") == "")
    assert window.script("return document.body.classList.contains('lost')") is False


def test_many_targets_and_long_paths_on_a_small_screen(served, folder, browser):  # noqa: F811
    paths = {f"t{i:02}": folder / f"{'x' * 100}{i}" for i in range(20)}
    for path in paths.values():
        path.mkdir()
    service = served(paths)
    window = browser()
    for width, height in ((360, 740), (3840, 2160)):
        window.size(width, height)
        window.open(service)
        lab.wait_for("all charts", lambda: window.script("return document.querySelectorAll('.live:not([hidden])').length") == 20)
        wide = window.script("return [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll') && "
                             "e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))")
        assert wide == [] and window.script("return document.documentElement.scrollWidth") <= width
        window.picture(f"twenty-{width}")


@pytest.mark.skipif(not shutil.which("npm"), reason="npm is not installed, which fetches axe-core")
def test_axe_finds_nothing(served, disk, browser, tmp_path):  # noqa: F811
    fetched = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", AXE], cwd=tmp_path, capture_output=True,
                             timeout=300)
    if fetched.returncode != 0:
        pytest.skip("axe-core cannot be fetched from the npm registry")
    axe = (tmp_path / "node_modules/axe-core/axe.min.js").read_text()
    service = served(disk(rate=GOOD).path, count=200)
    run = service.whole_run()
    window = browser()
    for path in ("/", f"/runs/{run['id']}"):
        for scheme in ("light", "dark"):
            window.scheme(scheme)
            window.open(service, path)
            window.element("h1")
            window.script(axe)
            found = window.driver.execute_async_script(f"axe.run({{runOnly: {RULES}}}).then(r => arguments[0](r.violations))")
            assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], (path, scheme)
