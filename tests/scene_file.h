/*
 * scene_file.h - the frames of a scene as capture files of every kind: pcap, pcapng in both byte
 * orders with two interfaces and secrets; and what tunnels and other link types put around them.
 */
#ifndef SCENE_FILE_H
#define SCENE_FILE_H

#include "scene_pcap.h"

enum scene_link {
    LINK_ETHER,
    LINK_VLAN, /* two tags */
    LINK_IPV6, /* addresses within 64:ff9b::/96 (RFC 6052) */
    LINK_SLL2, /* as of `-i any` */
    LINK_GRE,
    LINK_VXLAN,
};

struct scene_form {
    enum scene_link link[2]; /* of two interfaces, which see the frames in turn */
    bool pcapng;
    bool big;          /* pcapng: byte order */
    bool secrets;      /* pcapng: the key log is in it */
    int64_t late;      /* ns: the clock of the tap is ahead, or the frame comes by later */
    unsigned lost, of; /* frame number i is not in it when i % of == lost; of 0: all are */
};

/* Frames number part, part + of ... as one file; lives as the scene does. */
struct slice scene_file(struct scene *sc, const struct scene_wire *w, const struct scene_form *form,
                        size_t part, size_t of);

#endif
