/* source.c - see source.h. */
#include "source.h"

#include <stdlib.h>

/* Interfaces and queues of one host write packets out of order by less than this. */
#define STEP_MIN (10 * NS_PER_MS)

void source_close(struct source *s)
{
    struct audit_input *about = s->about;

    capture_free(s->cap);
    har_free(s->har);
    s->cap = NULL;
    s->har = NULL;
    if (!s->in)
        return;
    input_finish(s->in);
    about->bytes = input_bytes(s->in);
    input_sha256_hex(s->in, about->sha256);
    input_free(s->in);
    s->in = NULL;
}

static void tally_add(struct tally *t, struct place at)
{
    if (t->count++ == 0)
        t->first = at;
}

static void saw_time(struct source *s, struct place at)
{
    struct audit_input *about = s->about;

    if (about->first_time == 0 || at.time < about->first_time)
        about->first_time = at.time;
    if (at.time > about->last_time)
        about->last_time = at.time;
    if (at.time < s->last - STEP_MIN)
        tally_add(&s->back, at);
    s->last = at.time;
    if (at.time > s->key)
        s->key = at.time;
}

static void end_capture(struct source *s, enum capture_status st)
{
    s->about->packets = capture_frames(s->cap);
    if (st == CAPTURE_CUT)
        s->about->status = INPUT_TRUNCATED;
    if (st == CAPTURE_DAMAGED)
        s->about->status = INPUT_DAMAGED;
    if (st != CAPTURE_END)
        snprintf(s->message, sizeof(s->message), "%s", capture_message(s->cap));
}

static bool next_packet(struct source *s)
{
    enum capture_status st = capture_next(s->cap, &s->frame);

    if (st == CAPTURE_FRAME) {
        saw_time(s, s->frame.at);
        return true;
    }
    end_capture(s, st);
    return false;
}

static void end_har(struct source *s)
{
    enum har_status st = har_status(s->har);

    s->about->packets = har_entries(s->har);
    if (st == HAR_TRUNCATED)
        s->about->status = INPUT_TRUNCATED;
    if (st == HAR_DAMAGED)
        s->about->status = INPUT_DAMAGED;
    if (st != HAR_COMPLETE)
        snprintf(s->message, sizeof(s->message), "%s", har_message(s->har));
}

static bool next_har(struct source *s)
{
    struct place at = { .input = s->index };

    if (!har_time(s->har, &at.time)) {
        end_har(s);
        return false;
    }
    saw_time(s, at);
    return true;
}

bool source_next(struct source *s)
{
    return s->cap ? next_packet(s) : next_har(s);
}

static bool open_input(struct source *s, struct input_error *reterr)
{
    if (!s->in)
        s->in = input_open(s->about->path, reterr);
    return s->in != NULL;
}

bool source_open(struct source *s, struct exchanges *all, struct input_error *reterr)
{
    if (!open_input(s, reterr))
        return false;
    if (s->no_digest)
        input_no_digest(s->in);
    if (s->no_thread)
        input_no_thread(s->in);
    s->key = INT64_MIN;
    s->last = INT64_MIN + STEP_MIN;
    if (s->about->kind == INPUT_HAR)
        s->har = har_open(s->in, s->index, all, reterr);
    else
        s->cap = capture_open(s->in, s->index, reterr);
    if (s->har || s->cap)
        return true;
    source_close(s);
    return false;
}

bool source_peek(struct source *s, struct input_error *reterr)
{
    if (!open_input(s, reterr))
        return false;
    s->cap = capture_open(s->in, s->index, reterr);
    if (!s->cap) {
        source_close(s);
        return false;
    }
    if (capture_next(s->cap, &s->frame) == CAPTURE_FRAME)
        s->key = s->frame.at.time;
    capture_free(s->cap);
    input_free(s->in);
    s->cap = NULL;
    s->in = NULL;
    return true;
}

/* ---- the merge ---- */

bool source_before(const struct source *a, const struct source *b)
{
    return a->key != b->key ? a->key < b->key : a->index < b->index;
}

static void swap(struct source_heap *h, size_t i, size_t j)
{
    struct source *s = h->item[i];

    h->item[i] = h->item[j];
    h->item[j] = s;
}

void source_heap_add(struct source_heap *h, struct source *s)
{
    size_t i = h->count;

    if (h->count == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 16;
        h->item = mem_grow(h->item, h->cap * sizeof(struct source *));
    }
    h->item[h->count++] = s;
    for (; i > 0 && source_before(h->item[i], h->item[(i - 1) / 2]); i = (i - 1) / 2)
        swap(h, i, (i - 1) / 2);
}

static size_t smaller_child(const struct source_heap *h, size_t i)
{
    size_t left = 2 * i + 1;

    if (left + 1 < h->count && source_before(h->item[left + 1], h->item[left]))
        return left + 1;
    return left;
}

void source_heap_settle(struct source_heap *h)
{
    size_t i = 0;

    for (;;) {
        size_t child = smaller_child(h, i);
        if (child >= h->count || !source_before(h->item[child], h->item[i]))
            return;
        swap(h, i, child);
        i = child;
    }
}

void source_heap_remove(struct source_heap *h)
{
    h->item[0] = h->item[--h->count];
    source_heap_settle(h);
}

const struct source *source_heap_second(const struct source_heap *h)
{
    size_t child = smaller_child(h, 0);

    return child < h->count ? h->item[child] : NULL;
}

void source_heap_release(struct source_heap *h)
{
    free(h->item);
    *h = (struct source_heap){ 0 };
}
