/*
 * fuzz_dispatch_log.c - any bytes as a dispatch log: what is recognised can be read, every entry
 * and every fault has its place, strings can be read to their ends, and reading twice gives the
 * same.
 */
#include "log_of.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t touch(uint64_t sum, struct slice s)
{
    return hash_mix(sum, s.ptr ? hash_bytes(s) : 1);
}

static uint64_t summary(const struct dispatch_log *log)
{
    uint64_t sum = log->file_count;

    for (size_t i = 0; i < log->count; i++) {
        const struct log_entry *e = &log->entry[i];
        assert(e->file < log->file_count && e->line > 0 && e->state <= LOG_RECONNECT);
        assert(!e->has_time || log->file[e->file].has_times);
        assert(!e->event_id.ptr || log->file[e->file].names_events);
        sum = touch(touch(touch(hash_mix(sum, e->line), e->event_id), e->session), e->method);
        sum = touch(touch(touch(sum, e->stream), e->tool), e->request.text);
    }
    for (size_t i = 0; i < log->fault_count; i++) {
        assert(log->fault[i].file < log->file_count && log->fault[i].what.len > 0);
        sum = touch(sum, log->fault[i].what);
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { data, size };
    uint64_t sum[2];

    if (size >= 65536)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(sum); i++) {
        struct dispatch_log *log = dispatch_log_new();
        bool ok = log_of(log, text);
        assert(ok || !dispatch_log_is(text) || log->count == 0);
        sum[i] = summary(log);
        dispatch_log_free(log);
    }
    assert(sum[0] == sum[1]);
    return 0;
}
