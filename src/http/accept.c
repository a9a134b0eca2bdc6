/* SPDX-License-Identifier: Apache-2.0 */
/* What a client takes. */

#include "accept.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char blanks[] = " \t";

/* One element of a list: "text/html;level=1;q=0.7". */
typedef struct Element {
        const char *name;
        size_t size;
        double quality;
} Element;

/* Reads the element at TEXT; what follows its comma, NULL at the end. */
static const char *take_element(const char *text, Element *ret)
{
        const char *end = text + strcspn(text, ",");

        text += strspn(text, blanks);
        *ret = (Element){ .name = text, .size = strcspn(text, ",; \t"), .quality = 1 };
        for (const char *p = text; (p = memchr(p, ';', (size_t) (end - p)));) {
                p++;
                p += strspn(p, blanks);
                if (strncasecmp(p, "q=", 2) != 0)
                        continue;
                double quality = strtod(p + 2, NULL);
                ret->quality = isfinite(quality) && quality >= 0 && quality <= 1 ? quality : 0;
        }
        return *end ? end + 1 : NULL;
}

/* How well the range of ELEMENT fits TYPE: 3 exactly, 2 as "text/" and a star, 1 as two stars, 0 not at all.
 */
static int fit(const Element *element, const char *type)
{
        size_t main_size = strcspn(type, "/") + 1;

        if (element->size == strlen(type) && strncasecmp(element->name, type, element->size) == 0)
                return 3;
        if (element->size == main_size + 1 && strncasecmp(element->name, type, main_size) == 0 &&
            element->name[main_size] == '*')
                return 2;
        return element->size == 3 && strncmp(element->name, "*/*", 3) == 0;
}

double accept_quality(const char *accept, const char *type)
{
        double found = 0;
        int best = 0;

        if (!accept)
                return 1;
        while (accept) {
                Element element;

                accept = take_element(accept, &element);
                int its = fit(&element, type);
                if (its > best) {
                        best = its;
                        found = element.quality;
                }
        }
        return found;
}

bool accept_gzip(const char *encodings)
{
        while (encodings) {
                Element element;

                encodings = take_element(encodings, &element);
                if (element.size == 4 && strncasecmp(element.name, "gzip", 4) == 0)
                        return element.quality > 0;
        }
        return false;
}

bool accept_etag(const char *list, const char *etag)
{
        size_t length = strlen(etag);

        while (list && *list) {
                list += strspn(list, " \t,");
                if (*list == '*')
                        return true;
                /* The comparison is the weak one: RFC 9110, 13.1.2. */
                if (strncmp(list, "W/", 2) == 0)
                        list += 2;
                if (strncmp(list, etag, length) == 0 && strchr(" \t,", list[length]))
                        return true;
                list += strcspn(list, ",");
        }
        return false;
}
