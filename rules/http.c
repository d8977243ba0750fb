/*
 * http.c - RULES.md section 9, HTTP and sessions: what each rule is. Their checks are in
 * http_exchange.c, http_session.c and http_start.c.
 */
#include "http_checks.h"
#include "traffic.h"

static const struct rule rules[] = {
    {
        .id = "http-chunked-incomplete",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_T,
        .summary = "A chunked body ends with its connection, without the last chunk.",
        .why = "The last chunk is the only thing that tells a stream which the server ended from "
               "one which the path broke.",
        .advice = "Server: end every response properly, also when the process shuts down. Client: "
                  "treat such a body as cut, and resume or fail what it left open.",
        .source = "RFC 9112, sections 7.1 and 8 (a chunked message without the zero chunk is "
                  "incomplete)",
        .explain = {
            .picture = "client                      server\n"
                       "  |<- 200, chunked -----------|\n"
                       "  |<- 1a data: ... -----------|\n"
                       "  |<- FIN or RST -------------|  no \"0\": was this the end, or a break?\n",
            .needs = "The packets of the end of the connection, and no gap in the body.",
            .blind = "Who reset: a middlebox that forges the server's TTL and sequence numbers "
                     "looks like the server. Bodies that the client gave up first are not judged.",
            .client = "Do not take the end of the connection for the end of the stream; resume it "
                      "where it has ids.",
            .server = "Drain open responses before the process or the worker ends, and write the "
                      "last chunk.",
            .path = "Idle time-outs of load balancers end streams so; see idle-cut for the "
                    "silence before it.",
        },
        .check = check_http_chunked,
    },
    {
        .id = "http-body-short",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_T,
        .summary = "A body ends before the length that its head announced.",
        .why = "What is missing may be the answer; a parser that is content with what came takes "
               "half a message for a whole one.",
        .advice = "Server: send the announced number of bytes or do not announce any. Client: "
                  "discard the body as incomplete.",
        .source = "RFC 9112, sections 6.3 and 8; RFC 9113, section 8.1.1",
        .explain = {
            .picture = "client                      server\n"
                       "  |<- Content-Length: 900 ----|\n"
                       "  |<- 512 bytes --------------|\n"
                       "  |<- FIN or RST -------------|\n",
            .needs = "The packets of the body and of its end; a browser's recording counts "
                     "decoded bytes and is not judged.",
            .blind = "A body that the client itself gave up is not judged.",
            .client = "Report the request as failed; do not parse what came.",
            .server = "Look for a length that was computed before encoding, or a handler that "
                      "died while writing.",
            .path = "A proxy that cuts at a size or time limit makes the same picture.",
        },
        .check = check_http_short,
    },
    {
        .id = "http-close-delimited-sse",
        .severity = SEV_INFO,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "An event stream has neither chunks nor a length, so that only the close of "
                   "its connection ends it.",
        .why = "A broken connection and the end of the stream look the same: nobody can tell "
               "whether something is missing.",
        .advice = "Server: send event streams chunked (HTTP/1.1), or over HTTP/2.",
        .source = "RFC 9112, section 6.3 (closing rule 8) and section 8",
        .explain = {
            .picture = "client                      server\n"
                       "  |<- 200 text/event-stream --|  no Transfer-Encoding, no Content-Length\n"
                       "  |<- data: ... --------------|\n"
                       "  |<- FIN --------------------|  end, or failure?\n",
            .needs = "The head of the response.",
            .blind = "Nothing; it is legal, and weak.",
            .server = "Answer HTTP/1.1 requests as HTTP/1.1 with chunks; HTTP/1.0 and "
                      "\"Connection: close\" handlers fall back to this.",
            .path = "A proxy that speaks HTTP/1.0 to its upstream takes the chunks away (nginx: "
                    "proxy_http_version 1.1).",
        },
        .check = check_http_until_close,
    },
    {
        .id = "http-length-conflict",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "A message says in two contradicting ways where its body ends.",
        .why = "Two programs on the path may see different messages: the classic request "
               "smuggling, or a stream that swallows the next response.",
        .advice = "Send exactly one of Transfer-Encoding and Content-Length, once.",
        .source = "RFC 9112, section 6.3, rules 3 and 5, and section 11.2",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- Content-Length: 10 ---->|\n"
                       "  |-- Transfer-Encoding: -----|  chunked: which of them counts?\n",
            .needs = "The head of the message.",
            .blind = "Equal lengths on two lines are tolerated by the standard and not reported.",
            .client = "Let the HTTP library frame the body; do not set these headers by hand.",
            .server = "Let the HTTP library frame the body, and refuse such requests.",
            .path = "Normalise or refuse, never forward both.",
        },
        .check = check_http_length,
    },
    {
        .id = "http-unsolicited-bytes",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_T,
        .summary = "The server sends bytes on a connection on which no request waits for an "
                   "answer.",
        .why = "The next request on this connection may be given the wrong response: every answer "
               "after it can be misrouted.",
        .advice = "Client: close the connection. Server: look for a handler that writes after its "
                  "response has ended, or answers twice.",
        .source = "RFC 9112, section 9.2 (data after the last response is no response); 9110, "
                  "section 15.5.9",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST ------------------>|\n"
                       "  |<- 200, complete ----------|\n"
                       "  |<- HTTP/1.1 200 ... -------|  nobody asked\n",
            .needs = "Both directions of the connection from its start.",
            .blind = "A request that the capture lost; near a gap nothing is claimed. A late 408 "
                     "on an idle connection is usual and not reported.",
            .client = "Never reuse a connection that carried unexpected bytes.",
            .server = "Look for double ends, and for writes from a task that outlived its request.",
            .path = "A proxy that mixes up upstream connections shows this too; compare with the "
                    "same exchange on the other side.",
        },
        .whole = whole_http_unsolicited,
    },
    {
        .id = "http-pipelined-behind-sse",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_T,
        .summary = "A request is sent on a connection whose event stream is still open.",
        .why = "HTTP/1.1 answers in order: the request cannot be answered before the stream ends, "
               "which may be never.",
        .advice = "Client: use another connection, or HTTP/2, while a stream is open.",
        .source = "RFC 9112, sections 9.3.2 and 9.2",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- GET /mcp -------------->|\n"
                       "  |<- 200 text/event-stream --|  stays open\n"
                       "  |-- POST on the same one -->|  waits for the end of the stream\n",
            .needs = "The packets of the connection.",
            .blind = "Requests that were sent before the head of the stream came are not judged.",
            .client = "Look for a connection pool that counts a streaming response as finished.",
            .path = "Some proxies share one upstream connection between clients; the pool must "
                    "know about streams.",
        },
        .whole = whole_http_pipelined,
    },
    {
        .id = "http-obs-fold",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "A header goes on in an indented second line.",
        .why = "Servers may refuse it, and programs on the path differ on what the value is.",
        .advice = "Send every header on one line.",
        .source = "RFC 9112, section 5.2 (obs-fold: senders must not generate it)",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- Mcp-Session-Id: abc ----|\n"
                       "  |--   def ----------------->|  one value, or two lines?\n",
            .needs = "The bytes of the head; a browser's recording does not show them.",
            .blind = "A proxy that unfolds hides it.",
            .client = "Look for a value with a line break in it.",
            .server = "Look for a value with a line break in it.",
        },
        .check = check_http_fold,
    },
    {
        .id = "http-duplicate-header",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "A header of MCP that may stand once is on two lines.",
        .why = "Some programs take the first, some the last, some join them with a comma: session "
               "and version become a matter of opinion.",
        .advice = "Client: set each of these headers once; look for a wrapper that adds what the "
                  "transport has set already.",
        .source = "RFC 9110, sections 5.2 and 5.3",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- Mcp-Session-Id: a ------|\n"
                       "  |-- Mcp-Session-Id: b ----->|\n",
            .needs = "The head of the request; recorders that merge equal headers hide it.",
            .blind = "Last-Event-ID on two lines is cursor-mangled.",
            .client = "Replace the header instead of appending it when a session is renewed.",
            .path = "A proxy that adds its own session header must remove the client's.",
        },
        .check = check_http_duplicate,
    },
    {
        .id = "http-405-without-allow",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "A method is refused with 405 and without the header Allow.",
        .why = "Allow is how a client learns that GET is not offered here, rather than broken.",
        .advice = "Server: send Allow with the methods of the endpoint, for example \"Allow: "
                  "POST\".",
        .source = "RFC 9110, section 15.5.6",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- GET /mcp -------------->|\n"
                       "  |<- 405 --------------------|  no Allow\n",
            .needs = "The head of the response.",
            .blind = "Whether the method is really unsupported, or only for this client.",
            .server = "Most frameworks add it when the route is registered by method instead of "
                      "refused in the handler.",
            .path = "A gateway that makes up its own 405 should copy or add Allow.",
        },
        .whole = whole_http_allow,
    },
    {
        .id = "post-accept-incomplete",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = STREAMABLE,
        .summary = "The Accept header of a POST does not list both application/json and "
                   "text/event-stream.",
        .why = "The server may answer either way: servers refuse such requests with 406 or 400, "
               "or answer in a form that the client cannot read.",
        .advice = "Client: send \"Accept: application/json, text/event-stream\" on every POST.",
        .source = "MCP 2025-11-25, Transports > Sending Messages to the Server, 2; MCP "
                  "2026-07-28, Streamable HTTP > Sending Messages, 2",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST, Accept: json ---->|\n"
                       "  |<- 406 Not Acceptable -----|  or an event stream that nobody reads\n",
            .needs = "The request's head. A recording that keeps no Accept headers at all is not "
                     "judged.",
            .blind = "\"*/*\" covers both types for HTTP, but the specification wants them "
                     "listed: info.",
            .client = "Set the header in the transport, not in the caller.",
            .server = "Refuse with 406 (the TypeScript and Python SDKs do, the Go and Java ones with 400), "
                      "or answer JSON where that alone is accepted.",
            .path = "A gateway that rewrites Accept for its own cache makes the same picture.",
        },
        .check = check_post_accept,
    },
    {
        .id = "get-accept-missing",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = STREAMABLE_AC,
        .summary = "A GET that opens a stream does not accept text/event-stream.",
        .why = "Servers refuse it with 406, and the client has no listening stream.",
        .advice = "Client: send \"Accept: text/event-stream\" on every GET, resumptions included.",
        .source = "MCP 2025-11-25, Transports > Listening for Messages from the Server, 2",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- GET, Accept: json ----->|\n"
                       "  |<- 406 or 405 -------------|\n",
            .needs = "The request's head, and a session id, cursor or version that shows that it "
                     "is one of MCP.",
            .blind = "A GET without any of these may come from a browser or a health check.",
            .client = "Use the same header for the first GET and for reconnects.",
        },
        .check = check_get_accept,
    },
    {
        .id = "post-request-bad-reply",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = STREAMABLE,
        .summary = "A POST with a request is accepted, and answered neither by JSON nor by an "
                   "event stream.",
        .why = "The client has no place to read the response from: the request hangs until it "
               "times out.",
        .advice = "Server: answer application/json with the response, or text/event-stream.",
        .source = "MCP 2025-11-25, Transports > Sending Messages to the Server, 5; MCP "
                  "2026-07-28, Streamable HTTP > Sending Messages, 6",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST tools/call id 3 -->|\n"
                       "  |<- 202 (or text/html) -----|  where is the response to 3?\n",
            .needs = "The request's body and the response's head; for an empty body also its end.",
            .blind = "Refusals (4xx, 5xx) and redirects are ordinary HTTP. HTTP+SSE (2024-11-05) "
                     "answers 202 by design: where a session joined late could be one, nothing is "
                     "claimed.",
            .client = "Fail the request at once.",
            .server = "202 is for notifications and responses only.",
            .path = "A login page or an error page with status 200 makes the same picture.",
        },
        .whole = whole_post_reply,
    },
    {
        .id = "post-oneway-not-202",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = STREAMABLE,
        .summary = "A POST with notifications or responses only is accepted with another status "
                   "than 202.",
        .why = "Clients that take anything else for a reply wait for a body, or report the "
               "message as not delivered.",
        .advice = "Server: answer 202 Accepted without a body.",
        .source = "MCP 2025-11-25, Transports > Sending Messages to the Server, 4; MCP "
                  "2026-07-28, Streamable HTTP > Sending Messages, 5",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST notification ----->|\n"
                       "  |<- 200 {} -----------------|  must be 202, no body\n",
            .needs = "The request's body and the status.",
            .blind = "Nothing is said of refusals: they may have any error status.",
            .client = "Accept any 2xx to what needs no answer.",
            .server = "Look for a framework that turns an empty result into 200 or 204.",
        },
        .check = check_post_oneway,
    },
    {
        .id = "post-202-with-body",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = STREAMABLE,
        .summary = "A 202 to notifications or responses has a body.",
        .why = "The specification says that there is none; a client that reuses the connection "
               "without reading it gets out of step.",
        .advice = "Server: send 202 with Content-Length: 0.",
        .source = "MCP 2025-11-25, Transports > Sending Messages to the Server, 4 (202 with no "
                  "body)",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST notification ----->|\n"
                       "  |<- 202 \"Accepted\" ---------|  eight bytes too many\n",
            .needs = "The size of the body.",
            .blind = "HTTP+SSE (2024-11-05) says nothing about it, and is not judged.",
            .client = "Read and discard the body.",
            .server = "Do not let the framework write the reason phrase as a body.",
        },
        .check = check_post_202_body,
    },
    {
        .id = "get-reply-not-sse-or-405",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = STREAMABLE_AC,
        .summary = "A GET for an event stream is accepted, and answered by something else.",
        .why = "The client waits for events that never come, or gives its listening stream up: "
               "what the server has to say is lost.",
        .advice = "Server: answer GET with text/event-stream, or with 405 where no stream is "
                  "offered.",
        .source = "MCP 2025-11-25, Transports > Listening for Messages from the Server, 3",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- GET, Accept: SSE ------>|\n"
                       "  |<- 200 application/json ---|  a status page\n",
            .needs = "The response's head.",
            .blind = "A GET with Last-Event-ID that is answered so is replay-refused.",
            .client = "Treat it as \"no listening stream\" and say so; do not retry for ever.",
            .server = "Keep health and status pages on another path.",
            .path = "A gateway's own landing page makes the same picture.",
        },
        .whole = whole_get_reply,
    },
    {
        .id = "session-id-missing",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = STREAMABLE_AC,
        .summary = "The server gave the client a session id, and later requests do not carry it.",
        .why = "The server cannot find the session: it refuses, or starts over and has forgotten "
               "everything.",
        .advice = "Client: keep the Mcp-Session-Id of the response to initialize, and send it on "
                  "every POST, GET and DELETE.",
        .source = "MCP 2025-11-25, Transports > Session Management, 2",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- initialize ------------>|\n"
                       "  |<- Mcp-Session-Id: abc ----|\n"
                       "  |-- tools/list ------------>|  no Mcp-Session-Id\n"
                       "  |<- 400 --------------------|\n",
            .needs = "The response to initialize, and later requests from the same address and "
                     "program to the same endpoint.",
            .blind = "Two programs at one address look like one; where the id is used at all the "
                     "finding is likely only. Clients that start from changing addresses are seen "
                     "per address.",
            .client = "Look for a cookie or header store that is not shared between connections, "
                      "and for CORS: browsers need Access-Control-Expose-Headers.",
            .server = "Expose the header to browsers (Access-Control-Expose-Headers: "
                      "Mcp-Session-Id).",
            .path = "A gateway that strips unknown headers makes the same picture: compare both "
                    "sides.",
        },
        .whole = whole_session_missing,
    },
    {
        .id = "session-id-unknown",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = STREAMABLE_AC,
        .summary = "A session id is used that no response gave out, and the server does not know "
                   "it.",
        .why = "The client talks about a session that this server never had, or has forgotten.",
        .advice = "Client: use the id exactly as it was given, and none of an earlier run without "
                  "being ready for 404.",
        .source = "MCP 2025-11-25, Transports > Session Management, 2 and 4",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST, session xyz ----->|  nobody gave out xyz\n"
                       "  |<- 404 --------------------|\n",
            .needs = "All of the session's requests are refused. Warning where the same client "
                     "had been given another id, which it never sent; else info.",
            .blind = "An id from before the capture looks the same.",
            .client = "Compare the bytes: trimming, case, a stale file.",
            .server = "Nothing; 404 is right.",
        },
        .whole = whole_session_unknown,
    },
    {
        .id = "session-id-charset",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = STREAMABLE_AC,
        .summary = "A session id has bytes other than visible ASCII.",
        .why = "Programs on the path trim, split or refuse such values: the session is lost at "
               "the first of them.",
        .advice = "Server: use visible ASCII without blanks (a UUID, a token, a hash).",
        .source = "MCP 2025-11-25, Transports > Session Management, 1 (0x21 to 0x7E)",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- initialize ------------>|\n"
                       "  |<- Mcp-Session-Id: a b ----|\n",
            .needs = "The header's bytes, from packets.",
            .blind = "Blanks at the ends are no part of a value in HTTP.",
            .client = "Look for two values joined by a comma.",
            .server = "Encode what you put into the id (base64url).",
        },
        .check = check_session_charset,
    },
    {
        .id = "session-id-reassigned",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = STREAMABLE_AC,
        .summary = "The answer to an ordinary request names another session than the request.",
        .why = "Clients that take the new id over leave their streams and cursors behind; those "
               "that do not are refused later.",
        .advice = "Server: give an id out with the response to initialize only, and answer 404 "
                  "when a session is gone.",
        .source = "MCP 2025-11-25, Transports > Session Management, 1",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST, session abc ----->|\n"
                       "  |<- 200, session def -------|\n",
            .needs = "Both heads.",
            .blind = "A reconnect with a cursor that is answered so is session-changed-on-resume.",
            .client = "Do not follow; start over with initialize.",
            .server = "Look for code that creates a session whenever it does not find one.",
            .path = "A load balancer without affinity sends requests to servers that create their "
                    "own.",
        },
        .check = check_session_reassigned,
    },
    {
        .id = "session-zombie",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = STREAMABLE_AC,
        .summary = "A session id that was answered 404 is accepted again.",
        .why = "404 tells the client to start over: it throws a session away that lives, with all "
               "its streams and open requests.",
        .advice = "Server: answer 404 only when the session is gone for good; for everything else "
                  "use another status.",
        .source = "MCP 2025-11-25, Transports > Session Management, 3 and 4",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST, session abc ----->|\n"
                       "  |<- 404 --------------------|  the session is over\n"
                       "  |-- POST, session abc ----->|\n"
                       "  |<- 200 --------------------|  is it?\n",
            .needs = "A POST answered 404 and a later one accepted, under the same id.",
            .blind = "Which program said 404: a proxy during a deployment does, too. A 404 for a "
                     "cursor is replay-refused-404-live-session, for an unknown method (-32601) "
                     "none of this; accepted and refused in turn is session-flapping.",
            .client = "Start over after 404, as the specification says.",
            .server = "Look for replicas that do not share their sessions, and for 404 of the "
                      "router.",
            .path = "Give the status 502 or 503 while no server is there.",
        },
        .check = check_session_zombie,
    },
    {
        .id = "session-dead-not-404",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = STREAMABLE_AC,
        .summary = "After its DELETE a session id is answered with something other than 404.",
        .why = "The client cannot learn that the session is over, and goes on with it.",
        .advice = "Server: answer 404 to every request with the id of an ended session.",
        .source = "MCP 2025-11-25, Transports > Session Management, 3",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- DELETE, session abc --->|\n"
                       "  |<- 200 --------------------|\n"
                       "  |-- POST, session abc ----->|\n"
                       "  |<- 400 --------------------|  404 tells the client to start over\n",
            .needs = "The accepted DELETE, and a later POST or GET.",
            .blind = "401, 403, 429 and 5xx are ordinary HTTP; a second DELETE, and 405 for GET, "
                     "are not judged.",
            .client = "Do not use an id after DELETE.",
            .server = "Remember ended sessions no longer than needed: an unknown id is 404, too.",
        },
        .check = check_session_dead,
    },
    {
        .id = "session-reinit-with-id",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = STREAMABLE_AC,
        .summary = "After a 404 the client initializes again and still sends the old session id.",
        .why = "The server answers 404 again: the client never comes back.",
        .advice = "Client: forget the id on 404, then send initialize without the header.",
        .source = "MCP 2025-11-25, Transports > Session Management, 4",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST, session abc ----->|\n"
                       "  |<- 404 --------------------|\n"
                       "  |-- initialize, abc ------->|  must carry no session id\n",
            .needs = "The 404 and the initialize request.",
            .blind = "Nothing.",
            .client = "Clear the stored id before the retry, not after its success.",
            .server = "Ignore the header on initialize if you want to be kind.",
        },
        .whole = whole_session_reinit,
    },
    {
        .id = "version-header-missing",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_B | ERA_C,
        .summary = "A request after the handshake carries no MCP-Protocol-Version.",
        .why = "The server has to assume 2025-03-26, another protocol than the one that was "
               "agreed on.",
        .advice = "Client: send MCP-Protocol-Version with the negotiated revision on every "
                  "request after initialize, GET and DELETE included.",
        .source = "MCP 2025-11-25, Transports > Protocol Version Header",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- initialize ------------>|\n"
                       "  |<- 2025-11-25 -------------|\n"
                       "  |-- tools/list ------------>|  no MCP-Protocol-Version\n",
            .needs = "The negotiated revision, or other requests of the session that carry the "
                     "header.",
            .blind = "Sessions of which neither is in the evidence.",
            .client = "Often only the GET, the DELETE or notifications/initialized lack it: look "
                      "where the transport builds them.",
            .server = "You may assume 2025-03-26; better ask the session.",
            .path = "A gateway that strips unknown headers makes the same picture.",
        },
        .check = check_version_missing,
    },
    {
        .id = "version-header-mismatch",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_B | ERA_C,
        .summary = "MCP-Protocol-Version names another revision than the handshake agreed on.",
        .why = "Both sides may apply different rules to the same message.",
        .advice = "Client: send the protocolVersion of the result of initialize, not the one that "
                  "was asked for.",
        .source = "MCP 2025-11-25, Transports > Protocol Version Header",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- initialize 2025-11-25 ->|\n"
                       "  |<- 2025-06-18 -------------|\n"
                       "  |-- tools/list ------------>|  MCP-Protocol-Version: 2025-11-25\n",
            .needs = "The result of initialize.",
            .blind = "Sessions whose handshake is not in the evidence.",
            .client = "Take the version over from the result before notifications/initialized is "
                      "sent.",
        },
        .check = check_version_mismatch,
    },
    {
        .id = "version-invalid-accepted",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_B | ERA_C,
        .summary = "A request with an MCP-Protocol-Version that is no revision is accepted.",
        .why = "A server that does not look at the header applies its own idea of the protocol to "
               "whatever comes.",
        .advice = "Server: answer 400 to a version that it does not support.",
        .source = "MCP 2025-11-25, Transports > Protocol Version Header",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- version: 1.0 ---------->|\n"
                       "  |<- 200 --------------------|  must be 400\n",
            .needs = "The header and the status.",
            .blind = "Drafts, dates before the first revision and after the last one known to "
                     "this tool are not judged: the server may know them.",
            .client = "Send a revision, not the version of the software.",
            .server = "Compare with the list of supported revisions.",
        },
        .check = check_version_invalid,
    },
    {
        .id = "init-not-first",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = INITIALIZED,
        .summary = "The client's first message is not initialize.",
        .why = "Nothing has been agreed on: the server refuses, or guesses the revision.",
        .advice = "Client: wait for the result of initialize before anything else.",
        .source = "MCP 2025-11-25, Lifecycle > Initialization",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- tools/list ------------>|\n"
                       "  |<- 400 not initialized ----|\n"
                       "  |-- initialize ------------>|\n",
            .needs = "HTTP+SSE: the stream from its begin. Streamable HTTP without a session id: "
                     "the refusal, and the initialize that follows.",
            .blind = "A session that was begun before the capture looks like one without a "
                     "beginning: nothing is claimed then.",
            .client = "Look for a request that races the handshake.",
            .server = "Refuse with an error that says so.",
        },
        .whole = whole_init_not_first,
    },
    {
        .id = "initialized-missing",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = INITIALIZED,
        .summary = "The client never sends notifications/initialized, and goes on with requests.",
        .why = "Servers may hold back what they have to say until it comes.",
        .advice = "Client: send notifications/initialized as soon as the result of initialize is "
                  "there.",
        .source = "MCP 2025-11-25, Lifecycle > Initialization",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- initialize ------------>|\n"
                       "  |<- result -----------------|\n"
                       "  |-- tools/list ------------>|  where is notifications/initialized?\n",
            .needs = "The whole session, all bodies of the client readable, and a request that "
                     "was answered afterwards.",
            .blind = "With any body unread, or anything encrypted in the capture, nothing is "
                     "claimed.",
            .client = "Send it by POST as a notification; the answer is 202.",
            .server = "Do not depend on it for answering requests.",
        },
        .whole = whole_initialized_missing,
    },
    {
        .id = "early-request",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = INITIALIZED,
        .summary = "A request is sent before the handshake is over.",
        .why = "The other side does not know yet which revision and which features apply.",
        .advice = "Client: only ping before initialize is answered. Server: only ping and logging "
                  "before notifications/initialized.",
        .source = "MCP 2025-11-25, Lifecycle > Initialization",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- initialize ------------>|\n"
                       "  |-- tools/list ------------>|  not answered yet\n"
                       "  |<- result -----------------|\n",
            .needs = "The order of the packets at one place of the path.",
            .blind = "With several programs at one address the client's side is likely only. "
                     "Progress and cancellations are not judged.",
            .client = "Await the result; do not start requests in parallel.",
            .server = "Send list changes and requests after notifications/initialized has come.",
        },
        .whole = whole_early_request,
    },
    {
        .id = "legacy-endpoint-not-first",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "On a stream of HTTP+SSE the event endpoint is not the first one.",
        .why = "Clients wait for endpoint as the first event; until then they know no address, "
               "and some give up at any other event.",
        .advice = "Server: send the event endpoint before anything else.",
        .source = "MCP 2024-11-05, Transports > HTTP with SSE",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- GET /sse -------------->|\n"
                       "  |<- event: message ---------|\n"
                       "  |<- event: endpoint --------|  too late\n",
            .needs = "The stream from its begin, and a client that posts JSON-RPC to the same "
                     "host.",
            .blind = "Streams that never send the event are not recognised as HTTP+SSE.",
            .client = "Ignore what comes before it.",
            .server = "Write it when the stream opens, before the session is announced to others.",
        },
        .whole = whole_legacy_endpoint,
    },
    {
        .id = "legacy-post-wrong-uri",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "A message is posted elsewhere than to the address that the stream named.",
        .why = "The server cannot find the session of the message, and refuses it.",
        .advice = "Client: post to the address of the event endpoint, with its query, resolved "
                  "against the address of the stream.",
        .source = "MCP 2024-11-05, Transports > HTTP with SSE",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- GET /sse -------------->|\n"
                       "  |<- endpoint /msg?s=1 ------|\n"
                       "  |-- POST /sse ------------->|\n"
                       "  |<- 404 --------------------|\n",
            .needs = "The stream, open at that time, and a refused POST of the same program to "
                     "its address or to the endpoint's path.",
            .blind = "POSTs that are accepted are not judged: the server may offer both "
                     "transports at one address. Other paths are not looked at.",
            .client = "Do not rebuild the address from the base URL; the query is the session.",
            .server = "Advertise an address that is valid behind your proxy.",
            .path = "A gateway that rewrites paths must rewrite the event, too.",
        },
        .whole = whole_legacy_uri,
    },
    {
        .id = "legacy-response-in-post",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_L,
        .summary = "In HTTP+SSE a response comes in the body of the POST instead of on the stream.",
        .why = "Clients of this transport read responses from the stream only: the request hangs.",
        .advice = "Server: answer the POST with 202, and send the response on the stream.",
        .source = "MCP 2024-11-05, Transports > HTTP with SSE (server messages are sent as SSE "
                  "message events)",
        .explain = {
            .picture = "client                      server\n"
                       "  |<- endpoint /msg?s=1 ------|\n"
                       "  |-- POST /msg?s=1 id 3 ---->|\n"
                       "  |<- 200 {\"id\":3,...} -------|  belongs on the stream\n",
            .needs = "The body of the reply.",
            .blind = "Errors with a 4xx status are refusals, and not judged.",
            .client = "Nothing.",
            .server = "Look for a handler that is mounted for both transports.",
        },
        .check = check_legacy_response,
    },
};

const struct rule_family rules_http = RULE_FAMILY("http", "HTTP and sessions", rules);
