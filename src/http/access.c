/* SPDX-License-Identifier: Apache-2.0 */
/* Who may ask, and the certificate to answer with: read from files, checked, and held together. */

#include "access.h"
#include "secret.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CREDENTIAL "token" /* its name in LoadCredential= */

static int load_tokens(const char *path, Tokens **ret, char **ret_error)
{
        char *text = NULL, why[TOKENS_ERROR_SIZE] = "";
        size_t size = 0;

        int r = secret_read(path, &text, &size, ret_error);
        if (r < 0)
                return r;
        r = tokens_parse(text, size, ret, why);
        secret_free(text, size);
        if (r == -EINVAL)
                *ret_error = path_format("%s: %s", path, why);
        return r;
}

/* From the file named, or from the credential that systemd passed, if it did. */
static int find_tokens(HttpAccess *access, const HttpOptions *options, char **ret_error)
{
        if (options->token_file)
                return load_tokens(options->token_file, &access->tokens, ret_error);
        if (!options->credentials_directory)
                return 0;
        _cleanup_free_ char *path = path_format("%s/" CREDENTIAL, options->credentials_directory);
        if (!path)
                return -ENOMEM;
        return faccessat(AT_FDCWD, path, F_OK, 0) == 0 ? load_tokens(path, &access->tokens, ret_error) : 0;
}

/* Whether one of the addresses is of TCP: Unix sockets never speak TLS. */
static bool has_tcp(const HttpOptions *options)
{
        for (size_t i = 0; i < options->n_listen; i++)
                if (options->listen[i].any.sa_family != AF_UNIX)
                        return true;
        return false;
}

static int find_certificate(HttpAccess *access, const HttpOptions *options, char **ret_error)
{
        if (!options->tls_cert && !options->tls_key)
                return 0;
        if (!options->tls_cert || !options->tls_key) {
                *ret_error =
                        path_format("%s: tls_cert and tls_key in [http] go together; set the other one too",
                                    options->tls_cert ? options->tls_cert : options->tls_key);
                return -EINVAL;
        }
        if (!has_tcp(options)) {
                *ret_error = path_format("%s: tls_cert has no effect: there are only Unix sockets in [http] "
                                         "listen; add an address, or remove tls_cert and tls_key",
                                         options->tls_cert);
                return -EINVAL;
        }
        return certificate_load(options->tls_cert, options->tls_key, &access->certificate, ret_error);
}

int http_access_load(HttpAccess **ret, const HttpOptions *options, char **ret_error)
{
        _cleanup_(http_access_unrefp) HttpAccess *access = calloc(1, sizeof *access);

        *ret_error = NULL;
        if (!access)
                return -ENOMEM;
        access->n_refs = 1;
        if (options->allowed_hosts) {
                access->allowed_hosts = strdup(options->allowed_hosts);
                if (!access->allowed_hosts)
                        return -ENOMEM;
        }
        int r = find_tokens(access, options, ret_error);
        if (r >= 0)
                r = find_certificate(access, options, ret_error);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(access);
        return 0;
}

HttpAccess *http_access_ref(HttpAccess *access)
{
        access->n_refs++;
        return access;
}

HttpAccess *http_access_unref(HttpAccess *access)
{
        if (!access || --access->n_refs > 0)
                return NULL;
        free(access->allowed_hosts);
        tokens_free(access->tokens);
        certificate_free(access->certificate);
        free(access);
        return NULL;
}

void http_access_unrefp(HttpAccess **access)
{
        http_access_unref(*access);
}
