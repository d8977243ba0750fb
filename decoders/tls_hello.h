/*
 * tls_hello.h - the handshake messages of TLS 1.2 and 1.3 that an observer has to understand (RFC
 * 8446 4.1, 4.3.1; RFC 5246 7.4.1). Each parser wants the whole body of one message and returns
 * false when it is damaged; slices are borrowed from that body.
 */
#ifndef TLS_HELLO_H
#define TLS_HELLO_H

#include "keylog.h"

struct tls_client_hello {
    uint8_t random[TLS_RANDOM];
    struct slice server_name;
    bool early_data;
};
MUST_CHECK bool tls_client_hello_parse(struct slice body, struct tls_client_hello *ret);

struct tls_server_hello {
    uint8_t random[TLS_RANDOM];
    uint16_t version; /* what is really spoken */
    uint16_t suite;
    struct slice alpn;
    bool encrypt_then_mac;
    bool retry; /* a HelloRetryRequest */
};
MUST_CHECK bool tls_server_hello_parse(struct slice body, struct tls_server_hello *ret);

/* EncryptedExtensions */
struct tls_extensions {
    struct slice alpn;
    bool early_data; /* accepted */
};
MUST_CHECK bool tls_extensions_parse(struct slice body, struct tls_extensions *ret);

#endif
