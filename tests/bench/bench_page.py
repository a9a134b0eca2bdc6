#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the daemon's page weighs, how soon Chromium paints it, and what ten open pages cost the daemon.

Usage: bench_page.py TIERPROBED     (needs chromium-driver and python3-selenium)
"""
import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from bench_daemon import cpu_ns, start, stop

PAGES = 10
SETTLE_S = 10
MEASURE_S = 30
PAINTS = 7
LISTEN = "127.0.0.1:17620"
PAINT = "return performance.getEntriesByName('first-contentful-paint').map(e => e.startTime)"


def cost(pid):
    """Processor time of the daemon in percent of a core."""
    time.sleep(SETTLE_S)
    began, cpu = time.monotonic(), cpu_ns(pid)
    time.sleep(MEASURE_S)
    return (cpu_ns(pid) - cpu) / 1e7 / (time.monotonic() - began)


def main():
    from selenium import webdriver
    options = webdriver.ChromeOptions()
    with tempfile.TemporaryDirectory(prefix="tierprobe-bench-") as work:
        target = os.path.join(work, "target")
        os.mkdir(target)
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         f"--user-data-dir={work}/profile"):
            options.add_argument(argument)
        process, _ = start(sys.argv[1], target, work, LISTEN)
        driver = None
        try:
            print(f"no page open: {cost(process.pid):.2f} % of a core")
            driver = webdriver.Chrome(service=webdriver.chrome.service.Service("/usr/bin/chromedriver"), options=options)
            url, paints = f"http://{LISTEN}/", []
            for _ in range(PAINTS):
                driver.get(url)
                while not (found := driver.execute_script(PAINT)):
                    time.sleep(0.05)
                paints += found
            print(f"first paint: median {statistics.median(paints):.0f} ms, max {max(paints):.0f} ms of {PAINTS}")
            parts = driver.execute_script("return performance.getEntriesByType('resource')"
                                          ".filter(e => ['script', 'link', 'other'].includes(e.initiatorType)).map(e => e.name)")
            sizes = []
            for part in {url, *parts}:
                request = urllib.request.Request(part, headers={"Accept": "text/html, */*"})
                with urllib.request.urlopen(request) as answer:
                    sizes.append(len(gzip.compress(answer.read())))
            print(f"weight: {sum(sizes) / 1000:.1f} kB gzipped, in {len(sizes)} parts")
            for _ in range(PAGES - 1):
                driver.switch_to.new_window("window")
                driver.get(url)
            seen = 0
            for handle in driver.window_handles:
                driver.switch_to.window(handle)
                seen += not driver.execute_script("return document.hidden")
            print(f"{seen} pages open and visible: {cost(process.pid):.2f} % of a core")
        finally:
            if driver:
                driver.quit()
            stop(process)


if __name__ == "__main__":
    try:
        import selenium  # noqa: F401
        subprocess.run(["/usr/bin/chromedriver", "--version"], check=True, stdout=subprocess.DEVNULL)
    except (ImportError, OSError):
        print("left out, it needs chromium-driver and python3-selenium")
    else:
        main()
