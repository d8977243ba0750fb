/* test_importers.c - made-up samples in the line shapes of the clients' own logs. */
#include "log_of.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* "state event-id method tool id stream session" of an entry; "-" stands for none. */
static void show(FILE *f, const struct log_entry *e)
{
    const struct slice part[] = { e->event_id,     e->method, e->tool,
                                  e->request.text, e->stream, e->session };

    fputs(log_state_text(e->state), f);
    for (size_t i = 0; i < ARRAY_LEN(part); i++)
        fprintf(f, " " SLICE_FMT, part[i].ptr ? (int)part[i].len : 1,
                part[i].ptr ? (const char *)part[i].ptr : "-");
    if (e->request.type != RPC_ID_NONE)
        fputs(e->request.type == RPC_ID_STRING ? " str" : " int", f);
    fputs(e->digest == LOG_DIGEST_CONTENT ? " digest\n" : "\n", f);
}

static char *shown(const struct dispatch_log *log)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    for (size_t i = 0; i < log->count; i++)
        show(f, &log->entry[i]);
    for (size_t i = 0; i < log->fault_count; i++)
        fprintf(f, "line %u: " SLICE_FMT "\n", log->fault[i].line, SLICE_ARG(log->fault[i].what));
    fclose(f);
    return text;
}

static struct dispatch_log *check(const char *format, const char *sample, const char *want)
{
    struct dispatch_log *log = dispatch_log_new();

    assert_true(dispatch_log_is(slice_str(sample)));
    assert_true(log_of(log, slice_str(sample)));
    char *got = shown(log);
    assert_string_equal(got, want);
    free(got);
    assert_true(slice_eq(log->file[0].format, slice_str(format)));
    assert_true(log->file[0].cannot_know.len > 0);
    assert_false(log->file[0].says_processed);
    return log;
}

static void assert_time(const struct log_entry *e, const char *utc)
{
    int64_t want = 0;

    assert_true(e->has_time && time_parse(slice_str(utc), &want));
    assert_true(e->time == want);
}

static void test_vscode(void **unused)
{
    struct dispatch_log *log = check(
        "vscode",
        "2026-11-30 16:05:28.690 [info] Connection state: Running\n"
        "2026-11-30 16:05:28.696 [info] [editor -> server] {\"jsonrpc\":\"2.0\",\"id\":1,"
        "\"method\":\"tools/call\",\"params\":{\"name\":\"send\"}}\n"
        "2026-11-30 16:05:28.697 [trace] Fetched http://h/mcp: {\"status\":200,\"headers\":"
        "{\"mcp-session-id\":\"s1\"}}\n"
        "2026-11-30 16:05:29.120 [trace] Fetching http://h/mcp with options: {\"method\":\"GET\","
        "\"headers\":{\"Accept\":\"text/event-stream\",\"Last-Event-ID\":\"e7\"}}\n"
        "2026-11-30 16:05:29.130 [info] [server -> editor] {\"jsonrpc\":\"2.0\",\"id\":\"x\","
        "\"result\":{}}\n"
        "2026-11-30 16:05:29.131 [info] [Server Says] {\"jsonrpc\":\n",
        "sent - tools/call send 1 - - int digest\n"
        "reconnect e7 - - - - s1\n"
        "received - - - x - s1 str digest\n"
        "line 6: the message is not valid JSON at column 12\n");
    (void)unused;

    assert_time(&log->entry[1], "2026-11-30T16:05:29.120Z");
    dispatch_log_free(log);
}

static void test_go(void **unused)
{
    struct dispatch_log *log =
        check("go-logging",
              "write: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"
              "read: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"t\":\"write: {\"}}\n"
              "read error: EOFread: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n"
              "read: {\"jsonrpc\":\n",
              "sent - ping - 1 - - int digest\n"
              "received - - - 1 - - int digest\n"
              "received - notifications/message - - - - digest\n"
              "line 4: the message is not valid JSON at column 12\n");
    (void)unused;

    assert_true(!log->entry[0].has_time && log->entry[0].no_event_ids);
    dispatch_log_free(log);
}

static void test_csharp(void **unused)
{
    struct dispatch_log *log =
        check("csharp-trace",
              "2026-11-30T16:05:28.696Z trce: ModelContextProtocol.Client.McpClient[1]\n"
              "      Client (app 1.0) transport received message. Message: "
              "'{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"t\":\"it's. '.\"}}'.\n"
              "trce: Other[1]\n"
              "      Server (srv 1.0) transport received message. Message: '{}'.\n"
              "      Client (app 1.0) sending message. Message: '{\"method\":\"ping\",\"id\":4}'.\n"
              "      Client (app 1.0) transport received message. Message: '{\n",
              "received - - - 3 - - int digest\n"
              "sent - ping - 4 - - int digest\n"
              "line 6: the message goes on after the line\n");
    (void)unused;

    assert_time(&log->entry[0], "2026-11-30T16:05:28.696Z");
    assert_false(log->entry[1].has_time);
    dispatch_log_free(log);
}

static void test_mcp_remote(void **unused)
{
    struct dispatch_log *log =
        check("mcp-remote",
              "[2026-11-30T16:05:28.696Z][4711] [Local\xe2\x86\x92Remote] tools/call\n"
              "[2026-11-30T16:05:28.697Z][4711] Local \xe2\x86\x92 Remote message "
              "{\"method\":\"tools/call\",\"id\":3,\"params\":\"{\\\"name\\\":\"}\n"
              "[2026-11-30T16:05:29.120Z][4711] Remote \xe2\x86\x92 Local message "
              "{\"id\":3,\"result\":\"result-present\"}\n"
              "[2026-11-30T16:05:29.120Z][4711] Remote \xe2\x86\x92 Local message {\"id\"\n",
              "sent - tools/call - 3 - - int\n"
              "received - - - 3 - - int\n"
              "line 4: the summary is not valid JSON at column 6\n");
    (void)unused;

    assert_time(&log->entry[1], "2026-11-30T16:05:29.120Z");
    dispatch_log_free(log);
}

static void test_mcpsnoop(void **unused)
{
    struct dispatch_log *log = check(
        "mcpsnoop",
        "{\"session_id\":\"x\",\"server_label\":\"l\",\"seq\":1,\"ts\":\"2026-11-30T16:05:28Z\","
        "\"direction\":\"meta\",\"transport\":\"http\",\"raw\":{\"command\":[]}}\n"
        "{\"session_id\":\"x\",\"server_label\":\"l\",\"seq\":2,\"ts\":\"2026-11-30T17:05:28+01:"
        "00\","
        "\"direction\":\"c2s\",\"transport\":\"http\",\"raw\":{\"id\":1,\"method\":\"ping\"}}\n"
        "{\"session_id\":\"x\",\"server_label\":\"l\",\"seq\":3,\"ts\":\"2026-11-30T16:05:29Z\","
        "\"direction\":\"s2c\",\"transport\":\"http\",\"raw\":{\"id\":1,\"result\":{}}}\n"
        "{\"session_id\":\"x\",\"server_label\":\"l\",\"seq\":4,\"ts\":\"2026-11-30T16:05:29Z\","
        "\"direction\":\"s2c\",\"transport\":\"http\",\"raw\":{},\"truncated\":true}\n"
        "{\"session_id\":\"x\",\n",
        "sent - ping - 1 - - int digest\n"
        "received - - - 1 - - int digest\n"
        "line 4: the message was cut by the proxy\n"
        "line 5: not valid JSON at column 19\n");
    (void)unused;

    assert_time(&log->entry[0], "2026-11-30T16:05:28Z");
    dispatch_log_free(log);
}

static void test_kotlin(void **unused)
{
    static const char at[] = "2026-11-30 16:05:28.696 [w-1] TRACE t.Transport -- "
                             "Client received SSE event: event=";
    char sample[2048];
    (void)unused;

    snprintf(
        sample, sizeof(sample),
        "%snull, data=, id=p-0\n"
        "%smessage, data={\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"t\":\", id=9\"}}, id=p-1\n"
        "%smessage, data={\"method\":\"notifications/progress\"}, id=null\n"
        "%smessage, data={\"method\":\"m\"}\n"
        "%smessage, data={\n",
        at, at, at, at, at);
    struct dispatch_log *log = check("kotlin-trace", sample,
                                     "received p-0 - - - - -\n"
                                     "received p-1 - - 2 - - int digest\n"
                                     "received - notifications/progress - - - - digest\n"
                                     "received - m - - - - digest\n"
                                     "line 5: the event goes on after the line\n");
    assert_true(log->file[0].names_events && !log->entry[0].no_event_ids);
    dispatch_log_free(log);
}

static void test_java(void **unused)
{
    struct dispatch_log *log = check(
        "java-debug",
        "16:05:28.696 [t] DEBUG i.m.s.DefaultMcpTransportStream -- Updating last id null -> a_1 "
        "for stream 0\n"
        "2026-11-30 16:05:28.697 [t] DEBUG x -- Updating last id a_1 -> a_2 for stream 0\n"
        "x DEBUG y -- Reconnecting stream 0 with lastId Optional[a_2]\n"
        "x DEBUG y -- Reconnecting stream 1 with lastId Optional.empty\n"
        "x DEBUG y -- Received response: JSONRPCResponse[jsonrpc=2.0, id=5f-0, result={id=7}, "
        "error=null]\n"
        "x DEBUG y -- Received response: JSONRPCResponse[jsonrpc=2.0, id=7, result={}]\n"
        "x DEBUG y -- Received request: JSONRPCRequest[jsonrpc=2.0, method=ping, id=q-1, "
        "params=null]\n"
        "x DEBUG y -- Received notification: JSONRPCNotification[jsonrpc=2.0, "
        "method=notifications/message, params={id=1}]\n"
        "x WARN y -- Unexpected response for unknown id 5f-0\n"
        "x DEBUG y -- Updating last id a_2 -> a\n",
        "cursor a_1 - - - 0 -\n"
        "cursor a_2 - - - 0 -\n"
        "reconnect a_2 - - - 0 -\n"
        "reconnect - - - - 1 -\n"
        "received - - - 5f-0 - - str\n"
        "received - - - - - -\n"
        "received - ping - q-1 - - str\n"
        "received - notifications/message - - - -\n"
        "dropped - - - 5f-0 - - str\n"
        "line 10: the line ends within the id\n");
    (void)unused;

    assert_false(log->entry[0].has_time);
    assert_time(&log->entry[1], "2026-11-30T16:05:28.697Z");
    dispatch_log_free(log);
}

static void test_python(void **unused)
{
    struct dispatch_log *log = check(
        "python-debug",
        "2026-11-30 16:05:28,696 - mcp.client.streamable_http - DEBUG - Sending client message: "
        "root=JSONRPCRequest(method='tools/call', params={'name': 'x', 'a': [\"it's (id=9\"]}, "
        "jsonrpc='2.0', id=3)\n"
        "2026-11-30 16:05:28,697 - mcp.client.streamable_http - INFO - Received session ID: s1\n"
        "DEBUG:mcp.client.streamable_http:SSE message: root=JSONRPCResponse(jsonrpc='2.0', id='3', "
        "result={'content': [{'text': '\\', id=4)'}]})\n"
        "DEBUG:mcp.client.streamable_http:SSE message: JSONRPCNotification(jsonrpc='2.0', "
        "method='notifications/progress', params={'to\n"
        "INFO:mcp.client.streamable_http:GET stream disconnected, reconnecting in 1000ms...\n"
        "DEBUG:mcp.shared:dropping response for unknown/late request id 3\n",
        "sent - tools/call - 3 - - int\n"
        "received - - - 3 - s1 str\n"
        "received - notifications/progress - - - s1\n"
        "reconnect - - - - - s1\n"
        "dropped - - - 3 - s1 int\n");
    (void)unused;

    assert_time(&log->entry[0], "2026-11-30T16:05:28.696Z");
    assert_true(log->entry[0].no_event_ids);
    dispatch_log_free(log);
}

static void test_inspector(void **unused)
{
    struct dispatch_log *log = check(
        "inspector",
        "{\"exported\":true,\"messages\":[\n"
        "{\"id\":\"a\",\"timestamp\":\"2026-11-30T16:05:28.696Z\",\"direction\":\"request\","
        "\"origin\":\"client\",\"message\":{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},"
        "\"response\":{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},\"duration\":304.5},\n"
        "{\"id\":\"b\",\"timestamp\":\"2026-11-30T16:05:29.5Z\",\"direction\":\"notification\","
        "\"message\":{\"method\":\"notifications/message\"}},\n"
        "{\"id\":\"c\"}],\"requests\":["
        "{\"id\":\"d\",\"timestamp\":\"2026-11-30T16:05:30Z\",\"method\":\"GET\",\"url\":\"http://"
        "h/\","
        "\"requestHeaders\":{\"Last-Event-ID\":\"e1\"}},"
        "{\"id\":\"e\",\"timestamp\":\"2026-11-30T16:05:30Z\",\"requestHeaders\":{}}]}",
        "sent - ping - 1 - - int digest\n"
        "received - - - 1 - - int digest\n"
        "received - notifications/message - - - - digest\n"
        "reconnect e1 - - - - -\n"
        "line 3: neither a message nor a network entry\n");
    (void)unused;

    assert_time(&log->entry[1], "2026-11-30T16:05:29Z");
    dispatch_log_free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vscode),    cmocka_unit_test(test_go),
        cmocka_unit_test(test_csharp),    cmocka_unit_test(test_mcp_remote),
        cmocka_unit_test(test_mcpsnoop),  cmocka_unit_test(test_kotlin),
        cmocka_unit_test(test_java),      cmocka_unit_test(test_python),
        cmocka_unit_test(test_inspector),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
