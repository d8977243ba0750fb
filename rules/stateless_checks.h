/* stateless_checks.h - the functions behind the descriptors of stateless.c. */
#ifndef STATELESS_CHECKS_H
#define STATELESS_CHECKS_H

#include "rule.h"

/* stateless_request.c */
void check_stateless_header(struct rule_run *run, const struct session *s);
void check_stateless_mismatch(struct rule_run *run, const struct session *s);
void check_stateless_accepted(struct rule_run *run, const struct session *s);
void check_stateless_meta(struct rule_run *run, const struct session *s);
void check_stateless_client_response(struct rule_run *run, const struct session *s);
void check_stateless_same_id(struct rule_run *run, const struct session *s);
void check_stateless_resume(struct rule_run *run, const struct session *s);
void whole_stateless_get(struct rule_run *run, const struct model *m);
void check_stateless_session(struct rule_run *run, const struct session *s);
void check_retry_state(struct rule_run *run, const struct session *s);
void check_removed_feature(struct rule_run *run, const struct session *s);

/* stateless_reply.c */
void check_stateless_status(struct rule_run *run, const struct session *s);
void check_stateless_server_request(struct rule_run *run, const struct session *s);
void check_stateless_cancelled(struct rule_run *run, const struct session *s);
void check_listen_ack(struct rule_run *run, const struct session *s);
void check_listen_id(struct rule_run *run, const struct session *s);
void check_listen_type(struct rule_run *run, const struct session *s);
void check_listen_end(struct rule_run *run, const struct session *s);
void check_log_optin(struct rule_run *run, const struct session *s);
void check_result_type(struct rule_run *run, const struct session *s);
void check_reserved_code(struct rule_run *run, const struct session *s);

/* The one request of a POST of this revision, or NULL. */
const struct message *stateless_request(const struct exch *x);

#endif
