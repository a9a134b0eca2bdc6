# SPDX-License-Identifier: Apache-2.0
"""deploy/prometheus as its reader would use it: the rules' own tests, and the real Prometheus and Alertmanager over a good,
a slow and a hung disk."""

import http.server
import json
import re
import shutil
import subprocess
import threading

import pytest

from harness import ROOT, free_port, lab, sections_for
from lab.catalog import GOOD, SLOW

FOLDER = ROOT / "deploy" / "prometheus"

pytestmark = [pytest.mark.slow,
              pytest.mark.skipif(not all(map(shutil.which, ("prometheus", "promtool", "prometheus-alertmanager", "amtool"))),
                                 reason="Prometheus or its Alertmanager is not installed")]


def alerts():
    return re.findall(r"^      - alert: (\w+)$", (FOLDER / "rules.yml").read_text(), re.MULTILINE)


@pytest.mark.parametrize("command", [("promtool", "check", "rules", "rules.yml"),
                                     ("promtool", "check", "config", "prometheus.yml"),
                                     ("promtool", "test", "rules", "rules-test.yml"),
                                     ("amtool", "check-config", "alertmanager.yml")])
def test_the_files_are_valid(command):
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested_and_explained():
    """Once firing, once not; with something to do in the text that it points to."""
    tests, text = (FOLDER / "rules-test.yml").read_text(), (FOLDER / "README.md").read_text()
    assert len(alerts()) == 10
    for name in alerts():
        assert re.search(rf"eval_time: \w+\n        alertname: {name}\n        exp_alerts:\n          - exp_labels:", tests), name
        assert re.search(rf"\{{eval_time: \w+, alertname: {name}\}}", tests), name
        assert f"runbook: README.md#{name.lower()}\n" in (FOLDER / "rules.yml").read_text()
        assert f"\n### {name}\n" in text
    assert set(re.findall(r"^### (\w+)$", text, re.MULTILINE)) == set(alerts())


# ---- the real ones ----

@pytest.fixture
def webhook():
    """Takes what an Alertmanager sends; `sent` is a list of (status, alert, target)."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.sent += [(alert["status"], alert["labels"]["alertname"], alert["labels"].get("target"))
                            for alert in document["alerts"]]
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.sent = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def alertmanager(tmp_path, webhook):
    """The address of one with the configuration shown, but at once, at any hour, and to the webhook here."""
    text = (FOLDER / "alertmanager.yml").read_text()
    for what, with_what in (("group_wait: 30s", "group_wait: 1s"), ("group_interval: 5m", "group_interval: 1s"),
                            ("      mute_time_intervals: [maintenance]\n", ""),
                            ("http://127.0.0.1:9095/", f"http://127.0.0.1:{webhook.server_port}/")):
        assert what in text
        text = text.replace(what, with_what)
    (tmp_path / "alertmanager.yml").write_text(text)
    address = f"127.0.0.1:{free_port()}"
    with open(tmp_path / "alertmanager.log", "wb") as log:
        process = lab.spawn("prometheus-alertmanager", f"--config.file={tmp_path}/alertmanager.yml",
                            f"--storage.path={tmp_path}/alertmanager", f"--web.listen-address={address}",
                            "--cluster.listen-address=", stdout=log, stderr=log)
    yield address
    lab.kill(process)


@pytest.mark.disk
def test_the_right_alerts_and_only_those(daemon, disk, prometheus, alertmanager, webhook):
    good, slow, hung = disk(rate=GOOD), disk(rate=SLOW), disk(rate=GOOD, hang_after=32 << 20)
    service = daemon(sections=sections_for({"good": good.path, "slow": slow.path, "hung": hung.path}, count=100,
                                           guard={"max_duration": "10s"}), listen=f"127.0.0.1:{free_port()}")
    runs = {name: service.start_run(name) for name in ("good", "slow", "hung")}
    verdicts = {name: service.wait_run(run_id)["verdict"] for name, run_id in runs.items()}
    assert verdicts == {"good": "pass", "slow": "fail", "hung": "fail"}

    ask = prometheus(service.listen, rule_files=[str(FOLDER / "rules.yml")],
                     alerting={"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]})
    expected = {("firing", "TierprobeFailed", "slow"), ("firing", "TierprobeFailed", "hung")}
    lab.wait_for("both alerts", lambda: set(webhook.sent) >= expected)
    firing = ask('ALERTS{alertstate="firing"}')
    assert {(labels["alertname"], labels["target"]) for labels, _ in firing} == {alert[1:] for alert in expected}
    by_verdict = {labels["verdict"]: value for labels, value in ask("verdict:tierprobe_verdict:sum")}
    assert by_verdict == {"pass": 1, "fail": 2, "inconclusive": 0, "never_run": 0}

    # Each expression of the dashboard has data.
    texts = re.findall(r'"expr": ("(?:[^"\\]|\\.)*")', (FOLDER / "dashboard.json").read_text())
    assert len(texts) > 15
    for expression in {json.loads(text) for text in texts}:
        query = expression.replace("$instance", ".*").replace("$target", ".*").removesuffix(" == 1")
        lab.wait_for(query, lambda query=query: ask(query))

    # Mended, tested again: resolved, and nothing else has been said meanwhile.
    slow.behave(rate=GOOD)
    hung.unhang()
    hung.behave(rate=GOOD)
    lab.wait_for("the writers to be gone", lambda: not slow.open_files() and not hung.open_files())
    for name in ("slow", "hung"):
        assert service.whole_run(name)["verdict"] == "pass"
    lab.wait_for("both to be resolved", lambda: set(webhook.sent) >= {("resolved", *alert[1:]) for alert in expected})
    assert {alert[1:] for alert in webhook.sent} == {alert[1:] for alert in expected}

