/* registry.c - the families of rules, in the order of RULES.md. */
#include "rule.h"

extern const struct rule_family rules_cursor, rules_replay, rules_event_id, rules_correlation,
    rules_dispatch, rules_session, rules_silence, rules_input, rules_sse, rules_http, rules_rpc,
    rules_stateless;

static const struct rule_family *const families[] = {
    &rules_cursor,   &rules_replay,  &rules_event_id, &rules_correlation,
    &rules_dispatch, &rules_session, &rules_silence,  &rules_input,
    &rules_sse,      &rules_http,    &rules_rpc,      &rules_stateless,
};

const struct thresholds thresholds_default = {
    .retry_tolerance = 50 * NS_PER_MS,
    .resume_loop = 5,
    .storm_count = 10,
    .storm_window = 10 * NS_PER_SEC,
    .keepalive_factor = 2.5,
    .idle_timeout = 60 * NS_PER_SEC,
    .open_after_response = 5 * NS_PER_SEC,
    .poll_factor = 10,
    .clock_skew = 100 * NS_PER_MS,
    .id_length = 4096,
    .burst_spread = 5 * NS_PER_SEC,
};

size_t rule_family_count(void)
{
    return ARRAY_LEN(families);
}

const struct rule_family *rule_family_at(size_t i)
{
    return families[i];
}

size_t rule_count(void)
{
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        n += families[i]->count;
    return n;
}

const struct rule *rule_at(size_t i)
{
    for (size_t f = 0; f < ARRAY_LEN(families); f++) {
        if (i < families[f]->count)
            return &families[f]->rule[i];
        i -= families[f]->count;
    }
    return NULL;
}

const struct rule *rule_find(const char *id)
{
    for (size_t i = 0; i < rule_count(); i++) {
        if (strcmp(rule_at(i)->id, id) == 0)
            return rule_at(i);
    }
    return NULL;
}

const struct rule_family *rule_family_of(const struct rule *r)
{
    for (size_t f = 0; f < ARRAY_LEN(families); f++) {
        if (r >= families[f]->rule && r < families[f]->rule + families[f]->count)
            return families[f];
    }
    return NULL;
}
