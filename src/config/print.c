/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a configuration as a file that reads back to the same. */

#include "config-internal.h"

static void print_section(FILE *out, Section section, const char *name, const void *base)
{
        const SectionRow *row = &config_sections[section];

        (void) fprintf(out, section == 0 ? "[%s%s%s]\n" : "\n[%s%s%s]\n", row->name, name ? " " : "",
                       name ? name : "");
        for (size_t i = 0; row->parameter(i); i++) {
                (void) fprintf(out, "%s = ", row->parameter(i)->name);
                parameter_print(row->parameter(i), base, out);
                (void) fputc('\n', out);
        }
}

void config_print(const Config *config, FILE *out)
{
        for (Section section = 0; section < _SECTION_MAX; section++)
                if (!config_sections[section].named)
                        print_section(out, section, NULL,
                                      (const char *) config + config_sections[section].offset);
        for (size_t i = 0; i < config->n_profiles; i++)
                print_section(out, SECTION_PROFILE, config->profiles[i].name, &config->profiles[i]);
        for (size_t i = 0; i < config->n_targets; i++)
                print_section(out, SECTION_TARGET, config->targets[i].name, &config->targets[i]);
}
