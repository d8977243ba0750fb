/* capture.c - see capture.h. Classic pcap through libpcap; pcapng.c reads the other format. */
#include "capture.h"

#include "pcapng.h"

#include <inttypes.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>

#define STREAM_BUFFER  ((size_t)64 << 10)
#define PCAP_HEADER    24u
#define LINKTYPE_RAW   101
#define FILTER_SNAPLEN 262144

struct capture {
    struct input *in;
    uint32_t input_index;
    struct pcapng *ng; /* or else: */
    pcap_t *pcap;      /* owns its stream */
    char *stream_buffer;
    int linktype;
    uint64_t frames;
    enum capture_status status; /* CAPTURE_FRAME while it goes on */
    char message[PCAP_ERRBUF_SIZE + 300];
};

/* The values of LINKTYPE_ and DLT_ are the same for all that packet.c knows, but for raw IP. */
static int linktype_of_dlt(int dlt)
{
    return dlt == DLT_RAW ? LINKTYPE_RAW : dlt;
}

static int dlt_of_linktype(int linktype)
{
    return linktype == LINKTYPE_RAW ? DLT_RAW : linktype;
}

static bool pcap_begin(struct capture *cap, struct input_error *reterr)
{
    char err[PCAP_ERRBUF_SIZE] = "";
    FILE *stream = input_stream(cap->in);

    if (!stream) {
        snprintf(reterr->text, sizeof(reterr->text), "cannot be read: no memory");
        return false;
    }
    /* libpcap calls fread twice a packet: a large buffer, and no locks. */
    cap->stream_buffer = mem_grow(NULL, STREAM_BUFFER);
    setvbuf(stream, cap->stream_buffer, _IOFBF, STREAM_BUFFER);
    __fsetlocking(stream, FSETLOCKING_BYCALLER);
    cap->pcap = pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, err);
    if (!cap->pcap) {
        fclose(stream);
        snprintf(reterr->text, sizeof(reterr->text), "cannot be read as a capture: %.160s", err);
        return false;
    }
    cap->linktype = linktype_of_dlt(pcap_datalink(cap->pcap));
    return true;
}

static bool is_capture(struct input *in, enum input_kind kind, struct input_error *reterr)
{
    const char *what = NULL;

    if (kind == INPUT_EMPTY)
        what = "is empty (0 bytes)";
    else if (kind != INPUT_PCAP && kind != INPUT_PCAPNG)
        what = input_damage(in) ? input_damage(in) : "is not a capture (neither pcap nor pcapng)";
    else if (kind == INPUT_PCAP && input_peek(in, PCAP_HEADER).len < PCAP_HEADER)
        what = "is cut within the first 24 bytes, before any packet";
    if (what)
        snprintf(reterr->text, sizeof(reterr->text), "%s", what);
    return !what;
}

struct capture *capture_open(struct input *in, uint32_t input_index, struct input_error *reterr)
{
    enum input_kind kind = input_recognise(in);
    struct capture *cap;

    if (!is_capture(in, kind, reterr))
        return NULL;
    cap = mem_alloc(sizeof(*cap));
    cap->in = in;
    cap->input_index = input_index;
    cap->status = CAPTURE_FRAME;
    if (kind == INPUT_PCAPNG) {
        cap->ng = pcapng_new(in, input_index);
    } else if (!pcap_begin(cap, reterr)) {
        capture_free(cap);
        return NULL;
    }
    return cap;
}

void capture_free(struct capture *cap)
{
    if (!cap)
        return;
    pcapng_free(cap->ng);
    if (cap->pcap)
        pcap_close(cap->pcap);
    free(cap->stream_buffer);
    free(cap);
}

/* libpcap gave no packet: the end of the file, the end of what is left of it, or nonsense. */
static enum capture_status pcap_over(struct capture *cap, int rc)
{
    const char *why = input_damage(cap->in);
    const char *detail = rc == PCAP_ERROR ? pcap_geterr(cap->pcap) : "";

    if (rc == PCAP_ERROR_BREAK && !why) {
        cap->status = CAPTURE_END;
        return cap->status;
    }
    bool cut = why ? input_cut(cap->in) : strncmp(detail, "truncated", 9) == 0;
    cap->status = cut ? CAPTURE_CUT : CAPTURE_DAMAGED;
    snprintf(cap->message, sizeof(cap->message),
             "%s frame %" PRIu64 ", after %" PRIu64 " whole ones: %s",
             cut ? "ends inside" : "damaged at", cap->frames + 1, cap->frames, why ? why : detail);
    return cap->status;
}

static enum capture_status pcap_frame(struct capture *cap, struct frame *ret)
{
    struct pcap_pkthdr *h;
    const u_char *data;
    int rc = pcap_next_ex(cap->pcap, &h, &data);

    if (rc != 1)
        return pcap_over(cap, rc);
    cap->frames++;
    ret->data = (struct slice){ data, h->caplen };
    ret->wire_len = h->len > h->caplen ? h->len : h->caplen;
    ret->linktype = cap->linktype;
    ret->interface = 0;
    ret->at.time =
        (int64_t)h->ts.tv_sec * NS_PER_SEC + h->ts.tv_usec; /* ns by the precision asked for */
    ret->at.frame = (uint32_t)cap->frames;
    ret->at.input = cap->input_index;
    return CAPTURE_FRAME;
}

enum capture_status capture_next(struct capture *cap, struct frame *ret)
{
    if (cap->ng)
        return pcapng_next(cap->ng, ret);
    return cap->status == CAPTURE_FRAME ? pcap_frame(cap, ret) : cap->status;
}

const char *capture_message(const struct capture *cap)
{
    return cap->ng ? pcapng_message(cap->ng) : cap->message;
}

uint64_t capture_frames(const struct capture *cap)
{
    return cap->ng ? pcapng_frames(cap->ng) : cap->frames;
}

struct slice capture_secrets(const struct capture *cap)
{
    return cap->ng ? pcapng_secrets(cap->ng) : (struct slice){ 0 };
}

size_t capture_comments(const struct capture *cap, const struct capture_comment **ret)
{
    *ret = NULL;
    return cap->ng ? pcapng_comments(cap->ng, ret) : 0;
}

/* All that packet.c knows. Compiled at once: a host name in the expression must not be looked up
 * after the sandbox is closed. */
static const int filter_linktype[] = {
    1, 0, 9, 12, 14, 50, 101, 104, 108, 113, 228, 229, 239, 276
};

struct capture_filter {
    struct bpf_program program[ARRAY_LEN(filter_linktype)];
    bool ok[ARRAY_LEN(filter_linktype)];
    bool all;
};

/* False: the expression has no meaning for this link type; err tells. */
static bool filter_compile(struct capture_filter *f, size_t i, const char *expression,
                           struct input_error *reterr)
{
    pcap_t *dead = pcap_open_dead(dlt_of_linktype(filter_linktype[i]), FILTER_SNAPLEN);

    if (!dead) {
        snprintf(reterr->text, sizeof(reterr->text), "filter: no memory");
        return false;
    }
    f->ok[i] = pcap_compile(dead, &f->program[i], expression, 1, PCAP_NETMASK_UNKNOWN) == 0;
    if (!f->ok[i])
        snprintf(reterr->text, sizeof(reterr->text), "filter: %.180s", pcap_geterr(dead));
    pcap_close(dead);
    return f->ok[i];
}

struct capture_filter *capture_filter_new(const char *expression, struct input_error *reterr)
{
    struct capture_filter *f = mem_alloc(sizeof(*f));
    struct input_error first = { "" };
    struct input_error other;
    bool any = !expression;

    f->all = !expression;
    for (size_t i = 0; expression && i < ARRAY_LEN(filter_linktype); i++)
        any |= filter_compile(f, i, expression, i == 0 ? &first : &other);
    if (any)
        return f;
    *reterr = first;
    capture_filter_free(f);
    return NULL;
}

void capture_filter_free(struct capture_filter *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < ARRAY_LEN(filter_linktype); i++) {
        if (f->ok[i])
            pcap_freecode(&f->program[i]);
    }
    free(f);
}

bool capture_filter_pass(struct capture_filter *f, const struct frame *frame)
{
    struct pcap_pkthdr h = { .caplen = (bpf_u_int32)frame->data.len, .len = frame->wire_len };
    size_t i = 0;

    if (f->all)
        return true;
    while (i < ARRAY_LEN(filter_linktype) && filter_linktype[i] != frame->linktype)
        i++;
    return i < ARRAY_LEN(filter_linktype) && f->ok[i] &&
           pcap_offline_filter(&f->program[i], &h, frame->data.ptr) != 0;
}
