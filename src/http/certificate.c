/* SPDX-License-Identifier: Apache-2.0 */
/* The server's certificate and key. */

#include "certificate.h"
#include "secret.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define CHAIN_MAX 16

/* An error of GnuTLS as an errno and a sentence about PATH. */
static int tls_fault(int error, const char *path, const char *what, char **ret_error)
{
        if (error == GNUTLS_E_MEMORY_ERROR)
                return -ENOMEM;
        *ret_error = path_format("%s: %s: %s", path, what, gnutls_strerror(error));
        return -EINVAL;
}

/* Lets GnuTLS see whether CERT and KEY belong together. */
static int check_pair(const char *cert_path, const gnutls_datum_t *cert, const char *key_path,
                      const gnutls_datum_t *key, char **ret_error)
{
        gnutls_certificate_credentials_t credentials = NULL;
        int r = gnutls_certificate_allocate_credentials(&credentials);

        if (r < 0)
                return -ENOMEM;
        r = gnutls_certificate_set_x509_key_mem(credentials, cert, key, GNUTLS_X509_FMT_PEM);
        gnutls_certificate_free_credentials(credentials);
        if (r >= 0)
                return 0;
        if (r == GNUTLS_E_MEMORY_ERROR)
                return -ENOMEM;
        *ret_error = path_format("%s and %s are not a pair: %s", cert_path, key_path, gnutls_strerror(r));
        return -EINVAL;
}

static int check_validity(Certificate *certificate, const char *path, char **ret_error)
{
        gnutls_x509_crt_t first = NULL;
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        char text[RFC3339_SIZE];

        int r = gnutls_x509_crt_init(&first);
        if (r < 0)
                return -ENOMEM;
        r = gnutls_x509_crt_import(first, &certificate->chain[0].cert, GNUTLS_X509_FMT_DER);
        time_t begin = r < 0 ? 0 : gnutls_x509_crt_get_activation_time(first);
        time_t end = r < 0 ? 0 : gnutls_x509_crt_get_expiration_time(first);
        gnutls_x509_crt_deinit(first);
        if (r < 0)
                return tls_fault(r, path, "the certificate cannot be read", ret_error);

        /* A certificate "without an end" ends in the year 9999, nanoseconds earlier. */
        const int64_t last_s = INT64_MAX / (int64_t) NS_PER_S - 1;
        int64_t begin_ns = (begin > last_s ? last_s : begin) * (int64_t) NS_PER_S;
        certificate->not_after_real_ns = (end > last_s ? last_s : end) * (int64_t) NS_PER_S;
        if (certificate->not_after_real_ns <= now_ns) {
                *ret_error = path_format("%s: the certificate has expired at %s; renew it", path,
                                         rfc3339_format(text, certificate->not_after_real_ns));
                return -EINVAL;
        }
        if (begin_ns > now_ns) {
                *ret_error = path_format("%s: the certificate is not valid before %s; is the clock right?",
                                         path, rfc3339_format(text, begin_ns));
                return -EINVAL;
        }
        return 0;
}

static int import(Certificate *certificate, const char *cert_path, const gnutls_datum_t *cert,
                  const char *key_path, const gnutls_datum_t *key, char **ret_error)
{
        unsigned n = CHAIN_MAX;

        certificate->chain = calloc(CHAIN_MAX, sizeof *certificate->chain);
        if (!certificate->chain || gnutls_privkey_init(&certificate->key) < 0)
                return -ENOMEM;
        int r = gnutls_pcert_list_import_x509_raw(certificate->chain, &n, cert, GNUTLS_X509_FMT_PEM, 0);
        if (r < 0)
                return tls_fault(r, cert_path, "no certificate in PEM form", ret_error);
        certificate->n_chain = n;
        r = gnutls_privkey_import_x509_raw(certificate->key, key, GNUTLS_X509_FMT_PEM, NULL, 0);
        if (r < 0)
                return tls_fault(r, key_path, "no private key in PEM form without a password", ret_error);
        r = check_pair(cert_path, cert, key_path, key, ret_error);
        return r < 0 ? r : check_validity(certificate, cert_path, ret_error);
}

static gnutls_datum_t datum(char *text, size_t size)
{
        return (gnutls_datum_t){ .data = (unsigned char *) text, .size = (unsigned) size };
}

int certificate_load(const char *cert_path, const char *key_path, Certificate **ret, char **ret_error)
{
        _cleanup_(certificate_freep) Certificate *certificate = calloc(1, sizeof *certificate);
        _cleanup_free_ char *cert_text = NULL;
        char *key_text = NULL;
        size_t cert_size = 0, key_size = 0;

        if (!certificate)
                return -ENOMEM;
        int r = read_file_at(AT_FDCWD, cert_path, SECRET_MAX_BYTES, &cert_text, &cert_size);
        if (r < 0) {
                *ret_error = path_format("%s: the certificate cannot be read: %s", cert_path, strerror(-r));
                return r;
        }
        r = secret_read(key_path, &key_text, &key_size, ret_error);
        if (r < 0)
                return r;
        gnutls_datum_t cert = datum(cert_text, cert_size), key = datum(key_text, key_size);
        r = import(certificate, cert_path, &cert, key_path, &key, ret_error);
        secret_free(key_text, key_size);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(certificate);
        return 0;
}

Certificate *certificate_free(Certificate *certificate)
{
        if (!certificate)
                return NULL;
        for (unsigned i = 0; i < certificate->n_chain; i++)
                gnutls_pcert_deinit(&certificate->chain[i]);
        free(certificate->chain);
        if (certificate->key)
                gnutls_privkey_deinit(certificate->key);
        free(certificate);
        return NULL;
}

void certificate_freep(Certificate **certificate)
{
        certificate_free(*certificate);
}
