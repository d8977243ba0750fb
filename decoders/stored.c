/* stored.c - see stored.h. */
#include "stored.h"

#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK_SIZE   ((size_t)256 * 1024)
#define RING         4u
#define THREAD_AFTER ((uint64_t)4 * 1024 * 1024) /* shorter files are done before it pays */

struct stored {
    int fd;
    bool regular;
    bool alone;    /* no thread */
    bool lent;     /* the block at tail is with the caller */
    bool ended;    /* the caller has seen the end */
    bool streamed; /* see stored_stream(): the offset tells what was read */
    off_t begin;   /* ... from this one on */
    uint64_t bytes;
    EVP_MD_CTX *md;
    uint8_t sha256[32];
    uint8_t *block[RING];
    size_t len[RING];
    int read_errno; /* of the failed read; 0: none */
    char error[120];

    bool threaded;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows, while the thread runs */
    pthread_cond_t moved;
    size_t head; /* blocks read */
    size_t tail; /* blocks given back by the caller */
    bool eof;
    bool stop;
};

struct stored *stored_new(int fd, bool regular)
{
    struct stored *s = mem_alloc(sizeof(*s));

    s->fd = fd;
    s->regular = regular;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->moved, NULL);
    /* Now, because libcrypto reads its configuration file at its first use: the sandbox forbids
     * that later. */
    s->md = EVP_MD_CTX_new();
    if (!s->md || !EVP_DigestInit_ex(s->md, EVP_sha256(), NULL)) {
        EVP_MD_CTX_free(s->md);
        s->md = NULL;
    }
    return s;
}

static void thread_end(struct stored *s)
{
    if (!s->threaded)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->moved);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    s->threaded = false;
}

void stored_no_digest(struct stored *s)
{
    EVP_MD_CTX_free(s->md);
    s->md = NULL;
}

void stored_no_thread(struct stored *s)
{
    s->alone = true;
}

void stored_free(struct stored *s)
{
    if (!s)
        return;
    thread_end(s);
    if (s->fd > STDIN_FILENO)
        close(s->fd);
    for (size_t i = 0; i < RING; i++)
        free(s->block[i]);
    EVP_MD_CTX_free(s->md);
    pthread_cond_destroy(&s->moved);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* Fills buf as far as the file goes (a pipe gives little at a time). */
static size_t read_full(struct stored *s, uint8_t *buf, size_t size)
{
    size_t len = 0;

    while (len < size && s->read_errno == 0) {
        ssize_t n = read(s->fd, buf + len, size - len);
        if (n == 0)
            break;
        if (n > 0)
            len += (size_t)n;
        else if (errno != EINTR)
            s->read_errno = errno;
    }
    return len;
}

static size_t block_read(struct stored *s, size_t at)
{
    if (!s->block[at])
        s->block[at] = mem_grow(NULL, BLOCK_SIZE);
    s->len[at] = read_full(s, s->block[at], BLOCK_SIZE);
    return s->len[at];
}

static void block_hash(const struct stored *s, size_t at)
{
    if (s->md)
        EVP_DigestUpdate(s->md, s->block[at], s->len[at]);
}

/* Waits for a free block; false when the caller wants no more. */
static bool ring_wait_free(struct stored *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->head - s->tail == RING && !s->stop)
        pthread_cond_wait(&s->moved, &s->lock);
    bool go = !s->stop;
    pthread_mutex_unlock(&s->lock);
    return go;
}

/* The reader's side. A block is published before it is hashed: both sides only look at it, and only
 * this thread writes to it again. */
static void *read_ahead(void *arg)
{
    struct stored *s = arg;
    size_t n = 1;

    for (size_t at = s->head % RING; n > 0 && ring_wait_free(s); at = (at + 1) % RING) {
        n = block_read(s, at);
        pthread_mutex_lock(&s->lock);
        if (n > 0)
            s->head++;
        else
            s->eof = true;
        pthread_cond_signal(&s->moved);
        pthread_mutex_unlock(&s->lock);
        if (n > 0)
            block_hash(s, at);
    }
    return NULL;
}

static struct slice next_threaded(struct stored *s)
{
    struct slice run = { 0 };

    pthread_mutex_lock(&s->lock);
    if (s->lent)
        s->tail++;
    pthread_cond_signal(&s->moved);
    while (s->head == s->tail && !s->eof)
        pthread_cond_wait(&s->moved, &s->lock);
    s->lent = s->head != s->tail;
    if (s->lent)
        run = (struct slice){ s->block[s->tail % RING], s->len[s->tail % RING] };
    pthread_mutex_unlock(&s->lock);
    return run;
}

static struct slice next_inline(struct stored *s)
{
    if (block_read(s, 0) == 0)
        return (struct slice){ 0 };
    block_hash(s, 0);
    return (struct slice){ s->block[0], s->len[0] };
}

static void end(struct stored *s)
{
    thread_end(s);
    s->ended = true;
    if (s->md)
        EVP_DigestFinal_ex(s->md, s->sha256, NULL);
    if (s->read_errno != 0) {
        char text[80];
        snprintf(s->error, sizeof(s->error), "cannot be read on: %s",
                 strerror_r(s->read_errno, text, sizeof(text)));
    }
}

struct slice stored_next(struct stored *s)
{
    struct slice run;

    if (s->ended)
        return (struct slice){ 0 };
    if (s->md && s->regular && !s->alone && !s->threaded && s->bytes >= THREAD_AFTER) {
        s->threaded = pthread_create(&s->thread, NULL, read_ahead, s) == 0;
        s->alone = !s->threaded; /* do not try again */
    }
    run = s->threaded ? next_threaded(s) : next_inline(s);
    s->bytes += run.len;
    if (run.len == 0)
        end(s);
    return run;
}

size_t stored_read(struct stored *s, void *buf, size_t n)
{
    size_t len = s->ended ? 0 : read_full(s, buf, n);

    s->bytes += len;
    if (len == 0 && !s->ended)
        end(s);
    return len;
}

bool stored_has_digest(const struct stored *s)
{
    return s->md != NULL;
}

FILE *stored_stream(struct stored *s, size_t back)
{
    int fd = s->regular && !s->md ? dup(s->fd) : -1;
    off_t at = fd >= 0 ? lseek(fd, -(off_t)back, SEEK_CUR) : -1;
    FILE *stream = at >= 0 ? fdopen(fd, "r") : NULL;

    if (!stream && fd >= 0)
        close(fd);
    s->streamed = stream != NULL; /* the two share their offset */
    s->begin = at + (off_t)back - (off_t)s->bytes;
    return stream;
}

const char *stored_error(const struct stored *s)
{
    return s->error[0] ? s->error : NULL;
}

uint64_t stored_bytes(const struct stored *s)
{
    off_t offset = s->streamed ? lseek(s->fd, 0, SEEK_CUR) - s->begin : -1;

    return offset >= 0 ? (uint64_t)offset : s->bytes;
}

void stored_sha256_hex(const struct stored *s, char ret[static 65])
{
    ret[0] = '\0';
    if (!s->ended || !s->md)
        return;
    for (size_t i = 0; i < sizeof(s->sha256); i++)
        snprintf(ret + 2 * i, 3, "%02x", s->sha256[i]);
}
