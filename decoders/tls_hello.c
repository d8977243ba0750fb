/* tls_hello.c - see tls_hello.h. */
#include "tls_hello.h"

enum extension {
    EXT_SERVER_NAME = 0,
    EXT_ALPN = 16,
    EXT_ENCRYPT_THEN_MAC = 22,
    EXT_EARLY_DATA = 42,
    EXT_SUPPORTED_VERSIONS = 43,
};

static bool take8(struct slice *s, struct slice *out)
{
    uint8_t n;

    return slice_u8(s, &n) && slice_take(s, n, out);
}

static bool take16(struct slice *s, struct slice *out)
{
    uint16_t n;

    return slice_be16(s, &n) && slice_take(s, n, out);
}

static bool next_extension(struct slice *list, uint16_t *ret_type, struct slice *ret)
{
    return slice_be16(list, ret_type) && take16(list, ret);
}

/* RFC 6066 3: the first name of type host_name. */
static struct slice server_name(struct slice ext)
{
    struct slice list;
    struct slice name;
    uint8_t type;

    if (take16(&ext, &list) && slice_u8(&list, &type) && type == 0 && take16(&list, &name))
        return name;
    return (struct slice){ 0 };
}

/* RFC 7301 3.1: the server names exactly one. */
static struct slice chosen_protocol(struct slice ext)
{
    struct slice list;
    struct slice name;

    if (take16(&ext, &list) && take8(&list, &name))
        return name;
    return (struct slice){ 0 };
}

bool tls_client_hello_parse(struct slice body, struct tls_client_hello *ret)
{
    struct tls_client_hello h = { 0 };
    struct slice random;
    struct slice skipped;
    struct slice list;
    struct slice ext;
    uint16_t n;

    if (!slice_be16(&body, &n) || !slice_take(&body, TLS_RANDOM, &random) ||
        !take8(&body, &skipped) || !take16(&body, &skipped) || !take8(&body, &skipped))
        return false;
    memcpy(h.random, random.ptr, TLS_RANDOM);
    if (!take16(&body, &list)) /* a hello without extensions ends here */
        list.len = 0;
    while (list.len > 0) {
        if (!next_extension(&list, &n, &ext))
            return false;
        if (n == EXT_SERVER_NAME)
            h.server_name = server_name(ext);
        h.early_data |= n == EXT_EARLY_DATA;
    }
    *ret = h;
    return true;
}

bool tls_server_hello_parse(struct slice body, struct tls_server_hello *ret)
{
    /* RFC 8446 4.1.3: SHA-256 of "HelloRetryRequest" */
    static const uint8_t retry[TLS_RANDOM] = { 0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11,
                                               0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
                                               0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e,
                                               0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c };
    struct tls_server_hello h = { 0 };
    struct slice random;
    struct slice session;
    struct slice list;
    struct slice ext;
    uint8_t compression;
    uint16_t n;

    if (!slice_be16(&body, &h.version) || !slice_take(&body, TLS_RANDOM, &random) ||
        !take8(&body, &session) || !slice_be16(&body, &h.suite) || !slice_u8(&body, &compression))
        return false;
    memcpy(h.random, random.ptr, TLS_RANDOM);
    h.retry = memcmp(h.random, retry, TLS_RANDOM) == 0;
    if (!take16(&body, &list))
        list.len = 0;
    while (list.len > 0) {
        if (!next_extension(&list, &n, &ext))
            return false;
        if (n == EXT_SUPPORTED_VERSIONS && !slice_be16(&ext, &h.version))
            return false;
        if (n == EXT_ALPN)
            h.alpn = chosen_protocol(ext);
        h.encrypt_then_mac |= n == EXT_ENCRYPT_THEN_MAC;
    }
    *ret = h;
    return true;
}

bool tls_extensions_parse(struct slice body, struct tls_extensions *ret)
{
    struct tls_extensions e = { 0 };
    struct slice list;
    struct slice ext;
    uint16_t n;

    if (!take16(&body, &list))
        return false;
    while (list.len > 0) {
        if (!next_extension(&list, &n, &ext))
            return false;
        if (n == EXT_ALPN)
            e.alpn = chosen_protocol(ext);
        e.early_data |= n == EXT_EARLY_DATA;
    }
    *ret = e;
    return true;
}
