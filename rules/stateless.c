/*
 * stateless.c - RULES.md section 10, revision 2026-07-28: what each rule is. Their checks are in
 * stateless_request.c and stateless_reply.c.
 */
#include "stateless_checks.h"

static const struct rule rules[] = {
    {
        .id = "stateless-header-missing",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "A request lacks MCP-Protocol-Version, Mcp-Method or the Mcp-Name that its "
                   "method needs.",
        .why = "Servers must refuse it with 400, and programs on the path cannot route it.",
        .advice = "Client: mirror revision, method and name of every request into these headers.",
        .source = "MCP 2026-07-28, Streamable HTTP > Request Metadata, Standard Request Headers",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST tools/call mail -->|  no Mcp-Name: mail\n"
                       "  |<- 400, -32020 ------------|\n",
            .needs = "All header lines and the body of the request. A recording that keeps no "
                     "headers is not judged.",
            .blind = "Mcp-Param headers: whether a tool wants them stands in its schema, which is "
                     "not looked at. Notifications need none of these.",
            .client = "Build the headers where the body is serialised, so that both come of one "
                      "value.",
            .server = "Refuse with 400 and -32020.",
            .path = "A gateway that strips unknown headers makes the same picture: compare both "
                    "sides.",
        },
        .check = check_stateless_header,
    },
    {
        .id = "stateless-header-mismatch",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "MCP-Protocol-Version, Mcp-Method or Mcp-Name says something else than the "
                   "body.",
        .why = "What a gateway allowed and routed by the header is not what the server executes "
               "by the body.",
        .advice = "Client: take the headers from the body that is sent, after the last change to "
                  "it; encode names that are not plain ASCII as =?base64?...?=.",
        .source = "MCP 2026-07-28, Streamable HTTP > Value Encoding, Server Validation",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- Mcp-Name: read ---------|\n"
                       "  |-- tools/call delete ----->|  which one was authorised?\n",
            .needs = "The headers and the body; names are decoded before they are compared, case "
                     "counts.",
            .blind = "Mcp-Param headers are not compared. Headers that stand twice are "
                     "http-duplicate-header.",
            .client = "Look for a wrapper that rewrites the body after the headers were set.",
            .server = "Compare after decoding, and refuse with 400 and -32020.",
            .path = "A gateway that rewrites names must rewrite both places.",
        },
        .check = check_stateless_mismatch,
    },
    {
        .id = "stateless-mismatch-accepted",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "A request whose headers are missing or differ from its body is accepted.",
        .why = "Whoever can send such a request passes a gateway that checks headers only.",
        .advice = "Server: compare headers and body, and refuse with 400 and the error -32020.",
        .source = "MCP 2026-07-28, Streamable HTTP > Server Validation",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- Mcp-Name: read ---------|\n"
                       "  |-- tools/call delete ----->|\n"
                       "  |<- 200, a result ----------|  must be 400\n",
            .needs = "The request and the status of its answer.",
            .blind = "Intermediaries may accept what they do not read. A missing version header "
                     "is allowed to servers for older clients, and not counted.",
            .client = "Send matching headers (stateless-header-mismatch).",
            .server = "The check belongs in front of every handler.",
        },
        .check = check_stateless_accepted,
    },
    {
        .id = "stateless-meta-missing",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "The _meta of a request lacks the protocol version or the client's "
                   "capabilities.",
        .why = "There is no handshake in this revision: without them the server does not know "
               "what the client can do, and must refuse.",
        .advice = "Client: put protocolVersion and clientCapabilities into the _meta of every "
                  "request.",
        .source = "MCP 2026-07-28, Base Protocol > _meta",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST, version header ---|\n"
                       "  |-- {no _meta} ------------>|\n"
                       "  |<- 400, -32602 ------------|\n",
            .needs = "The body, and the header that says that the request is of this revision.",
            .blind = "A request with neither header nor _meta counts as one of an older revision. "
                     "clientInfo is only recommended.",
            .client = "Add it in the transport or session layer, for retries and listen requests, "
                      "too.",
            .server = "Refuse with 400 and -32602.",
        },
        .check = check_stateless_meta,
    },
    {
        .id = "stateless-error-status",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "An error that belongs to an HTTP status comes with another one.",
        .why = "Clients that tell the eras apart by the status fall back to an older protocol, or "
               "retry what cannot work.",
        .advice = "Server: -32020, -32021 and -32022 with 400, -32601 with 404.",
        .source = "MCP 2026-07-28, Streamable HTTP > Protocol Version Header, Server Validation; "
                  "Base Protocol > Error Codes",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST foo/bar ---------->|\n"
                       "  |<- 200, -32601 ------------|  must be 404\n",
            .needs = "The error in the body, and the status.",
            .blind = "An error on an event stream that had been begun cannot change the status "
                     "any more: info.",
            .client = "Look at the code in the body, not at the status alone.",
            .server = "Decide before the response is begun.",
            .path = "A gateway that replaces statuses makes the same picture.",
        },
        .check = check_stateless_status,
    },
    {
        .id = "stateless-client-response",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "The client posts a JSON-RPC response.",
        .why = "In this revision servers ask no questions: the response answers nothing and is "
               "refused.",
        .advice = "Client: answer input requests by retrying the original request with "
                  "inputResponses.",
        .source = "MCP 2026-07-28, Streamable HTTP > Sending Messages, 4; Multi Round-Trip "
                  "Requests",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST {result} --------->|  to what?\n",
            .needs = "The body, and the version header that says that it is of this revision.",
            .blind = "Responses without the header count as of an older revision.",
            .client = "Look for code of the older revisions that answers sampling or elicitation.",
            .server = "Refuse with 400.",
        },
        .check = check_stateless_client_response,
    },
    {
        .id = "stateless-server-request",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "The server sends a JSON-RPC request.",
        .why = "Clients of this revision have no way to answer it: the handler waits for ever.",
        .advice = "Server: answer with a result of type input_required that holds the requests.",
        .source = "MCP 2026-07-28, Streamable HTTP > Receiving Messages; Multi Round-Trip Requests",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST tools/call ------->|\n"
                       "  |<- elicitation/create id 7 |  cannot be answered\n",
            .needs = "The message, and the revision of the exchange on whose stream it comes.",
            .blind = "Nothing.",
            .client = "Ignore it, and fail the call when it times out.",
            .server = "Replace server requests by inputRequests in this revision; ping is gone, "
                      "too.",
        },
        .check = check_stateless_server_request,
    },
    {
        .id = "stateless-message-after-cancel",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_T,
        .eras = ERA_D,
        .summary = "The client closed a stream, and the server still sends messages for its "
                   "request.",
        .why = "Closing the stream is the cancellation: the server works on, and its effects "
               "happen although the client gave up.",
        .advice = "Server: watch for the close of the connection or stream, and stop.",
        .source = "MCP 2026-07-28, Streamable HTTP > Cancellation; Cancellation",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST tools/call ------->|\n"
                       "  |<- progress ---------------|\n"
                       "  |-- FIN ------------------->|  cancelled\n"
                       "  |<- progress ---------------|  more than a round trip later\n",
            .needs = "The packets, the time of the close, and the time that this exchange took to "
                     "be answered as an upper bound of a round trip.",
            .blind = "Work that goes on silently. After a reset, or over HTTP/2, what the server "
                     "still sends is not looked at.",
            .client = "Do not rely on the cancellation for effects that are under way.",
            .server = "Pass the cancellation to the handler; many frameworks tell of it only when "
                      "a write fails.",
            .path = "A proxy that keeps its upstream connection open hides the close from the "
                    "server.",
        },
        .check = check_stateless_cancelled,
    },
    {
        .id = "stateless-reissue-same-id",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "A request whose stream broke is sent again under the same id.",
        .why = "It must be a new request with a new id: a server may take it for the one that it "
               "already cancelled.",
        .advice = "Client: issue the request again under a new id, if its effect may happen twice.",
        .source = "MCP 2026-07-28, changelog, major 9; Base Protocol > Requests",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST tools/call id 3 -->|\n"
                       "  |<- (stream breaks) --------|\n"
                       "  |-- POST tools/call id 3 -->|  must be a new id\n",
            .needs = "Both requests, and the end of the first one without a response.",
            .blind = "Programs at one address cannot be told apart: likely only.",
            .client = "Do not let the HTTP layer repeat a POST.",
            .path = "A proxy that retries POSTs makes the same picture.",
        },
        .check = check_stateless_same_id,
    },
    {
        .id = "stateless-resume-attempt",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "After a broken stream the client sends a GET, as if the stream could be "
                   "resumed.",
        .why = "Nothing comes of it: the request was cancelled by the break, and its response is "
               "lost.",
        .advice = "Client: issue the request again under a new id, if that is safe; use tasks for "
                  "what must survive a break.",
        .source = "MCP 2026-07-28, Streamable HTTP > Receiving Messages (resumption is not "
                  "supported); changelog, major 9",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST tools/call ------->|\n"
                       "  |<- (stream breaks) --------|\n"
                       "  |-- GET, Last-Event-ID ---->|\n"
                       "  |<- 405 --------------------|\n",
            .needs = "The stream of a request of this revision that broke, and a GET of the same "
                     "program afterwards.",
            .blind = "Without a cursor the GET may be the probe of a client that also speaks "
                     "older revisions: likely only.",
            .client = "Choose the transport's behaviour by the revision of the exchange, not by "
                      "the client's default.",
            .server = "Answer 405.",
        },
        .check = check_stateless_resume,
    },
    {
        .id = "stateless-get-not-405",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "A server of this revision alone accepts a GET or DELETE.",
        .why = "A client of an older revision believes that it has a listening stream, or has "
               "ended a session.",
        .advice = "Server: answer GET and DELETE with 405.",
        .source = "MCP 2026-07-28, Streamable HTTP > Earlier Streamable HTTP Revisions",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- GET /mcp -------------->|\n"
                       "  |<- 200 text/event-stream --|  must be 405\n",
            .needs = "Requests of this revision at the endpoint, and none of an older one that "
                     "was accepted.",
            .blind = "A server that also speaks older revisions, whose clients are not in the "
                     "capture. Pages for browsers are not judged.",
            .client = "Nothing.",
            .server = "Mount only POST, unless older revisions are served.",
        },
        .whole = whole_stateless_get,
    },
    {
        .id = "stateless-session-header",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "Mcp-Session-Id in an exchange of a revision that has no sessions.",
        .why = "Whoever relies on it keeps state that the other side does not have.",
        .advice = "Client: do not send it with requests of this revision. Server: ignore it, and "
                  "give out none.",
        .source = "MCP 2026-07-28, Streamable HTTP > Earlier Streamable HTTP Revisions; "
                  "changelog, major 1",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST, session abc ----->|  ignored\n"
                       "  |<- 200, session abc -------|  must not be given out\n",
            .needs = "The heads of an exchange of this revision.",
            .blind = "Nothing.",
            .client = "Keep the session id with the session of the older revision, not with the "
                      "connection.",
            .server = "Middleware of the older revisions may still add it.",
        },
        .check = check_stateless_session,
    },
    {
        .id = "listen-ack-not-first",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "The stream of a subscription does not begin with its acknowledgement.",
        .why = "Until it comes the client does not know which notifications it will get, and may "
               "drop what comes before.",
        .advice = "Server: send notifications/subscriptions/acknowledged before anything else.",
        .source = "MCP 2026-07-28, Subscriptions",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- subscriptions/listen -->|\n"
                       "  |<- tools/list_changed -----|\n"
                       "  |<- acknowledged -----------|  too late\n",
            .needs = "The stream from its begin.",
            .blind = "An error as the first message is a refusal, and not judged. Comments do not "
                     "count.",
            .client = "Keep what comes before the acknowledgement.",
            .server = "Register for notifications after the acknowledgement was written.",
        },
        .check = check_listen_ack,
    },
    {
        .id = "listen-subscription-id",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "A message on the stream of a subscription does not carry its subscriptionId.",
        .why = "A client with several subscriptions cannot tell whose message it is.",
        .advice = "Server: put the id of the listen request, with its JSON type, into the _meta "
                  "of every message.",
        .source = "MCP 2026-07-28, Subscriptions; Base Protocol > _meta",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- listen, id 5 ---------->|\n"
                       "  |<- list_changed, \"5\" ------|  5 is not \"5\"\n",
            .needs = "The messages of the stream, and the id of the request.",
            .blind = "How a server ends a subscription is not settled (cancelled, or a response): "
                     "both are let pass.",
            .client = "Fall back to the stream that carried it.",
            .server = "Keep the id as it came, number or string.",
        },
        .check = check_listen_id,
    },
    {
        .id = "listen-unrequested-type",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "The stream of a subscription carries a notification that was not asked for, "
                   "or that never belongs there.",
        .why = "Clients may treat it as a protocol error; progress and log messages lose the "
               "request that they belong to.",
        .advice = "Server: send only what the acknowledgement granted; progress and log messages "
                  "go on the stream of their request.",
        .source = "MCP 2026-07-28, Subscriptions; Streamable HTTP > Receiving Messages",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- listen {tools} -------->|\n"
                       "  |<- acknowledged {tools} ---|\n"
                       "  |<- prompts/list_changed ---|  not asked for\n",
            .needs = "The filter of the request and of the acknowledgement.",
            .blind = "Which resources a subscription named; notifications of extensions.",
            .client = "Ignore it.",
            .server = "Filter by subscription, not by connection.",
        },
        .check = check_listen_type,
    },
    {
        .id = "listen-abrupt-end",
        .severity = SEV_INFO,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_T,
        .eras = ERA_D,
        .summary = "The stream of a subscription ends without a response.",
        .why = "What happens until the client subscribes again is not told to anybody.",
        .advice = "Client: subscribe again, and list again what may have changed. Server: end "
                  "subscriptions with their response.",
        .source = "MCP 2026-07-28, Subscriptions > Graceful Closure",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- subscriptions/listen -->|\n"
                       "  |<- acknowledged -----------|\n"
                       "  |<- FIN, no response -------|\n",
            .needs = "The end of the stream; the message says whether the client subscribed again.",
            .blind = "Whether a server or something on the path ended it, where it is a reset. "
                     "What the client closes itself is no abrupt end.",
            .client = "Treat it as a break: wait, subscribe again, refresh.",
            .server = "Send the response before shutting down.",
            .path = "Idle time-outs end such streams; comments as keep-alives prevent it.",
        },
        .check = check_listen_end,
    },
    {
        .id = "log-without-optin",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "Log messages come for a request that did not ask for them.",
        .why = "Logging is asked for by each request in this revision; others may be charged for "
               "or disturbed by it.",
        .advice = "Server: send notifications/message only where the request's _meta has logLevel.",
        .source = "MCP 2026-07-28, Logging",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST tools/call ------->|  no logLevel in _meta\n"
                       "  |<- notifications/message --|\n",
            .needs = "The request's _meta, and the stream.",
            .blind = "Whether the level is high enough is not judged.",
            .client = "Ask for a level where log messages are wanted.",
            .server = "Bind the logger to the request, not to the server.",
        },
        .check = check_log_optin,
    },
    {
        .id = "result-type-missing",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "A result has no resultType.",
        .why = "The client has to guess whether the request is complete or wants input.",
        .advice = "Server: set resultType in every result (\"complete\", \"input_required\").",
        .source = "MCP 2026-07-28, Base Protocol > Responses",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST tools/list ------->|\n"
                       "  |<- {\"result\":{...}} -------|  no resultType\n",
            .needs = "The result, and the revision of the request.",
            .blind = "Nothing.",
            .client = "Take it for complete.",
            .server = "Set it in one place, where results are serialised.",
        },
        .check = check_result_type,
    },
    {
        .id = "retry-state-changed",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "A request for input, or the retry that answers it, breaks the rules of the "
                   "exchange.",
        .why = "The state belongs to the server: lost or changed, the call starts over or is "
               "refused, and its first half may have had effects.",
        .advice = "Client: retry under a new id with the exact requestState, or none where none "
                  "was given. Server: ask only on tools/call, prompts/get and resources/read.",
        .source = "MCP 2026-07-28, Multi Round-Trip Requests",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- tools/call id 1 ------->|\n"
                       "  |<- input_required, st=A ---|\n"
                       "  |-- tools/call id 2, st=B ->|  must be A\n",
            .needs = "The result that asks, and the next request of the same call with "
                     "inputResponses or a requestState.",
            .blind = "With several calls of one name under way the pair is likely only. A retry "
                     "that carries neither responses nor state is not recognised.",
            .client = "Store the state as an opaque string; do not parse or re-encode it.",
            .server = "Protect the state against changes, and refuse it when it does not verify.",
        },
        .check = check_retry_state,
    },
    {
        .id = "removed-feature",
        .severity = SEV_INFO,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "A method is used that this revision has removed.",
        .why = "Nobody answers it: handshake, ping, log level and resource subscriptions have "
               "other forms now.",
        .advice = "Client: leave it out in exchanges of 2026-07-28.",
        .source = "MCP 2026-07-28, changelog, major 1 to 9",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST ping ------------->|\n"
                       "  |<- 404, -32601 ------------|\n",
            .needs = "The method, and the revision of the exchange.",
            .blind = "A client that probes on purpose.",
            .client = "Cancel by closing the stream, not by notifications/cancelled; subscribe by "
                      "subscriptions/listen.",
            .server = "Answer unknown methods with 404 and -32601.",
        },
        .check = check_removed_feature,
    },
    {
        .id = "reserved-error-code",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "An error code is used that this revision reserves and does not define, or has "
                   "withdrawn.",
        .why = "A later revision will give it another meaning.",
        .advice = "Server: use -32000 to -32019 for errors of its own.",
        .source = "MCP 2026-07-28, Base Protocol > Error Codes",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST resources/read --->|\n"
                       "  |<- error -32002 -----------|  withdrawn\n",
            .needs = "The code.",
            .blind = "Codes of extensions: they must not use this range either.",
            .client = "Treat it as an error of unknown meaning.",
            .server = "-32602 says that a resource does not exist.",
        },
        .check = check_reserved_code,
    },
};

const struct rule_family rules_stateless = RULE_FAMILY("stateless", "Revision 2026-07-28", rules);
