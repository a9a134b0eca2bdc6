// SPDX-License-Identifier: Apache-2.0
// Keeps the page fresh, and adds what moves: charts, the button that starts a test. All that is said is in the HTML as
// the daemon makes it; it is fetched anew and put in place, so that nothing is worded twice.

import { TargetChart } from "./chart.js";

const POLL_MS = 2000;  // what is said; while a test is under way it follows each sample
const CHART_MS = 1000;
const GIB = 1e9;
let token = null; // in memory only

function element(name, properties = {}, ...children) {
    const it = Object.assign(document.createElement(name), properties);
    it.append(...children);
    return it;
}

async function fetchJson(path) {
    const answer = await fetch(path, { headers: { Accept: "application/json" } });
    if (!answer.ok) {
        throw new Error(`${path}: ${answer.status}`);
    }
    return answer.json();
}

// ---- fresh HTML ----

function replace(selector, from) {
    const there = document.querySelector(selector), fresh = from.querySelector(selector);
    if (there && fresh && there.innerHTML !== fresh.innerHTML && !there.contains(document.activeElement)) {
        there.replaceChildren(...fresh.childNodes);
    }
    if (there && fresh) {
        there.className = fresh.className;
    }
}

function lost(why) {
    document.body.classList.toggle("lost", why !== null);
    const place = document.querySelector("#connection");
    if (place) {
        place.textContent = why === null ? "" : `No connection to tierprobed (${why}); the figures are old. Trying again.`;
    }
}

async function freshHtml() {
    const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } });
    if (!answer.ok) {
        throw new Error(`HTTP ${answer.status}`);
    }
    return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// ---- starting and aborting ----

function askToken() {
    return new Promise((resolve) => {
        const input = element("input", { type: "password", id: "token", autocomplete: "off", required: true });
        const dialog = element("dialog", { id: "token-dialog" },
            element("form", { method: "dialog" },
                element("p", {}, element("label", { htmlFor: "token" }, "This address asks for a token: "), input),
                element("p", {}, element("button", { className: "primary", value: "ok" }, "Use it"), " ",
                    element("button", { value: "", formNoValidate: true }, "Cancel"))));
        dialog.addEventListener("close", () => {
            dialog.remove();
            resolve(dialog.returnValue === "ok" ? input.value : null);
        });
        document.body.append(dialog);
        dialog.showModal();
    });
}

// Sends POST or DELETE; what was refused is said in PLACE.
async function send(method, path, place) {
    const headers = { Accept: "application/json", ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    let answer;
    place.textContent = "";
    try {
        answer = await fetch(path, { method, headers });
    } catch (error) {
        place.textContent = `No answer: ${error.message}`;
        return;
    }
    if (answer.status === 401) {
        token = await askToken();
        if (token) {
            await send(method, path, place);
        }
        return;
    }
    if (answer.ok) {
        refresh();
        return;
    }
    const problem = await answer.json().catch(() => ({}));
    const details = (problem.targets ?? []).map((target) => target.detail).filter(Boolean);
    const after = answer.headers.get("Retry-After");
    const again = after ? ` Try again after ${new Date(Date.now() + after * 1000).toLocaleTimeString()}.` : "";
    place.textContent = `Refused: ${details.length ? details.join(" ") : problem.detail ?? answer.status}.${again}`;
}

function bytesText(bytes) {
    return typeof bytes === "number" ? `${(bytes / GIB).toFixed(bytes < 10 * GIB ? 2 : 1)} GB` : "an unknown amount";
}

function profileText(profile) {
    const takes = profile.seconds ? `, for at most ${Math.round(profile.seconds / 60)} min` : "";
    return `${profile.name}: writes ${bytesText(profile.bytes)}${takes}`;
}

function confirmRun(target, profile, path) {
    return new Promise((resolve) => {
        const dialog = element("dialog", { id: "confirm-dialog" },
            element("form", { method: "dialog" },
                element("p", {}, `Test ${target} with profile ${profileText(profile)} to ${path}, at full speed?`),
                element("p", {}, "Whatever uses this disk is slower meanwhile. Nothing stays on the disk."),
                element("p", {}, element("button", { className: "primary", value: "ok" }, "Start the test"), " ",
                    element("button", { value: "", autofocus: true }, "Cancel"))));
        dialog.addEventListener("close", () => {
            dialog.remove();
            resolve(dialog.returnValue === "ok");
        });
        document.body.append(dialog);
        dialog.showModal();
    });
}

function addControls(place, target, profiles) {
    const select = element("select", { id: `profile-${target.name}` },
        ...profiles.map((profile) => element("option", { value: profile.name }, profileText(profile))));
    const official = profiles.find((profile) => profile.name === target.profile);
    const start = element("button", { type: "button", className: "primary" }, "Test now");
    const answer = element("p", { className: "answer" });
    if (official) {
        select.value = official.name;
    }
    answer.setAttribute("role", "alert");
    start.addEventListener("click", async () => {
        const profile = profiles.find((one) => one.name === select.value);
        if (await confirmRun(target.name, profile, target.path)) {
            const query = new URLSearchParams({ target: target.name, profile: profile.name });
            await send("POST", `/run?${query}`, answer);
        }
    });
    place.append(element("div", { className: "controls" },
        element("label", { htmlFor: select.id }, `Profile for ${target.name}`), select, start), answer);
}

// ---- the parts of the page ----

const charts = new Map(); // by target
const watched = new Set(); // runs whose events are read

function wireState() {
    for (const button of document.querySelectorAll("[data-abort]")) {
        button.hidden = false;
        if (!button.wired) {
            button.wired = true;
            button.addEventListener("click", () => {
                const place = button.closest("section")?.querySelector(".answer") ?? document.querySelector("#connection");
                send("DELETE", `/runs/${encodeURIComponent(button.dataset.abort)}`, place);
            });
        }
    }
    applyFilter();
}

function applyFilter() {
    const words = (document.querySelector("#filter")?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of document.querySelectorAll("#runs tbody tr")) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
    }
}

// While a run is under way each of its samples moves the page.
function watchRun(id) {
    if (watched.has(id)) {
        return;
    }
    watched.add(id);
    const events = new EventSource(`/runs/${encodeURIComponent(id)}/events`);
    const end = () => {
        events.close();
        watched.delete(id);
    };
    events.addEventListener("progress", refresh);
    events.addEventListener("run", () => { end(); refresh(); });
    events.addEventListener("error", end); // polling goes on
}

function addTargets(status) {
    const profiles = status.profiles ?? [{ name: "procedure", bytes: 10485760000, seconds: 600 }];
    for (const target of status.targets) {
        const section = document.querySelector(`section[data-target="${CSS.escape(target.name)}"]`);
        if (!section) {
            continue;
        }
        if (!charts.has(target.name)) {
            const place = section.querySelector(".live");
            addControls(place, target, profiles);
            charts.set(target.name, new TargetChart(place, target.name, status.limits, fetchJson));
        }
        if (target.current_run?.state === "running") {
            watchRun(target.current_run.id);
        }
    }
}

async function refreshTargets(fresh) {
    const names = (from) => [...from.querySelectorAll("section.target")].map((one) => one.dataset.target).join("\n");
    if (names(document) !== names(fresh)) {
        location.reload(); // the configuration has other targets now
        return;
    }
    replace("#head", fresh);
    for (const section of fresh.querySelectorAll("section.target")) {
        const selector = `section.target[data-target="${CSS.escape(section.dataset.target)}"]`;
        document.querySelector(selector).className = section.className;
        replace(`${selector} .state`, fresh);
    }
    replace("#runs tbody", fresh);
    wireState();
    const [status, runs] = await Promise.all([fetchJson("/status"), fetchJson("/runs?limit=20")]);
    addTargets(status);
    for (const [name, chart] of charts) {
        chart.runs = runs.runs.filter((run) => run.target === name);
    }
    refreshCharts();
}

function refreshCharts() {
    for (const chart of document.hidden ? [] : charts.values()) {
        chart.refresh().catch(() => {}); // a lost connection is said by refresh()
    }
}

let underWay = false;

async function refresh() {
    if (underWay || document.hidden) {
        return;
    }
    underWay = true;
    try {
        const fresh = await freshHtml();
        if (document.querySelector("#targets")) {
            await refreshTargets(fresh);
        } else if (!["finished", "aborted", "failed"].includes(document.querySelector("#run")?.dataset.state)) {
            document.querySelector("#run").replaceWith(fresh.querySelector("#run"));
            wireRun();
        }
        lost(null);
    } catch (error) {
        lost(error.message);
    } finally {
        underWay = false;
    }
}

function wireRun() {
    const copy = document.querySelector("#copy");
    if (!copy || copy.wired) {
        return;
    }
    copy.wired = true;
    copy.hidden = false;
    copy.addEventListener("click", async () => {
        const text = document.querySelector("#ticket");
        try {
            await navigator.clipboard.writeText(text.textContent);
            copy.textContent = "Copied";
        } catch { // no clipboard without https: selected, so that a key will do
            getSelection().selectAllChildren(text);
            copy.textContent = "Selected: press Ctrl-C";
        }
    });
}

document.querySelector("#runs .filter")?.removeAttribute("hidden");
document.querySelector("#filter")?.addEventListener("input", applyFilter);
document.addEventListener("visibilitychange", refresh);
wireRun();
refresh();
setInterval(refresh, POLL_MS);
setInterval(refreshCharts, CHART_MS);
