// dispatch-log.mjs - writes the dispatch log of an MCP client that uses @modelcontextprotocol/sdk, so that
// sseaudit can hold it against a capture. Only public hooks are used: onmessage, send() with its
// onresumptiontoken, resumeStream(), and, if you want it, the transport's `fetch` option.
//
//     import { attachDispatchLog, watchFetch } from './dispatch-log.mjs';
//
//     const watch = watchFetch();                                   // optional, see below
//     const transport = new StreamableHTTPClientTransport(url, { fetch: watch });
//     const log = attachDispatchLog(transport, { path: 'dispatch.ndjson', client: 'my-app/1.2', watch });
//     await client.connect(transport);                              // attach first, then connect
//
// What the hooks know is written by itself. What only your program knows, you add. A program that stores its
// cursor after the handler, or together with the effect, says so (`ownCursor: true`) and writes those lines too:
//
//     db.transaction(() => { save(result); saveCursor(id); });
//     log.entry({ state: 'cursor', event_id: id, txn: 17 });
//     log.entry({ state: 'committed', event_id: id, request_id: 3, txn: 17 }); // equal txn: one transaction
//
// Without `watch` the log has no event ids for the stream that the SDK opens by itself after `initialized`,
// none of the SDK's own reconnects, and no digests. With it, it has all of them; only the cursor of that stream
// stays the SDK's secret.
//
// `processed` says that the SDK took the message: a response resolved its request, the synchronous part of a
// handler ran. `dropped`: nobody waits for this response (any more), so the SDK's Client throws it away.
// `committed` is never written by itself: what is durable only your program knows. `cursor` is written when
// your onresumptiontoken callback returned, or, without one, when the SDK moved its own cursor; never with
// `ownCursor`.
//
// One line is one write with O_APPEND, so several processes may share a file and a crash cuts no line in two.
import { createHash } from 'node:crypto';
import { closeSync, fstatSync, openSync, write, writeSync } from 'node:fs';
import { createParser } from 'eventsource-parser';

const REMEMBERED = 1000; // requests whose method is known when the answer comes, ids of events not yet handed over

let origin = performance.timeOrigin;

// Microseconds, and yet the wall clock: where that was set, follow it.
export function timestamp() {
    const wall = Date.now();
    if (Math.abs(origin + performance.now() - wall) > 2)
        origin = wall - performance.now();
    const us = Math.round((origin + performance.now()) * 1000);
    return new Date(us / 1000).toISOString().slice(0, 19) + '.' + String(us % 1e6).padStart(6, '0') + 'Z';
}

class LineFile {
    constructor(path, sync) {
        this.fd = openSync(path, 'a');
        this.sync = sync;
        this.waiting = [];
        this.empty = fstatSync(this.fd).size === 0;
    }

    line(object) {
        if (this.fd === undefined)
            return;
        const text = JSON.stringify(object) + '\n';
        if (this.sync)
            writeSync(this.fd, text);
        else if (this.waiting.push(text) === 1)
            this.writeNext();
    }

    writeNext() {
        write(this.fd, this.waiting[0], error => {
            this.waiting.shift();
            if (error)
                this.waiting.length = 0; // a log must not stop the program
            if (this.closing && this.waiting.length === 0)
                this.closeNow();
            else if (this.waiting.length > 0)
                this.writeNext();
        });
    }

    close() {
        this.closing = true;
        if (this.waiting.length === 0)
            this.closeNow();
    }

    closeNow() {
        if (this.fd !== undefined)
            closeSync(this.fd);
        this.fd = undefined;
    }
}

// A map that forgets its oldest entries.
function remember(map, key, value) {
    map.delete(key);
    map.set(key, value);
    if (map.size > REMEMBERED)
        map.delete(map.keys().next().value);
}

// Equal for equal messages, although the SDK may reorder members and put another id into a response.
const sorted = (_, value) => value && typeof value === 'object' && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1)) : value;
export const keyOf = ({ id, ...message }) => JSON.stringify(message, sorted);

/**
 * A `fetch` for the transport that reads along: event ids, digests and reconnects of every stream.
 * It passes the bytes on as they come. Give the same function to attachDispatchLog as `watch`.
 */
export function watchFetch(fetch = globalThis.fetch) {
    let streams = 0;
    const watch = async (url, init = {}) => {
        const method = init.method ?? 'GET';
        const cursor = new Headers(init.headers).get('last-event-id');
        if (method === 'GET' && cursor !== null)
            watch.onreconnect?.(cursor);
        const response = await fetch(url, init);
        if (!response.body || !response.headers.get('content-type')?.includes('text/event-stream'))
            return response;
        const stream = `${method.toLowerCase()}-${streams++}`;
        const decoder = new TextDecoder();
        const session = response.headers.get('mcp-session-id') ?? undefined;
        const parser = createParser({ onEvent: event => watch.onevent?.({ stream, session, ...event }) });
        const body = response.body.pipeThrough(new TransformStream({
            transform(bytes, controller) {
                parser.feed(decoder.decode(bytes, { stream: true }));
                controller.enqueue(bytes);
            }
        }));
        const { status, statusText, headers } = response;
        return new Response(body, { status, statusText, headers });
    };
    return watch;
}

/**
 * @param transport a StreamableHTTPClientTransport that is not connected yet
 * @param {object} options
 * @param {string} options.path the file; lines are added to it
 * @param {string} [options.client] "name/version", for the header
 * @param {boolean} [options.sync] true (default): a line is written before the program goes on, so that it
 *     survives the program's crash; false: in the background
 * @param {boolean|string[]} [options.idempotentHandlers] tools that may safely run twice; true: all
 * @param {boolean} [options.atomicCursor] cursor and effect are always stored in one transaction
 * @param {boolean} [options.drops] true (default): the SDK's Client is connected to the transport, which throws
 *     away responses that nobody waits for; false: your program uses the transport alone, and gets them all
 * @param {boolean} [options.ownCursor] the program writes the `cursor` lines, with entry()
 * @param {Function} [options.watch] what watchFetch() gave, if it is the transport's `fetch`
 * @returns {{ entry(fields: object): void, close(): void }}
 */
export function attachDispatchLog(transport, options) {
    return new DispatchLog(transport, options).handle();
}

class DispatchLog {
    constructor(transport, { path, client, sync = true, drops = true, idempotentHandlers, atomicCursor, ownCursor, watch }) {
        this.transport = transport;
        this.watched = watch !== undefined;
        this.ownCursor = ownCursor;
        this.file = new LineFile(path, sync);
        this.requests = new Map(); // id of a request that we sent -> { method, tool }
        this.drops = drops;
        this.open = new Map(); // id of a request that waits for its answer, as text: the SDK converts ids too
        this.tokens = new Map(); // progress token -> id of its request
        this.events = new Map(); // key of a message -> fields of the events that carried it, not yet handed over
        this.token = undefined; // event id that the SDK announced; its message, if any, follows without a pause
        this.inside = undefined; // the message being handed over
        if (this.file.empty)
            this.file.line({
                dispatch_log: 1, client, idempotent_handlers: idempotentHandlers, atomic_cursor: atomicCursor
            });
        if (watch)
            this.listen(watch);
        this.hookSend();
        this.hookReceive();
    }

    handle() {
        return { entry: fields => this.entry(fields), close: () => this.file.close() };
    }

    entry(fields) {
        this.file.line({ ts: timestamp(), session: this.transport.sessionId, ...fields });
    }

    // What a message is about, in the words of the log.
    describe(message) {
        if (!message)
            return {};
        const { id, method, params } = message;
        if (method === undefined)
            return { request_id: id ?? null, ...this.requests.get(id) };
        const tool = method === 'tools/call' ? params?.name : undefined;
        return { request_id: id ?? this.tokens.get(params?.progressToken) ?? null, method, tool };
    }

    // --- the wire, as far as the transport's fetch shows it

    listen(watch) {
        watch.onreconnect = cursor => this.entry({ state: 'reconnect', event_id: cursor });
        watch.onevent = ({ stream, session, id, data }) => {
            const digest = data ? 'sha256:' + createHash('sha256').update(data).digest('hex') : undefined;
            const event = { stream, event_id: id ?? null, digest };
            let message;
            try {
                message = data ? JSON.parse(data) : undefined;
            } catch {
                // the SDK will say so; that the frame was read is true all the same
            }
            this.entry({
                state: 'received', ...event, ...this.describe(message), ...(session && { session })
            });
            if (message && typeof message === 'object')
                this.queueEvent(keyOf(message), event);
        };
    }

    queueEvent(key, event) {
        remember(this.events, key, [...this.events.get(key) ?? [], event]);
    }

    takeEvent(message) {
        const key = keyOf(message);
        const [event, ...rest] = this.events.get(key) ?? [];
        if (rest.length > 0)
            this.events.set(key, rest);
        else
            this.events.delete(key);
        return event;
    }

    // --- what the client sends

    hookSend() {
        const { transport } = this;
        const send = transport.send;
        transport.send = (message, options) => {
            if (options?.resumptionToken && !this.watched)
                this.entry({ state: 'reconnect', event_id: options.resumptionToken });
            else if (!options?.resumptionToken)
                [message].flat().forEach(one => this.sent(one));
            return send.call(transport, message, this.withToken(options));
        };
        const resume = transport.resumeStream;
        if (resume)
            transport.resumeStream = (cursor, options) => {
                if (!this.watched)
                    this.entry({ state: 'reconnect', event_id: cursor });
                return resume.call(transport, cursor, this.withToken(options));
            };
    }

    sent(message) {
        const fields = this.describe(message);
        if (message.method !== undefined && message.id !== undefined) {
            remember(this.requests, message.id, { method: fields.method, tool: fields.tool });
            this.open.set(String(message.id), true);
            const token = message.params?._meta?.progressToken;
            if (token !== undefined)
                remember(this.tokens, token, message.id);
        }
        if (message.method === 'notifications/cancelled')
            this.open.delete(String(message.params?.requestId));
        this.entry({ state: 'sent', ...fields });
    }

    // The SDK announces an id just before it hands over the message of the same event, if there is one.
    withToken(options) {
        const told = options?.onresumptiontoken;
        const onresumptiontoken = id => {
            const token = this.token = { id, ts: timestamp() };
            told?.(id);
            token.stored = timestamp();
            queueMicrotask(() => this.useToken(token));
        };
        return { ...options, onresumptiontoken };
    }

    // Writes `received` and `cursor` of an announced event, once.
    useToken(token, message) {
        if (!token || token.used)
            return;
        token.used = true;
        if (this.token === token)
            this.token = undefined;
        const fields = { event_id: token.id, ...this.describe(message) };
        if (!this.watched)
            this.entry({ state: 'received', ...fields, ts: token.ts });
        if (!this.ownCursor)
            this.entry({ state: 'cursor', ...fields, ts: token.stored });
    }

    // --- what the client is handed

    // Whoever sets onmessage, now or later, gets its function wrapped.
    hookReceive() {
        const wrap = handler => handler && ((message, extra) => this.handOver(handler, message, extra));
        let wrapped = wrap(this.transport.onmessage);
        Object.defineProperty(this.transport, 'onmessage', {
            configurable: true,
            enumerable: true,
            get: () => wrapped,
            set: handler => { wrapped = wrap(handler); }
        });
    }

    // Is it a response that nobody waits for?
    unexpected({ id, method }) {
        return method === undefined && !this.open.delete(String(id)) && this.drops;
    }

    handOver(handler, message, extra) {
        if (this.inside === message) // Client.connect() calls the handler that was there before
            return handler(message, extra);
        const token = this.token;
        this.useToken(token, message);
        const event = this.takeEvent(message) ?? (token && { event_id: token.id });
        const fields = { ...event, ...this.describe(message) };
        if (!event)
            this.entry({ state: 'received', ...fields });
        const dropped = this.unexpected(message);
        this.inside = message;
        try {
            const result = handler(message, extra);
            if (dropped)
                this.entry({ state: 'dropped', ...fields });
            else
                queueMicrotask(() => this.entry({ state: 'processed', ...fields })); // after the SDK's own
            return result;
        } catch (error) {
            this.entry({ state: 'failed', ...fields });
            throw error;
        } finally {
            this.inside = undefined;
        }
    }
}
