/*
 * scene_pcap.h - a scene as the packets of a real capture: Ethernet, IPv4, TCP with handshake,
 * acknowledgements, windows and closes, HTTP/1.1 with chunks. scene_is_wire says whether packets
 * can show all of it.
 *
 *     struct scene_wire w = { 0 };
 *     scene_wire(scene, &style, &w);
 *     bytes = scene_file(scene, &w, &form, 0, 1);   one file with all frames (scene_file.h)
 */
#ifndef SCENE_PCAP_H
#define SCENE_PCAP_H

#include "scene.h"
#include "scene_tls.h"

/* What carries the exchanges. */
enum scene_carrier {
    CARRIER_H1,
    CARRIER_H2,        /* one stream a connection: it ends as the connection does */
    CARRIER_H2_SHARED, /* streams of one client share a connection: each ends by itself */
};

/* How the same conversation is put into packets. */
struct scene_style {
    uint64_t seed;  /* 0: what is sent at once is one segment; else cut into pieces by it */
    size_t most;    /* longest piece */
    bool backwards; /* pieces overtake each other: the last one comes first */
    bool twice;     /* every frame is captured twice */
    int64_t echo;   /* ns: ... the second time so much later */
    bool gzip;      /* event streams are coded, and flushed after each step */
    bool hop;       /* seen behind a proxy: other addresses, ports and times */
    enum scene_carrier carrier;
    enum scene_tls_version tls;
};

struct scene_frame {
    int64_t time;
    uint32_t order; /* keeps the sort stable */
    struct slice bytes;
};

struct scene_wire {
    struct scene_frame *frame; /* in the order of time */
    size_t count;
    size_t cap;
    bool cut;          /* the file ends within its last record */
    struct slice keys; /* the key log; empty: nothing is encrypted */
};

/* Adds the frames to those that are there. */
void scene_wire(struct scene *sc, const struct scene_style *style, struct scene_wire *ret);
/* Is there a line with this word? */
bool scene_says(const struct scene *sc, const char *word);
void scene_wire_release(struct scene_wire *w);

#endif
