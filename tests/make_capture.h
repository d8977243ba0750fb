/*
 * make_capture.h - captures and frames built by the tests themselves, and a way to open bytes as an
 * input without leaving a file behind.
 */
#ifndef MAKE_CAPTURE_H
#define MAKE_CAPTURE_H

#include "capture.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct made {
    uint8_t *ptr;
    size_t len;
    size_t cap;
    bool little; /* byte order of put16, put32, put64 */
};

static inline void made_freep(struct made *m)
{
    free(m->ptr);
}

static inline struct slice made_slice(const struct made *m)
{
    return (struct slice){ m->ptr ? m->ptr : (const uint8_t *)"", m->len };
}

static inline void put(struct made *m, const void *p, size_t n)
{
    while (m->len + n > m->cap)
        m->ptr = mem_double(m->ptr, &m->cap, 1);
    if (n > 0)
        memcpy(m->ptr + m->len, p, n);
    m->len += n;
}

static inline void put_slice(struct made *m, struct slice s)
{
    put(m, s.ptr, s.len);
}

static inline void put_fill(struct made *m, uint8_t byte, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put(m, &byte, 1);
}

static inline void put8(struct made *m, unsigned v)
{
    put_fill(m, (uint8_t)v, 1);
}

static inline void put_number(struct made *m, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        size_t shift = 8 * (m->little ? i : bytes - 1 - i);
        put8(m, (unsigned)(v >> shift & 0xff));
    }
}

static inline void put16(struct made *m, unsigned v)
{
    put_number(m, v, 2);
}

static inline void put32(struct made *m, uint32_t v)
{
    put_number(m, v, 4);
}

static inline void put64(struct made *m, uint64_t v)
{
    put_number(m, v, 8);
}

/* Overwrites a 16-bit big-endian number, such as a length known only at the end. */
static inline void patch16(struct made *m, size_t at, size_t v)
{
    m->ptr[at] = (uint8_t)(v >> 8);
    m->ptr[at + 1] = (uint8_t)v;
}

/* An input over a copy of the bytes. */
static inline struct input *input_of(struct slice s)
{
    struct input_error err = { "" };
    char path[40];
    int fd = memfd_create("test", MFD_CLOEXEC);
    struct slice rest = s;

    assert(fd >= 0);
    while (rest.len > 0) {
        ssize_t n = write(fd, rest.ptr, rest.len);
        assert(n > 0);
        rest.ptr += n;
        rest.len -= (size_t)n;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct input *in = input_open(path, &err); /* opens it anew, from the start */
    assert(in);
    close(fd);
    return in;
}

/* What one reading of a capture gave. */
struct reading {
    bool opened;
    size_t frames;
    uint64_t digest[64]; /* of the frames up to each */
    enum capture_status status;
    char message[512];
};

static inline uint64_t frame_digest(const struct frame *f)
{
    uint64_t h = hash_mix(hash_bytes(f->data), (uint64_t)f->at.time);

    h = hash_mix(h, (uint64_t)f->wire_len << 32 | f->at.frame);
    return hash_mix(h, (uint64_t)f->interface << 32 | (uint32_t)f->linktype);
}

static inline struct reading read_all(struct slice bytes)
{
    struct reading r = { 0 };
    struct input_error err = { "" };
    struct input *in = input_of(bytes);
    struct capture *cap = capture_open(in, 0, &err);
    struct frame f;

    snprintf(r.message, sizeof(r.message), "%s", err.text);
    r.opened = cap != NULL;
    while (cap && (r.status = capture_next(cap, &f)) == CAPTURE_FRAME) {
        uint64_t before = r.frames > 0 ? r.digest[(r.frames - 1) % ARRAY_LEN(r.digest)] : 0;
        r.digest[r.frames++ % ARRAY_LEN(r.digest)] = hash_mix(before, frame_digest(&f));
    }
    if (cap) {
        snprintf(r.message, sizeof(r.message), "%s", capture_message(cap));
        assert(capture_frames(cap) == r.frames);
        assert(capture_next(cap, &f) == r.status); /* and stays so */
    }
    capture_free(cap);
    input_free(in);
    return r;
}

#endif
