/* http_checks.h - the functions behind the descriptors of http.c. */
#ifndef HTTP_CHECKS_H
#define HTTP_CHECKS_H

#include "rule.h"

/* http_exchange.c */
void check_http_chunked(struct rule_run *run, const struct session *s);
void check_http_short(struct rule_run *run, const struct session *s);
void check_http_until_close(struct rule_run *run, const struct session *s);
void check_http_length(struct rule_run *run, const struct session *s);
void whole_http_unsolicited(struct rule_run *run, const struct model *m);
void whole_http_pipelined(struct rule_run *run, const struct model *m);
void check_http_fold(struct rule_run *run, const struct session *s);
void check_http_duplicate(struct rule_run *run, const struct session *s);
void whole_http_allow(struct rule_run *run, const struct model *m);
void check_post_accept(struct rule_run *run, const struct session *s);
void check_get_accept(struct rule_run *run, const struct session *s);
void whole_post_reply(struct rule_run *run, const struct model *m);
void check_post_oneway(struct rule_run *run, const struct session *s);
void check_post_202_body(struct rule_run *run, const struct session *s);
void whole_get_reply(struct rule_run *run, const struct model *m);

/* http_session.c */
void whole_session_missing(struct rule_run *run, const struct model *m);
void whole_session_unknown(struct rule_run *run, const struct model *m);
void check_session_charset(struct rule_run *run, const struct session *s);
void check_session_reassigned(struct rule_run *run, const struct session *s);
void check_session_zombie(struct rule_run *run, const struct session *s);
void check_session_dead(struct rule_run *run, const struct session *s);
void whole_session_reinit(struct rule_run *run, const struct model *m);
void check_version_missing(struct rule_run *run, const struct session *s);
void check_version_mismatch(struct rule_run *run, const struct session *s);
void check_version_invalid(struct rule_run *run, const struct session *s);

/* http_start.c */
void whole_init_not_first(struct rule_run *run, const struct model *m);
void whole_initialized_missing(struct rule_run *run, const struct model *m);
void whole_early_request(struct rule_run *run, const struct model *m);
void whole_legacy_endpoint(struct rule_run *run, const struct model *m);
void whole_legacy_uri(struct rule_run *run, const struct model *m);
void check_legacy_response(struct rule_run *run, const struct session *s);

#endif
