/*
 * pcapng.h - packets out of a pcapng file (draft-ietf-opsawg-pcapng), behind capture.h. Own reader:
 * libpcap refuses interfaces of different link type or snap length, and skips secrets and comments.
 *
 * Read: section header, interface description, enhanced, simple and (obsolete) packet block,
 * decryption secrets, comments; other blocks are skipped. Any number of sections, either byte
 * order.
 */
#ifndef PCAPNG_H
#define PCAPNG_H

#include "capture.h"

struct pcapng;
struct pcapng *pcapng_new(struct input *in, uint32_t input_index);
void pcapng_free(struct pcapng *ng);
/* As capture_next. */
enum capture_status pcapng_next(struct pcapng *ng, struct frame *ret);
const char *pcapng_message(const struct pcapng *ng);
uint64_t pcapng_frames(const struct pcapng *ng);
struct slice pcapng_secrets(const struct pcapng *ng);
size_t pcapng_comments(const struct pcapng *ng, const struct capture_comment **ret);

#endif
