// A client application's inbox: what it does, durably, with each message that the SDK hands to it, in
// which order with the cursor, and the dispatch log of that (FORMATS: one JSON object a line).
import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createParser } from 'eventsource-parser';
import { keyOf, timestamp } from './dispatch-log.mjs';

/*
 * options:
 *   log, state  paths of the dispatch log and of the durable state
 *   policy      'before': the cursor is stored, then the message handled
 *               'after': the message is handled, then the cursor stored
 *               'atomic': both in one write of the state
 *   protocol    the revision to ask for, where the SDK's client does not choose it
 *   commits     log `committed` besides `processed`
 *   crash       { when: 'before-dispatch' | 'before-cursor' | 'after-commit', at: text }: the process
 *               kills itself there, at the first message that holds the text
 */
export class Inbox {
    constructor(options) {
        this.options = options;
        this.state = existsSync(options.state)
            ? JSON.parse(readFileSync(options.state, 'utf8')) : { handled: 0, requests: {}, protocol: options.protocol };
        this.streams = new Map(); // event id -> our name of its stream
        this.unhandled = []; // read from the wire, not yet handed over by the SDK
        this.answered = new Set();
        this.waiting = new Map(); // request id -> resolve
    }

    log(entry) {
        const line = { ts: timestamp(), session: this.state.session, ...entry };
        appendFileSync(this.options.log, JSON.stringify(line) + '\n');
    }

    save(changes) {
        Object.assign(this.state, changes);
        writeFileSync(this.options.state + '.new', JSON.stringify(this.state));
        renameSync(this.options.state + '.new', this.options.state);
    }

    // The bytes of one SSE body as they pass to the SDK.
    reader(stream) {
        const decoder = new TextDecoder();
        const parser = createParser({ onEvent: event => this.received(stream, event) });
        return bytes => parser.feed(decoder.decode(bytes, { stream: true }));
    }

    // Our name of the stream that a cursor belongs to.
    streamOf(cursor) {
        return this.streams.get(cursor) ?? (cursor === this.state.cursor ? this.state.stream : undefined);
    }

    received(stream, { id, data }) {
        this.streams.set(id, stream);
        const message = data ? JSON.parse(data) : undefined;
        const entry = { stream, event_id: id, ...this.describe(message) };
        this.log({ ...entry, state: 'received' });
        if (message !== undefined)
            this.unhandled.push({ key: keyOf(message), entry });
    }

    describe(message) {
        if (message === undefined)
            return {};
        const owner = message.id ?? message.params?.progressToken;
        const request = message.method === undefined ? this.state.requests[message.id] : message;
        return { request_id: owner, method: request?.method, tool: request?.tool };
    }

    sent(message) {
        if (message.method === undefined)
            return;
        const facts = { method: message.method, tool: message.params?.name };
        if (message.id !== undefined)
            this.save({ requests: { ...this.state.requests, [message.id]: facts } });
        this.log({ state: 'sent', request_id: message.id, ...facts });
    }

    reconnecting(cursor) {
        this.log({ state: 'reconnect', event_id: cursor });
    }

    storeCursor(id) {
        const stream = this.streams.get(id);
        this.save({ cursor: id, stream });
        this.log({ stream, event_id: id, state: 'cursor' });
    }

    // The SDK's resumption token: it comes right before the message of the same event.
    onToken(id) {
        if (this.options.policy === 'before')
            return this.storeCursor(id);
        this.token = id;
        queueMicrotask(() => { // a priming event: no message came with it
            if (this.token === id)
                this.storeCursor(this.takeToken());
        });
    }

    takeToken() {
        const token = this.token;
        this.token = undefined;
        return token;
    }

    onMessage(message) {
        const key = keyOf(message);
        const at = this.unhandled.findIndex(one => one.key === key);
        const { entry } = at < 0 ? { entry: this.describe(message) } : this.unhandled.splice(at, 1)[0];
        const cursor = this.takeToken();
        this.crash('before-dispatch', key);
        if (this.options.policy === 'atomic')
            this.commit(entry, cursor);
        else
            this.process(entry, cursor, key);
        if (message.method === undefined)
            this.answer(message.id);
        this.crash('after-commit', key);
    }

    process(entry, cursor, key) {
        this.save({ handled: this.state.handled + 1 });
        this.log({ ...entry, state: 'processed' });
        if (this.options.commits)
            this.log({ ...entry, state: 'committed' });
        this.crash('before-cursor', key);
        if (cursor !== undefined)
            this.storeCursor(cursor);
    }

    commit(entry, cursor) {
        const handled = this.state.handled + 1;
        const { stream } = entry;
        this.save(cursor === undefined ? { handled } : { handled, cursor, stream });
        this.log({ ...entry, state: 'committed', txn: handled });
        if (cursor !== undefined)
            this.log({ stream, event_id: cursor, state: 'cursor', txn: handled });
    }

    crash(when, key) {
        const crash = this.options.crash;
        if (crash?.when === when && key.includes(crash.at))
            process.kill(process.pid, 'SIGKILL');
    }

    answer(id) {
        this.answered.add(id);
        this.waiting.get(id)?.();
    }

    // Until the response to that request is handled, however it was matched.
    untilAnswered(id, ms) {
        if (this.answered.has(id))
            return Promise.resolve(true);
        return new Promise(resolve => {
            this.waiting.set(id, () => resolve(true));
            setTimeout(resolve, ms, false);
        });
    }
}
