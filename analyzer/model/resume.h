/* resume.h - what the files of the judgement share: resume.c, replay.c, did.c. */
#ifndef RESUME_H
#define RESUME_H

#include "model_impl.h"

/* replay.c: walks the resumed leg and fills head, faults, missing, failed_at of r. */
void replay_walk(struct session *s, struct resumption *r);

/* Adds a rule to the reasons, once. */
void reason_add(struct resumption *r, const char *rule);
void fault_add(struct resumption *r, unsigned fault, const char *rule);
/* The same, and the event at which the replay went wrong, if it is the first. */
void fault_at(struct resumption *r, unsigned fault, const char *rule, const struct event *e);

#endif
