/* input.c - see input.h. stored.c reads and hashes, unpack.c decompresses. */
#include "input.h"

#include "dispatch_log.h"
#include "har.h"
#include "stored.h"
#include "tls.h"
#include "unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEEK_MAX ((size_t)64 * 1024)

/* Fewer bytes are not worth a system call. */
#define DIRECT_MIN ((size_t)16 * 1024)

/* A decompression bomb: gzip cannot exceed 1032 to 1, and honest captures stay far below. */
#define BOMB_BYTES ((uint64_t)1 << 30)
#define BOMB_RATIO ((uint64_t)1024)

struct input {
    struct stored *stored;
    struct unpack *unpack; /* NULL: not compressed */
    struct slice run;      /* stored bytes not used yet */
    uint8_t *front;        /* peeked bytes, not read yet, from front_at on */
    size_t front_at;
    size_t front_len;
    uint64_t unpacked;
    bool begun;
    bool cut;
    const char *damage;
};

const char *input_kind_text(enum input_kind k)
{
    static const char *const text[] = {
        [INPUT_UNKNOWN] = "unknown",
        [INPUT_EMPTY] = "empty",
        [INPUT_PCAP] = "pcap",
        [INPUT_PCAPNG] = "pcapng",
        [INPUT_HAR] = "har",
        [INPUT_KEYLOG] = "keylog",
        [INPUT_DISPATCH_LOG] = "dispatch-log",
    };
    return text[k];
}

static void error_set(struct input_error *e, const char *what, int number)
{
    char text[100];

    if (number == 0)
        snprintf(e->text, sizeof(e->text), "%s", what);
    else
        snprintf(e->text, sizeof(e->text), "%s: %s", what, strerror_r(number, text, sizeof(text)));
}

struct input *input_open(const char *path, struct input_error *reterr)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat st;

    if (fd < 0) {
        error_set(reterr, "cannot be opened", errno);
        return NULL;
    }
    int failed = fstat(fd, &st) != 0 ? errno : 0;
    if (failed != 0 || S_ISDIR(st.st_mode)) {
        error_set(reterr, failed ? "cannot be opened" : "is a directory", failed);
        if (!is_stdin)
            close(fd);
        return NULL;
    }
    if (S_ISREG(st.st_mode))
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    struct input *in = mem_alloc(sizeof(*in));
    in->stored = stored_new(fd, S_ISREG(st.st_mode));
    return in;
}

void input_free(struct input *in)
{
    if (!in)
        return;
    stored_free(in->stored);
    unpack_free(in->unpack);
    free(in->front);
    free(in);
}

/* The next stored bytes into run; false at the end. */
static bool refill(struct input *in)
{
    if (in->run.len > 0)
        return true;
    in->run = stored_next(in->stored);
    if (in->run.len == 0 && !in->damage)
        in->damage = stored_error(in->stored);
    return in->run.len > 0;
}

static void begin(struct input *in)
{
    enum packing packing;

    in->begun = true;
    refill(in);
    packing = packing_of(in->run);
    if (packing != PACKING_NONE)
        in->unpack = unpack_new(packing);
}

static size_t read_plain(struct input *in, uint8_t *buf, size_t n)
{
    struct slice got;

    if (in->run.len == 0 && n >= DIRECT_MIN && !stored_has_digest(in->stored)) {
        size_t len = stored_read(in->stored, buf, n);
        if (len == 0 && !in->damage)
            in->damage = stored_error(in->stored);
        return len;
    }

    if (!refill(in) || !slice_take(&in->run, n < in->run.len ? n : in->run.len, &got))
        return 0;
    memcpy(buf, got.ptr, got.len);
    return got.len;
}

static size_t read_packed(struct input *in, uint8_t *buf, size_t n)
{
    size_t got = unpack_read(in->unpack, &in->run, buf, n);

    while (got == 0 && !unpack_damage(in->unpack) && refill(in))
        got = unpack_read(in->unpack, &in->run, buf, n);
    in->unpacked += got;
    if (got == 0 && !in->damage) {
        in->damage = unpack_damage(in->unpack);
        in->cut = !in->damage && unpack_inside(in->unpack);
        if (in->cut)
            in->damage = "the compressed data ends early: the file is cut";
    }
    if (in->unpacked > BOMB_BYTES && in->unpacked / BOMB_RATIO > stored_bytes(in->stored)) {
        in->damage = "decompresses to more than 1024 times its size: a decompression bomb";
        return 0;
    }
    return got;
}

/* At least one byte, or 0 at the end or on damage. */
static size_t read_some(struct input *in, uint8_t *buf, size_t n)
{
    if (!in->begun)
        begin(in);
    if (in->damage)
        return 0;
    return in->unpack ? read_packed(in, buf, n) : read_plain(in, buf, n);
}

struct slice input_peek(struct input *in, size_t n)
{
    size_t want = n < PEEK_MAX ? n : PEEK_MAX;
    size_t got = 1;

    if (!in->front)
        in->front = mem_grow(NULL, PEEK_MAX);
    if (in->front_at > 0) {
        in->front_len -= in->front_at;
        memmove(in->front, in->front + in->front_at, in->front_len);
        in->front_at = 0;
    }
    while (in->front_len < want && got > 0) {
        got = read_some(in, in->front + in->front_len, want - in->front_len);
        in->front_len += got;
    }
    return (struct slice){ in->front, want < in->front_len ? want : in->front_len };
}

static size_t read_front(struct input *in, uint8_t *buf, size_t n)
{
    size_t have = in->front_len - in->front_at;
    size_t take = n < have ? n : have;

    if (take > 0)
        memcpy(buf, in->front + in->front_at, take);
    in->front_at += take;
    return take;
}

size_t input_read(struct input *in, void *buf, size_t n)
{
    uint8_t *to = buf;
    size_t len = read_front(in, to, n);

    while (len < n) {
        size_t got = read_some(in, to + len, n - len);
        if (got == 0)
            break;
        len += got;
    }
    return len;
}

const char *input_damage(const struct input *in)
{
    return in->damage;
}

bool input_cut(const struct input *in)
{
    return in->cut;
}

bool input_compressed(const struct input *in)
{
    return in->unpack != NULL;
}

static bool is_pcap(struct slice head)
{
    static const uint32_t magic[] = {
        0xa1b2c3d4, 0xd4c3b2a1, /* microseconds */
        0xa1b23c4d, 0x4d3cb2a1, /* nanoseconds */
        0xa1b2cd34, 0x34cdb2a1, /* "modified", by an old Linux patch */
    };
    uint32_t first;

    if (!slice_be32(&head, &first))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(magic); i++) {
        if (first == magic[i])
            return true;
    }
    return false;
}

enum input_kind input_recognise(struct input *in)
{
    static const uint8_t section[4] = { 0x0a, 0x0d, 0x0d, 0x0a };
    struct slice head = input_peek(in, PEEK_MAX);

    if (head.len == 0)
        return in->damage ? INPUT_UNKNOWN : INPUT_EMPTY;
    if (is_pcap(head))
        return INPUT_PCAP;
    if (slice_starts(head, (struct slice){ section, sizeof(section) }))
        return INPUT_PCAPNG;
    if (har_is(head))
        return INPUT_HAR;
    if (keylog_is(head))
        return INPUT_KEYLOG;
    return dispatch_log_is(head) ? INPUT_DISPATCH_LOG : INPUT_UNKNOWN;
}

void input_finish(struct input *in)
{
    in->run.len = 0;
    in->front_at = in->front_len;
    in->begun = true;
    while (refill(in))
        in->run.len = 0;
}

static ssize_t stream_read(void *cookie, char *buf, size_t n)
{
    return (ssize_t)input_read(cookie, buf, n);
}

FILE *input_stream(struct input *in)
{
    FILE *stream = NULL;

    if (!in->begun)
        begin(in);
    size_t ahead = in->run.len + in->front_len - in->front_at; /* peeked, not read */
    if (!in->unpack)
        stream = stored_stream(in->stored, ahead);
    if (!stream)
        return fopencookie(in, "r", (cookie_io_functions_t){ .read = stream_read });
    in->run.len = 0;
    in->front_at = in->front_len;
    return stream;
}

void input_no_thread(struct input *in)
{
    stored_no_thread(in->stored);
}

void input_no_digest(struct input *in)
{
    stored_no_digest(in->stored);
}

uint64_t input_bytes(const struct input *in)
{
    return stored_bytes(in->stored);
}

void input_sha256_hex(const struct input *in, char ret[static 65])
{
    stored_sha256_hex(in->stored, ret);
}
