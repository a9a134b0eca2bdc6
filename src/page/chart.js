// SPDX-License-Identifier: Apache-2.0
// The chart of a target's device: throughput and latency over time, against their limits, test runs as shaded spans.
/* global Dygraph */

const SPANS = [
    { name: "10 minutes", seconds: 600, step: 0 },       // step 0: the samples themselves
    { name: "1 hour", seconds: 3600, step: 10 },
    { name: "24 hours", seconds: 86400, step: 120 },
    { name: "30 days", seconds: 30 * 86400, step: 3600 },
];
const FIGURES = [
    { key: "wkB/s", label: "MB/s written", factor: 1e-3, limit: "write_mb_per_s" },
    { key: "w_await", label: "w_await, ms", factor: 1, limit: "w_await_ms" },
];

// Its legend sets styles in HTML, which the page's Content-Security-Policy forbids: the readout below takes its place.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => plugin !== Dygraph.Plugins.Legend);

function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// [min, mean, max] of a bucket's or a sample's figure; a figure that is not known is a gap.
function band(row, figure) {
    const value = row[figure.key];
    const parts = value !== null && typeof value === "object" ? [value.min, value.mean, value.max] : [value, value, value];
    return parts.every((part) => typeof part === "number") ? parts.map((part) => part * figure.factor) : [null, null, null];
}

export class TargetChart {
    constructor(place, target, limits, fetchJson) {
        Object.assign(this, { target, limits, fetchJson, rows: [], runs: [], cursor: null, span: SPANS[0], due: 0, graphs: [] });
        const controls = document.createElement("div");
        controls.className = "controls";
        controls.setAttribute("role", "group");
        controls.setAttribute("aria-label", `time span of the charts of ${target}`);
        for (const span of SPANS) {
            const button = document.createElement("button");
            button.type = "button";
            button.textContent = span.name;
            button.setAttribute("aria-pressed", String(span === this.span));
            button.addEventListener("click", () => this.show(span, controls, button));
            controls.append(button);
        }
        place.append(controls);
        // A host may have many targets: those that nobody sees ask for nothing.
        this.seen = false;
        new IntersectionObserver((entries) => {
            this.seen = entries.at(-1).isIntersecting;
            this.refresh().catch(() => {});
        }).observe(place);
        for (const figure of FIGURES) {
            const graph = document.createElement("div");
            graph.className = "graph";
            const title = document.createElement("p");
            title.className = "note";
            const readout = document.createElement("span");
            readout.className = "readout";
            title.append(`${figure.label}, dashed: the limit `, readout);
            place.append(title);
            graph.setAttribute("role", "img");
            graph.setAttribute("aria-label", `${figure.label} of ${target} over time, with its limit`);
            place.append(graph);
            this.graphs.push({ figure, place: graph, readout, dygraph: null });
        }
        place.hidden = false;
    }

    show(span, controls, pressed) {
        for (const button of controls.children) {
            button.setAttribute("aria-pressed", String(button === pressed));
        }
        Object.assign(this, { span, rows: [], cursor: null, due: 0 });
        for (const graph of this.graphs) {
            graph.dygraph?.resetZoom();
        }
        this.refresh();
    }

    // Fetches what is new, if it is time to.
    async refresh() {
        if (Date.now() < this.due || this.busy || (!this.seen && this.graphs[0].dygraph)) {
            return;
        }
        this.busy = true;
        const { span } = this;
        try {
            const query = new URLSearchParams({ target: this.target });
            if (span.step) {
                const now = Math.ceil(Date.now() / 1000 / span.step) * span.step;
                query.set("step", span.step);
                query.set("from", new Date((now - span.seconds) * 1000).toISOString());
                query.set("to", new Date(now * 1000).toISOString());
            } else if (this.cursor) {
                query.set("since", this.cursor);
            } else {
                query.set("limit", span.seconds);
            }
            const answer = await this.fetchJson(`/history?${query}`);
            if (span !== this.span) {
                return; // another one was chosen meanwhile
            }
            this.rows = span.step ? answer.buckets : [...this.rows, ...answer.samples];
            this.cursor = span.step ? null : answer.next_cursor;
            this.due = Date.now() + (span.step ? span.step * 1000 : 900);
            this.draw();
        } finally {
            this.busy = false;
        }
    }

    data(figure) {
        const rows = [];
        const from = Date.now() - this.span.seconds * 1000;
        let last = null;
        for (const row of this.rows) {
            const time = Date.parse(row.time);
            const step = (row.interval_s ?? this.span.step) * 1000;
            if (last !== null && time - last > 2.5 * step) {
                rows.push([new Date(last + 1), [null, null, null]]); // nothing was sampled: a gap is drawn as a gap
            }
            rows.push([new Date(time), band(row, figure)]);
            last = time;
        }
        if (!this.span.step) {
            this.rows = this.rows.filter((row) => Date.parse(row.time) >= from);
        }
        return rows.length ? rows : [[new Date(from), [null, null, null]], [new Date(), [null, null, null]]];
    }

    // From zero to what is above both the limit, which is always in sight, and all values.
    range(figure, file) {
        const limit = this.limits?.[figure.limit];
        const top = file.reduce((most, row) => Math.max(most, row[1][2] ?? 0), typeof limit === "number" ? limit : 0);
        return [0, top > 0 ? 1.1 * top : null];
    }

    draw() {
        for (const graph of this.graphs) {
            const file = this.data(graph.figure);
            const valueRange = this.range(graph.figure, file);
            if (graph.dygraph) {
                // What somebody zoomed to stays; a range that was set here counts as zoomed, too.
                const zoomed = graph.dygraph.isZoomed("x") ||
                    (graph.dygraph.isZoomed("y") && String(graph.dygraph.yAxisRange()) !== String(graph.range));
                graph.dygraph.updateOptions(zoomed ? { file } : { file, valueRange });
                graph.range = zoomed ? graph.range : graph.dygraph.yAxisRange();
                continue;
            }
            graph.dygraph = new Dygraph(graph.place, file, {
                labels: ["time", graph.figure.label], customBars: true, includeZero: true,
                colors: [color("--line")], axisLineColor: color("--rule"), gridLineColor: color("--rule"), labelsUTC: false,
                axisLabelWidth: 70, animatedZooms: false, valueRange,
                highlightCallback: (event, x, points) => {
                    graph.readout.textContent = points.length
                        ? `${new Date(x).toLocaleString()}: ${Number(points[0].yval.toPrecision(4))}` : "";
                },
                unhighlightCallback: () => { graph.readout.textContent = ""; },
                underlayCallback: (canvas, area, dygraph) => this.underlay(canvas, area, dygraph, graph.figure),
            });
            graph.range = graph.dygraph.yAxisRange();
        }
    }

    underlay(canvas, area, dygraph, figure) {
        for (const run of this.runs) {
            const left = dygraph.toDomXCoord(Date.parse(run.started_at));
            const right = dygraph.toDomXCoord(run.finished_at ? Date.parse(run.finished_at) : Date.now());
            if (!run.started_at || right < area.x || left > area.x + area.w) {
                continue;
            }
            const from = Math.max(left, area.x);
            canvas.fillStyle = color(run.verdict ? `--${run.verdict}` : "--soft") || color("--soft");
            canvas.globalAlpha = 0.18;
            canvas.fillRect(from, area.y, Math.max(Math.min(right, area.x + area.w) - from, 2), area.h);
            canvas.globalAlpha = 1;
            canvas.fillText(run.verdict ?? run.state, from + 2, area.y + 10);
        }
        const limit = this.limits?.[figure.limit];
        const y = typeof limit === "number" ? dygraph.toDomYCoord(limit) : NaN;
        if (y >= area.y && y <= area.y + area.h) {
            canvas.strokeStyle = color("--fail");
            canvas.setLineDash([6, 3]);
            canvas.beginPath();
            canvas.moveTo(area.x, y);
            canvas.lineTo(area.x + area.w, y);
            canvas.stroke();
            canvas.setLineDash([]);
        }
    }
}
