/* pipeline.c - see pipeline.h. source.c holds the single input. */
#include "pipeline.h"

#include "bodies.h"
#include "conn.h"
#include "plain.h"
#include "record_queue.h"
#include "sandbox.h"
#include "source.h"

#include <inttypes.h>
#include <malloc.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* With more captures than this each is opened only when its time comes. */
#define OPEN_AT_ONCE 64
#define KEYLOG_MAX   ((size_t)256 << 20)
#define FAULTS_SHOWN 10
/* The heap grows by so much, and does not shrink by less: system calls for it cost percents. */
#define HEAP_STEP     (1 << 20)
#define HEAP_KEPT     (64 << 20)
#define PROGRESS_STEP 0x1ffff

struct pipeline {
    struct audit *audit;
    FILE *err;
    struct keylog *keys;
    struct bodies *bodies;
    struct record_queue *decoded; /* to what reads bodies */
    struct record_queue *read;    /* to the thread of the model; NULL: there is none */
    struct exchanges *exchanges;
    struct conns *conns;
    struct flows *flows;
    struct packets *packets;
    struct capture_filter *filter;
    struct source *source; /* one an input; unused for logs and keys */
    struct source_heap heap;
    struct place end;
    bool cut;
    bool show_progress;
    uint64_t packets_seen;
};

const char *input_status_text(enum input_status s)
{
    static const char *const text[] = {
        [INPUT_COMPLETE] = "complete",
        [INPUT_TRUNCATED] = "truncated",
        [INPUT_DAMAGED] = "damaged",
        [INPUT_UNREAD] = "damaged",
    };
    return text[s];
}

/* ---- what is said of an input ---- */

static PRINTF_LIKE(3, 4) void note(struct audit *a, struct audit_input *in, const char *fmt, ...)
{
    va_list args;

    GROW(in->note, in->note_count, in->note_cap);
    va_start(args, fmt);
    in->note[in->note_count++] = arena_vprintf(a->arena, fmt, args);
    va_end(args);
}

static void complain(struct pipeline *p, const struct audit_input *in, const char *what,
                     const char *remedy)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    fprintf(p->err, "sseaudit: %s: %s%s%s\n", plain_text(a, slice_str(in->path), PLAIN_WHOLE), what,
            *remedy ? "; " : "", remedy);
    p->audit->incomplete = true;
}

static void unread(struct pipeline *p, struct audit_input *in, const char *what, const char *remedy)
{
    in->status = INPUT_UNREAD;
    note(p->audit, in, "%s", what);
    complain(p, in, what, remedy);
}

/* ---- logs and keys ---- */

static void read_keys(struct pipeline *p, struct input *in, struct audit_input *about)
{
    struct buf text;
    uint8_t chunk[16384];
    size_t n;

    buf_init(&text, KEYLOG_MAX);
    while ((n = input_read(in, chunk, sizeof(chunk))) > 0) {
        if (!buf_add(&text, (struct slice){ chunk, n }))
            break;
    }
    if (keylog_add(p->keys, buf_slice(&text)) == 0)
        unread(p, about, "holds no key",
               "a key log has lines such as CLIENT_RANDOM ... and"
               " CLIENT_TRAFFIC_SECRET_0 ...");
    buf_release(&text);
}

static void span_of_log(const struct dispatch_log *log, size_t first, struct audit_input *about)
{
    for (size_t i = first; i < log->count; i++) {
        const struct log_entry *e = &log->entry[i];
        if (!e->has_time)
            continue;
        if (about->first_time == 0 || e->time < about->first_time)
            about->first_time = e->time;
        if (e->time > about->last_time)
            about->last_time = e->time;
    }
}

static void tell_faults(struct pipeline *p, struct audit_input *about, size_t first)
{
    const struct dispatch_log *log = p->audit->log;
    size_t count = log->fault_count - first;

    for (size_t i = 0; i < count && i < FAULTS_SHOWN; i++) {
        const struct log_fault *f = &log->fault[first + i];
        fprintf(p->err, "sseaudit: %s:%" PRIu32 ": %s; the line was skipped\n",
                plain_text(p->audit->arena, slice_str(about->path), PLAIN_WHOLE), f->line,
                plain_text(p->audit->arena, f->what, 300));
    }
    if (count > FAULTS_SHOWN)
        fprintf(p->err, "sseaudit: %s: %zu more lines were skipped\n",
                plain_text(p->audit->arena, slice_str(about->path), PLAIN_WHOLE),
                count - FAULTS_SHOWN);
    if (count > 0) {
        note(p->audit, about,
             "%zu line%s could not be read and %s skipped, the first one line %" PRIu32, count,
             count == 1 ? "" : "s", count == 1 ? "was" : "were", log->fault[first].line);
        about->status = INPUT_DAMAGED;
        p->audit->incomplete = true;
    }
}

static void tell_form(struct pipeline *p, struct audit_input *about)
{
    const struct dispatch_log *log = p->audit->log;
    const struct log_file *f = log->file_count > 0 ? &log->file[log->file_count - 1] : NULL;

    if (!f)
        return;
    if (f->format.len > 0)
        note(p->audit, about, "form: %s", plain_text(p->audit->arena, f->format, 80));
    if (f->client.len > 0)
        note(p->audit, about, "client: %s", plain_text(p->audit->arena, f->client, 80));
    if (f->cannot_know.len > 0)
        note(p->audit, about, "cannot know: %s", plain_text(p->audit->arena, f->cannot_know, 400));
}

static void read_log(struct pipeline *p, struct audit_input *about, struct input *in)
{
    struct dispatch_log *log = p->audit->log;
    struct input_error err = { "" };
    size_t entries = log->count;
    size_t faults = log->fault_count;

    if (!dispatch_log_read(log, in, (uint32_t)(about - p->audit->input), &err)) {
        unread(p, about, err.text, "the README shows the usual one, a JSON object a line");
        return;
    }
    span_of_log(log, entries, about);
    about->packets = log->count - entries;
    tell_form(p, about);
    tell_faults(p, about, faults);
}

static void finish_input(struct pipeline *p, struct audit_input *about, struct input *in)
{
    if (input_damage(in) && about->status == INPUT_COMPLETE) {
        about->status = input_cut(in) ? INPUT_TRUNCATED : INPUT_DAMAGED;
        note(p->audit, about, "%s", input_damage(in));
        complain(p, about, input_damage(in), "what came before was used");
    }
    input_finish(in);
    about->bytes = input_bytes(in);
    input_sha256_hex(in, about->sha256);
    input_free(in);
}

/* The same log twice on the command line is one log: its entries would count as done twice. */
static void drop_repeated_log(struct pipeline *p, struct audit_input *about)
{
    for (const struct audit_input *a = p->audit->input; a < about; a++) {
        if (a->kind != INPUT_DISPATCH_LOG || a->bytes != about->bytes ||
            strcmp(a->sha256, about->sha256) != 0)
            continue;
        dispatch_log_drop_last(p->audit->log);
        about->packets = 0;
        note(p->audit, about, "the same as %s, and not counted again",
             plain_text(p->audit->arena, slice_str(a->path), PLAIN_WHOLE));
        return;
    }
}

/* Unlike packets, entries of a HAR do not tell that they were there before. */
static bool is_repeated_har(struct pipeline *p, struct audit_input *about)
{
    struct stat own;
    struct stat other;

    if (stat(about->path, &own) != 0)
        return false;
    for (const struct audit_input *a = p->audit->input; a < about; a++) {
        if (a->kind != INPUT_HAR || stat(a->path, &other) != 0 || own.st_dev != other.st_dev ||
            own.st_ino != other.st_ino)
            continue;
        note(p->audit, about, "the same as %s, and not counted again",
             plain_text(p->audit->arena, slice_str(a->path), PLAIN_WHOLE));
        return true;
    }
    return false;
}

/* How many threads are worth having: for decoding, for the model, for reading bodies. */
static unsigned jobs_of(const struct options *opt)
{
    cpu_set_t cpus;

    if (opt->jobs > 0)
        return opt->jobs;
    return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? (unsigned)CPU_COUNT(&cpus) : 1;
}

/* ---- recognising ---- */

static void not_ours(struct pipeline *p, struct audit_input *about, const struct input *in)
{
    if (about->kind == INPUT_EMPTY)
        unread(p, about, "is empty (0 bytes)", "was the recording copied whole?");
    else if (input_damage(in))
        unread(p, about, input_damage(in), "copy it again");
    else
        unread(p, about, "not a capture, HAR, dispatch log or key log",
               "--log and --keylog say what a file is");
}

static void add_source(struct pipeline *p, struct audit_input *about, struct input *in)
{
    uint32_t index = (uint32_t)(about - p->audit->input);
    struct source *s = &p->source[index];
    struct input_error err = { "" };
    bool later = p->audit->input_count > OPEN_AT_ONCE && about->kind != INPUT_HAR &&
                 strcmp(about->path, "-") != 0;

    *s = (struct source){ .index = index,
                          .about = about,
                          .in = in,
                          .no_digest = p->audit->opt->format == FORMAT_TEXT,
                          .no_thread = jobs_of(p->audit->opt) == 1,
                          .key = INT64_MIN };
    if (later && !source_peek(s, &err)) {
        unread(p, about, err.text, "");
        return;
    }
    source_heap_add(&p->heap, s);
}

static void recognise(struct pipeline *p, uint32_t index)
{
    struct audit_input *about = &p->audit->input[index];
    struct input_error err = { "" };
    struct input *in = input_open(about->path, &err);

    if (!in) {
        unread(p, about, err.text, strcmp(err.text, "is a directory") == 0 ? "name its files" : "");
        return;
    }
    enum input_kind seen = input_recognise(in);
    if (about->kind == INPUT_UNKNOWN || seen == INPUT_EMPTY)
        about->kind = seen;
    switch (about->kind) {
    case INPUT_PCAP:
    case INPUT_PCAPNG: add_source(p, about, in); return;
    case INPUT_HAR:
        if (is_repeated_har(p, about))
            break;
        add_source(p, about, in);
        return;
    case INPUT_KEYLOG: read_keys(p, in, about); break;
    case INPUT_DISPATCH_LOG: read_log(p, about, in); break;
    case INPUT_UNKNOWN:
    case INPUT_EMPTY: not_ours(p, about, in); break;
    }
    finish_input(p, about, in);
    if (about->kind == INPUT_DISPATCH_LOG && about->status != INPUT_UNREAD)
        drop_repeated_log(p, about);
}

/* ---- packets ---- */

static void tally(struct tally *t, struct place at)
{
    if (t->count++ == 0)
        t->first = at;
}

static void take_secrets(struct pipeline *p, struct source *s)
{
    struct slice all = capture_secrets(s->cap);

    if (all.len <= s->secrets)
        return;
    keylog_add(p->keys, (struct slice){ all.ptr + s->secrets, all.len - s->secrets });
    s->secrets = all.len;
}

static void feed_segment(struct pipeline *p, struct source *s, const struct segment *seg)
{
    const struct flow_chunk *chunk;

    if (seg->payload.len < seg->wire_len)
        tally(&s->cut, seg->at);
    flows_feed(p->flows, seg);
    while ((chunk = flows_next(p->flows)))
        conns_feed(p->conns, chunk);
}

static void feed_packet(struct pipeline *p, struct source *s)
{
    struct segment seg;

    if (s->secrets != capture_secrets(s->cap).len)
        take_secrets(p, s);
    if (p->filter && !capture_filter_pass(p->filter, &s->frame))
        return;
    switch (packet_decode(p->packets, &s->frame, &seg)) {
    case PACKET_TCP: feed_segment(p, s, &seg); break;
    case PACKET_HELD: break;
    case PACKET_OTHER: tally(&s->other, s->frame.at); break;
    case PACKET_QUIC: tally(&s->quic, s->frame.at); break;
    case PACKET_CUT: tally(&s->cut, s->frame.at); break;
    case PACKET_BROKEN: tally(&s->broken, s->frame.at); break;
    case PACKET_LINKTYPE:
        if (s->linktype.count == 0)
            s->unknown_linktype = s->frame.linktype;
        tally(&s->linktype, s->frame.at);
        break;
    }
}

static void progress(struct pipeline *p)
{
    if (p->show_progress && (++p->packets_seen & PROGRESS_STEP) == 0)
        fprintf(p->err, "\rsseaudit: %" PRIu64 " packets", p->packets_seen);
}

/* ---- the merge ---- */

static void record_note(struct pipeline *p, enum note_kind kind, const struct tally *t,
                        const char *text)
{
    if (t->count > 0)
        exchanges_note(p->exchanges, 0,
                       (struct rec_note){ kind, t->count, UINT32_MAX, slice_str(text) }, t->first);
}

static void note_tally(struct pipeline *p, struct source *s, const struct tally *t,
                       const char *what)
{
    if (t->count > 0)
        note(p->audit, s->about, "%" PRIu64 " packet%s %s, the first one frame %" PRIu32, t->count,
             t->count == 1 ? "" : "s", what, t->first.frame);
}

static void tell_source(struct pipeline *p, struct source *s)
{
    char linktype[64];

    snprintf(linktype, sizeof(linktype), "of a link type that is not known (%d)",
             s->unknown_linktype);
    note_tally(p, s, &s->cut, "cut by the snap length");
    note_tally(p, s, &s->back, "with a time before that of the one before");
    note_tally(p, s, &s->quic, "of QUIC (HTTP/3), which is out of scope");
    note_tally(p, s, &s->broken, "with headers that contradict themselves");
    note_tally(p, s, &s->linktype, linktype);
    record_note(p, NOTE_TRUNCATED, &s->cut, "packets cut by the snap length");
    record_note(p, NOTE_CLOCK_STEP, &s->back, "");
    record_note(p, NOTE_HTTP3, &s->quic, "");
    record_note(p, NOTE_OTHER_PROTOCOL, &s->linktype, linktype);
    p->audit->other_packets += s->other.count + s->broken.count + s->linktype.count;
    p->audit->quic_packets += s->quic.count;
}

static void end_source(struct pipeline *p, struct source *s)
{
    struct place last = { .time = s->about->last_time, .input = s->index };

    if (s->cap)
        last.frame = (uint32_t)capture_frames(s->cap);
    source_close(s);
    tell_source(p, s);
    if (last.time > p->end.time)
        p->end = last;
    if (s->message[0] == '\0')
        return;
    p->cut = true;
    note(p->audit, s->about, "%s", s->message);
    complain(p, s->about, s->message, "what came before was used");
    exchanges_note(p->exchanges, 0,
                   (struct rec_note){ NOTE_TRUNCATED, 1, UINT32_MAX, slice_str(s->message) }, last);
}

/* The first source of the heap gets going; a bad one leaves it. */
static void open_first(struct pipeline *p, struct source *s)
{
    struct input_error err = { "" };

    if (!source_open(s, p->exchanges, &err)) {
        unread(p, s->about, err.text, "");
        source_heap_remove(&p->heap);
        return;
    }
    if (source_next(s)) {
        source_heap_settle(&p->heap);
        return;
    }
    end_source(p, s);
    source_heap_remove(&p->heap);
}

/* Takes facts of the first source for as long as it stays the first. */
static void drain_first(struct pipeline *p, struct source *s)
{
    const struct source *second = source_heap_second(&p->heap);
    bool more;

    do {
        if (s->har)
            har_step(s->har);
        else
            feed_packet(p, s);
        progress(p);
        more = source_next(s);
    } while (more && (!second || source_before(s, second)));
    if (more) {
        source_heap_settle(&p->heap);
        return;
    }
    end_source(p, s);
    source_heap_remove(&p->heap);
}

static void run_sources(struct pipeline *p)
{
    while (p->heap.count > 0) {
        struct source *s = p->heap.item[0];
        if (s->cap || s->har)
            drain_first(p, s);
        else
            open_first(p, s);
    }
    if (p->show_progress && p->packets_seen > PROGRESS_STEP)
        fputs("\r\033[K", p->err);
}

static void finish(struct pipeline *p)
{
    const struct flow_chunk *chunk;

    if (p->cut)
        conns_set_truncated(p->conns);
    flows_finish(p->flows);
    while ((chunk = flows_next(p->flows)))
        conns_feed(p->conns, chunk);
    conns_finish(p->conns, p->end, p->cut);
    p->audit->other_connections = conns_other(p->conns);
    record_queue_free(MOVE(p->decoded));
    record_queue_free(MOVE(p->read));
    model_finish(p->audit->model, p->cut);
    payloads_seal(p->audit->payloads);
}

/* ---- life cycle ---- */

static void put_record(void *ctx, struct record *rec)
{
    model_feed(ctx, rec);
}

static struct model *new_model(const struct options *opt, const struct dispatch_log *log)
{
    struct model_options mo = model_options_default;

    mo.idempotent = opt->idempotent;
    mo.idempotent_count = opt->idempotent_count;
    mo.strict = opt->strict;
    if (opt->max_ids > 0)
        mo.max_ids = opt->max_ids;
    return model_new(&mo, log->file_count > 0 ? log : NULL);
}

static void pipeline_start(struct pipeline *p)
{
    struct audit *a = p->audit;
    unsigned jobs = jobs_of(a->opt);

    a->model = new_model(a->opt, a->log);
    struct record_sink sink = { .put = put_record, .ctx = a->model };
    if (a->opt->show_payload) {
        a->payloads = payloads_new(sink);
        sink = payloads_sink(a->payloads);
    }
    if (jobs > 2) {
        p->read = record_queue_new(sink, true);
        sink = record_queue_sink(p->read);
    }
    p->bodies = bodies_new(sink);
    if (a->log->file_count > 0)
        bodies_want_digests(p->bodies, a->log->wants_sha256);
    p->decoded = record_queue_new(bodies_sink(p->bodies), jobs > 1);
    p->exchanges = exchanges_new(record_queue_sink(p->decoded), &exchange_limits_default);
    p->conns = conns_new(p->exchanges, p->keys);
    p->flows = flows_new(&flow_limits_default);
    p->packets = packets_new();
}

static void pipeline_stop(struct pipeline *p)
{
    source_heap_release(&p->heap);
    free(p->source);
    conns_free(p->conns);
    flows_free(p->flows);
    packets_free(p->packets);
    exchanges_free(p->exchanges);
    bodies_free(p->bodies);
    keylog_free(p->keys);
    capture_filter_free(p->filter);
}

static struct audit *new_audit(const struct options *opt)
{
    struct audit *a = mem_alloc(sizeof(*a));

    a->opt = opt;
    a->arena = arena_new();
    a->log = dispatch_log_new();
    a->input_count = (uint32_t)opt->file_count;
    a->input = mem_alloc((opt->file_count + 1) * sizeof(*a->input));
    for (size_t i = 0; i < opt->file_count; i++) {
        a->input[i].path = opt->file[i].path;
        a->input[i].kind = opt->file[i].kind;
    }
    return a;
}

/* HARs stay open from the start to their end, captures while they overlap. */
static void allow_many_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

struct audit *audit_run(const struct options *opt, FILE *err)
{
    struct pipeline p = { .err = err };
    struct input_error why = { "" };

    if (opt->filter) {
        p.filter = capture_filter_new(opt->filter, &why);
        if (!p.filter) {
            fprintf(err, "sseaudit: --filter: %s; write it as for tcpdump\n", why.text);
            return NULL;
        }
    }
    mallopt(M_ARENA_MAX, 1); /* the heap of a second one grows page by page, by a call each */
    mallopt(M_TOP_PAD, HEAP_STEP);
    mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
    sandbox_enter(); /* a filter may have had a host's name to look up */
    p.show_progress = opt->progress == WHEN_ALWAYS ||
                      (opt->progress == WHEN_AUTO && !opt->quiet && isatty(fileno(err)) == 1);
    allow_many_files();
    p.audit = new_audit(opt);
    p.keys = keylog_new();
    p.source = mem_alloc((opt->file_count + 1) * sizeof(*p.source));
    for (uint32_t i = 0; i < p.audit->input_count; i++)
        recognise(&p, i);
    pipeline_start(&p);
    run_sources(&p);
    finish(&p);
    pipeline_stop(&p);
    return p.audit;
}

void audit_free(struct audit *a)
{
    if (!a)
        return;
    model_free(a->model);
    payloads_free(a->payloads);
    dispatch_log_free(a->log);
    for (uint32_t i = 0; i < a->input_count; i++)
        free(a->input[i].note);
    free(a->input);
    arena_free(a->arena);
    free(a);
}

uint64_t audit_noted(const struct audit *a, enum note_kind kind)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < a->model->note_count; i++) {
        if (a->model->note[i].kind == kind)
            n += a->model->note[i].count;
    }
    return n;
}
