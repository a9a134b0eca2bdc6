/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration says to the HTTP server. */

#include "web.h"

#include <stdio.h>
#include <stdlib.h>

HttpOptions web_options(const Config *config, const Service *service)
{
        return (HttpOptions){ .listen = config->listen,
                              .n_listen = config->n_listen,
                              .allowed_hosts = config->allowed_hosts,
                              .token_file = config->token_file,
                              .credentials_directory = getenv("CREDENTIALS_DIRECTORY"),
                              .tls_cert = config->tls_cert,
                              .tls_key = config->tls_key,
                              .service = service };
}

int web_load_access(const Config *config, HttpAccess **ret, char **ret_error)
{
        HttpOptions options = web_options(config, NULL);

        return http_access_load(ret, &options, ret_error);
}

int web_check(const Config *config, char **ret_error)
{
        HttpAccess *access = NULL;
        int r = web_load_access(config, &access, ret_error);

        http_access_unref(access);
        return r;
}

bool web_is_same(const Config *before, const Config *config)
{
        if (before->n_listen != config->n_listen || !before->tls_cert != !config->tls_cert)
                return false;
        for (size_t i = 0; i < before->n_listen; i++)
                if (!address_equal(&before->listen[i], &config->listen[i]))
                        return false;
        return true;
}

const char *web_addresses(const HttpServer *server, char *buf, size_t size)
{
        size_t at = 0;
        const char *address = NULL;

        buf[0] = '\0';
        for (size_t i = 0; at < size && (address = http_server_address(server, i)); i++)
                at += (size_t) snprintf(buf + at, size - at, "%s%s", i ? ", " : "", address);
        return buf;
}
