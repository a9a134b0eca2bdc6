/* SPDX-License-Identifier: Apache-2.0 */
/* The server's certificate and key for TLS. Knows GnuTLS, as libmicrohttpd does. Private to src/http. */
#pragma once

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <stdint.h>

typedef struct Certificate {
        gnutls_pcert_st *chain;
        unsigned n_chain;
        gnutls_privkey_t key;
        int64_t not_after_real_ns;
} Certificate;

/* Reads and checks both files: PEM, a pair, valid now; the key readable by its owner and group only. 0 or
 * negative errno with a sentence in RET_ERROR (NULL when out of memory), owned by the caller. */
int certificate_load(const char *cert_path, const char *key_path, Certificate **ret, char **ret_error);
Certificate *certificate_free(Certificate *certificate);
void certificate_freep(Certificate **certificate);
