/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that several pages have: frame, requirements, device. */

#include "page-internal.h"

#include "html.h"
#include "svg.h"

#include "tierprobe/page.h"

#include <math.h>
#include <string.h>

const PageFile *page_file_find(const char *name)
{
        for (size_t i = 0; i < n_page_files; i++)
                if (strcmp(page_files[i].name, name) == 0)
                        return &page_files[i];
        return NULL;
}

void page_begin(FILE *out, const char *title, bool live)
{
        const PageFile *style = page_file_find("page.css");

        (void) fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                     "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
                     out);
        html_text(out, title);
        (void) fputs("</title>\n", out);
        if (live)
                (void) fputs("<link rel=\"icon\" href=\"/page/icon.svg\" type=\"image/svg+xml\">\n"
                             "<link rel=\"stylesheet\" href=\"/page/dygraph.css\">\n"
                             "<link rel=\"stylesheet\" href=\"/page/page.css\">\n"
                             "<script src=\"/page/dygraph.js\" defer></script>\n"
                             "<script type=\"module\" src=\"/page/page.js\"></script>\n",
                             out);
        else if (style) {
                (void) fputs("<style>\n", out);
                (void) fwrite(style->data, 1, style->size, out);
                (void) fputs("</style>\n", out);
        }
        (void) fputs("</head>\n<body>\n", out);
}

void page_end(FILE *out, bool live)
{
        if (live)
                (void) fputs("<footer><a href=\"/status\">status as JSON</a></footer>\n", out);
        (void) fputs("</body>\n</html>\n", out);
}

/* ---- requirements ---- */

static const char *criterion_title(const char *name)
{
        if (name && strcmp(name, "write_throughput") == 0)
                return "write throughput";
        if (name && strcmp(name, "write_latency") == 0)
                return "write latency";
        return name;
}

void page_criteria(FILE *out, const json_t *criteria)
{
        size_t i;
        json_t *criterion;

        if (json_array_size(criteria) == 0)
                return;
        (void) fputs("<dl class=\"criteria\">\n", out);
        json_array_foreach(criteria, i, criterion)
        {
                const char *name = page_text_at(criterion, "name"), *unit = page_text_at(criterion, "unit");
                double value = page_number_at(criterion, "value"), limit = page_number_at(criterion, "limit");
                bool pass = page_true_at(criterion, "pass"), least = !name || !strstr(name, "latency");

                (void) fputs("<div><dt>", out);
                html_text(out, criterion_title(name));
                (void) fprintf(out, "</dt><dd><span class=\"figure %s\">",
                               !isfinite(value) ? "unknown"
                               : pass           ? "good"
                                                : "bad");
                html_figure(out, value, NULL);
                (void) fputs(" ", out);
                html_text(out, unit);
                (void) fprintf(out, "</span> <span class=\"need\">%s %s ",
                               !isfinite(value) ? "not measured,"
                               : pass           ? "met,"
                                                : "missed,",
                               least ? "at least" : "under");
                html_figure(out, limit, NULL);
                (void) fputs(" ", out);
                html_text(out, unit);
                (void) fputs(" (", out);
                html_text(out, page_text_at(criterion, "column"));
                (void) fputs(")</span>\n", out);
                svg_bar(out, criterion_title(name), value, limit, least, pass);
                (void) fputs("</dd></div>\n", out);
        }
        (void) fputs("</dl>\n", out);
}

/* ---- the device ---- */

/* The first sensor of the node NAME that has a reading: of NVMe the composite one. Readings are what they are
 * now, or were at their hottest in a run. */
static void temperature(FILE *out, const json_t *heat, const char *name)
{
        size_t i;
        json_t *sensor;

        json_array_foreach(heat, i, sensor)
        {
                const char *device = page_text_at(sensor, "device");
                double now_c = page_number_at(sensor, "now_c"), peak_c = page_number_at(sensor, "peak_c");
                double max_c = page_number_at(sensor, "max_c");

                if (!device || !name || strcmp(device, name) != 0 || !(isfinite(now_c) || isfinite(peak_c)))
                        continue;
                (void) fputs(isfinite(now_c) ? ", " : ", at most ", out);
                html_count(out, isfinite(now_c) ? now_c : peak_c);
                (void) fputs(" °C", out);
                if (isfinite(max_c)) {
                        (void) fputs(" (its limit is ", out);
                        html_count(out, max_c);
                        (void) fputs(" °C)", out);
                }
                return;
        }
}

static void node_line(FILE *out, const json_t *node, const json_t *heat)
{
        static const char *const texts[] = {
                "kind", "model", "firmware", "serial", "dm_name", "backing_file"
        };

        (void) fputs("<b>", out);
        html_text(out, page_text_at(node, "name"));
        (void) fputs("</b>", out);
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
                if (page_text_at(node, texts[i])) {
                        (void) fputs(i == 0   ? " "
                                     : i == 1 ? ", "
                                     : i == 2 ? ", firmware "
                                     : i == 3 ? ", serial "
                                              : ", ",
                                     out);
                        html_text(out, page_text_at(node, texts[i]));
                }
        if (isfinite(page_number_at(node, "size_bytes"))) {
                (void) fputs(", ", out);
                html_bytes(out, page_number_at(node, "size_bytes"));
        }
        temperature(out, heat, page_text_at(node, "name"));
}

/* The first node that has NAME is the parent of all that name it; NULL: none. */
static const json_t *first_node(const json_t *stack, const char *name)
{
        size_t i;
        json_t *node;

        json_array_foreach(stack, i, node)
        {
                const char *its = page_text_at(node, "name");

                if (its && name && strcmp(its, name) == 0)
                        return node;
        }
        return NULL;
}

/* The nodes from index FROM on that name PARENT as theirs (NULL: none): each comes after its parent, so no
 * document can make a circle. DEPTH bounds what a hostile one can nest. */
static void node_tree(FILE *out, const json_t *stack, size_t from, const char *parent, const json_t *heat,
                      int depth)
{
        bool open = false;

        for (size_t i = from; i < json_array_size(stack) && depth < 16; i++) {
                const json_t *node = json_array_get(stack, i);
                const char *name = page_text_at(node, "name"), *its = page_text_at(node, "parent");

                if (its && parent ? strcmp(its, parent) != 0 : its != parent)
                        continue;
                (void) fputs(open ? "<li>" : "<ul><li>", out);
                open = true;
                node_line(out, node, heat);
                if (name && first_node(stack, name) == node)
                        node_tree(out, stack, i + 1, name, heat, depth + 1);
                (void) fputs("</li>", out);
        }
        if (open)
                (void) fputs("</ul>", out);
}

void page_device(FILE *out, const json_t *device, const char *path, const json_t *heat)
{
        (void) fputs("<div class=\"device\"><span class=\"path\">", out);
        html_text(out, path);
        (void) fputs("</span>", out);
        if (!json_is_object(device)) {
                (void) fputs("<p>No device is known below this path.</p></div>\n", out);
                return;
        }
        (void) fputs("<ul><li>", out);
        html_text(out, page_text_at(device, "filesystem"));
        (void) fputs(" on ", out);
        html_text(out, page_text_at(device, "mount_point"));
        node_tree(out, json_object_get(device, "stack"), 0, NULL, heat, 0);
        (void) fputs("</li></ul>", out);
        if (page_text_at(device, "detail")) {
                (void) fputs("<p>", out);
                html_text(out, page_text_at(device, "detail"));
                (void) fputs("</p>", out);
        }
        (void) fputs("</div>\n", out);
}

const json_t *page_deciding_run(const json_t *target)
{
        const json_t *run = json_object_get(target, "standing_run");

        if (!json_is_object(run))
                run = json_object_get(target, "last_run");
        return json_is_object(run) ? run : NULL;
}
