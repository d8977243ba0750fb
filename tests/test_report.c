/* test_report.c - what no report may hold unless it is asked for, in any format. */
#include "program.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#define SESSION "secret-session-1"
#define TIME    "\"startedDateTime\":\"2026-01-01T00:00:0"
#define VERSION "{\"name\":\"mcp-protocol-version\",\"value\":\"2025-11-25\"}"
#define ID      "{\"name\":\"mcp-session-id\",\"value\":\"" SESSION "\"}"
#define REQUEST(m, h)                                                                              \
    "\"request\":{\"method\":\"" m "\",\"url\":\"http://h/mcp\",\"headers\":[" h "]"
#define POST(h, body) REQUEST("POST", h) ",\"postData\":{\"text\":\"" body "\"}}"
#define RESPONSE(h, type, body)                                                                    \
    "\"response\":{\"status\":200,\"headers\":[" h "{\"name\":\"content-type\",\"value\":\"" type  \
    "\"}],\"content\":{\"mimeType\":\"" type "\",\"text\":\"" body "\"}}"

/* Event ids and the id of a request that hold the session's; an Authorization, a cookie. */
static const char har[] =
    "{\"log\":{\"version\":\"1.2\",\"creator\":{\"name\":\"t\",\"version\":\"1\"},"
    "\"entries\":["
    "{" TIME "0Z\",\"time\":100," POST(
        "{\"name\":\"authorization\",\"value\":\"Bearer "
        "secret-token\"}",
        "{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":0,"
        "\\\"method\\\":\\\"initialize\\\","
        "\\\"params\\\":"
        "{\\\"protocolVersion\\\":\\\"2025-11-25\\\","
        "\\\"capabilities\\\":{},"
        "\\\"clientInfo\\\":"
        "{\\\"name\\\":\\\"c\\\",\\\"version\\\":\\\"1\\\"}}"
        "}") "," RESPONSE(ID ",{\"name\":"
                             "\"set-"
                             "cookie\","
                             "\"value\":"
                             "\"a=secret-"
                             "cookie\"},",
                          "application/"
                          "json",
                          "{\\\"jsonrpc"
                          "\\\":\\\"2."
                          "0\\\","
                          "\\\"id\\\":0,"
                          "\\\"result\\"
                          "\":{"
                          "\\\"protocolV"
                          "ersion\\\":"
                          "\\\"2025-11-"
                          "25\\\","
                          "\\\"capabilit"
                          "ies\\\":{},"
                          "\\\"serverInf"
                          "o\\\":{"
                          "\\\"name\\\":"
                          "\\\"s\\\","
                          "\\\"version\\"
                          "\":\\\"1\\\"}"
                          "}}") "},"
                                "{" TIME "1Z\","
                                "\"time"
                                "\":"
                                "100"
                                "," POST(
                                    VERSION "," ID,
                                    "{\\\"jsonrpc\\\":\\\"2."
                                    "0\\\",\\\"id\\\":"
                                    "\\\"" SESSION ".1\\\",\\\"method\\\":"
                                    "\\\"tools/"
                                    "call\\\","
                                    "\\\"params\\\":{"
                                    "\\\"name\\\":\\\"t\\\"}"
                                    "}") "," RESPONSE("",
                                                      "text/"
                                                      "event"
                                                      "-stre"
                                                      "am",
                                                      "id:"
                                                      " " SESSION "/1\\n"
                                                      "data:"
                                                      " {"
                                                      "\\\"j"
                                                      "sonrp"
                                                      "c\\\""
                                                      ":\\\""
                                                      "2."
                                                      "0\\\""
                                                      ",\\\""
                                                      "metho"
                                                      "d\\\""
                                                      ":"
                                                      "\\\"n"
                                                      "otifi"
                                                      "catio"
                                                      "ns/"
                                                      "messa"
                                                      "ge\\"
                                                      "\","
                                                      "\\\"p"
                                                      "arams"
                                                      "\\\":"
                                                      "{\\\""
                                                      "data"
                                                      "\\\":"
                                                      "\\\"s"
                                                      "ecret"
                                                      "-payl"
                                                      "oad\\"
                                                      "\"}}"
                                                      "\\n\\"
                                                      "n") "},"
                                                           "{" TIME "2Z\",\"time\":100," REQUEST(
                                                               "GET", VERSION
                                                               "," ID ",{\"name\":\"last-event-"
                                                               "id\",\"value\":\"" SESSION
                                                               "/1\"}") "}," RESPONSE("",
                                                                                      "text/"
                                                                                      "event-"
                                                                                      "stream",
                                                                                      "id: " SESSION
                                                                                      "/1\\ndata: "
                                                                                      "{\\\"jsonrpc"
                                                                                      "\\\":\\\"2."
                                                                                      "0\\\","
                                                                                      "\\\"method\\"
                                                                                      "\":"
                                                                                      "\\\"notifica"
                                                                                      "tions/"
                                                                                      "message\\\","
                                                                                      "\\\"params\\"
                                                                                      "\":{"
                                                                                      "\\\"data\\\""
                                                                                      ":\\\"secret-"
                                                                                      "payload\\\"}"
                                                                                      "}\\n\\n"
                                                                                      "id: " SESSION
                                                                                      "/2\\ndata: "
                                                                                      "{\\\"jsonrpc"
                                                                                      "\\\":\\\"2."
                                                                                      "0\\\","
                                                                                      "\\\"id\\\":"
                                                                                      "\\\"" SESSION
                                                                                      ".1\\\","
                                                                                      "\\\"result\\"
                                                                                      "\":{}}"
                                                                                      "\\n\\n") "}"
                                                                                                "]}"
                                                                                                "}";

static char *report(const char *path, enum format format, bool reveal)
{
    char *argv[] = { "sseaudit" };
    struct file_arg file = { .path = path };
    struct options opt = { .command = COMMAND_AUDIT,
                           .argc = 1,
                           .argv = argv,
                           .format = format,
                           .profiles = PROFILE_DIVERGENCE | PROFILE_CONFORMANCE,
                           .fail_on = SEV_ERROR,
                           .verbose = 2,
                           .reveal = reveal,
                           .file = &file,
                           .file_count = 1 };
    char *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);

    assert_non_null(to);
    assert_int_equal(program_audit(&opt, to, false, stderr), EXIT_FINDINGS);
    fclose(to);
    return text;
}

static void test_secrets(void **state)
{
    static const enum format formats[] = { FORMAT_TEXT, FORMAT_JSON, FORMAT_NDJSON };
    char path[] = "/tmp/test_report.XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_int_equal(write(fd, har, sizeof(har) - 1), sizeof(har) - 1);
    close(fd);
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        char *text = report(path, formats[i], false);
        assert_null(strstr(text, "secret-"));
        assert_non_null(strstr(text, "/1")); /* the rest of the event id */
        free(text);
        text = report(path, formats[i], true);
        assert_non_null(strstr(text, SESSION "/1"));
        assert_null(strstr(text, "secret-token"));
        assert_null(strstr(text, "secret-cookie"));
        assert_null(strstr(text, "secret-payload"));
        free(text);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_secrets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
