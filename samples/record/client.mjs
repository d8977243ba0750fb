// An MCP client on the real SDK, as a child process of record.mjs so that its crash is a real one.
// argv[2] is JSON: { url, log, state, hooks, policy, commits, crash, stall, idle, reconnect, steps }
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { attachDispatchLog, watchFetch } from './dispatch-log.mjs';
import { Inbox } from './inbox.mjs';

const config = JSON.parse(process.argv[2]);
const name = 'sample-client';
const inbox = config.policy && new Inbox(config);

let streams = 0;
let stall = config.stall; // happens once

// The `fetch` of a client with an inbox: watches the traffic for the inbox, stops reading where the scenario says so
// (`stall`: at a text, for so many ms), and gives a body up when nothing was read from it for `idle` ms.
async function watchedFetch(url, init = {}) {
    const giveUp = new AbortController();
    if (init.body)
        [JSON.parse(init.body)].flat().forEach(message => inbox.sent(message));
    const cursor = new Headers(init.headers).get('last-event-id');
    if (cursor !== null)
        inbox.reconnecting(cursor);
    const signal = AbortSignal.any([init.signal, giveUp.signal].filter(Boolean));
    const response = await fetch(url, { ...init, signal });
    if (response.headers.has('mcp-session-id'))
        inbox.save({ session: response.headers.get('mcp-session-id') });
    if (!response.headers.get('content-type')?.includes('text/event-stream'))
        return response;
    const stream = inbox.streamOf(cursor) ?? `${init.method.toLowerCase()}-${streams++}`;
    const { status, headers } = response;
    return new Response(response.body.pipeThrough(passOn(stream, giveUp)), { status, headers });
}

// A handler that blocks the whole program, as a busy one does: nothing is read from any socket.
const block = ms => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

function passOn(stream, giveUp) {
    const read = inbox.reader(stream);
    const decoder = new TextDecoder();
    let timer;
    const restart = () => {
        clearTimeout(timer);
        if (config.idle)
            timer = setTimeout(() => giveUp.abort(), config.idle);
    };
    restart();
    return new TransformStream({
        transform(bytes, controller) {
            restart();
            read(bytes);
            controller.enqueue(bytes);
            if (stall?.at && decoder.decode(bytes, { stream: true }).includes(stall.at))
                setTimeout(stopReading, 5, giveUp); // once the SDK has handed the message over
        },
        flush: () => clearTimeout(timer)
    });
}

function stopReading(giveUp) {
    const { ms, thenGiveUp } = stall;
    stall = undefined;
    block(ms);
    if (thenGiveUp)
        giveUp.abort();
}

// Without an inbox the log is written by dispatch-log.mjs alone, as any program can have it.
const watch = config.hooks === 'all' ? watchFetch() : undefined;

const client = new Client({ name, version: '1.0.0' });
const transport = new StreamableHTTPClientTransport(new URL(config.url), {
    fetch: inbox ? watchedFetch : watch,
    sessionId: inbox?.state.session,
    reconnectionOptions: {
        initialReconnectionDelay: 300, reconnectionDelayGrowFactor: 1, maxReconnectionDelay: 1000, maxRetries: 5,
        ...config.reconnect
    }
});
client.onerror = error => process.stderr.write(`client: ${error.message}\n`);

const token = inbox && { onresumptiontoken: id => inbox.onToken(id) };
const background = [];

const actions = {
    async connect() {
        await client.connect(transport, token);
        inbox?.save({ protocol: transport.protocolVersion });
        await sleep(80); // the SDK opens the standalone stream by itself
    },
    async list() {
        await client.listTools();
    },
    async call({ tool, args, timeout = 15000, background: aside, fails }) {
        // With `onprogress` the SDK asks for progress; what is made of it is the inbox's business.
        const options = { ...token, timeout, onprogress: () => {} };
        const done = client.callTool({ name: tool, arguments: args }, undefined, options)
            .catch(error => { if (!fails) throw error; });
        if (aside)
            background.push(done);
        else
            await done;
    },
    // After a crash: the same session, the stored cursor, the request that was left open.
    async resume({ timeout = 2000 }) {
        await client.connect(transport);
        transport.setProtocolVersion(inbox.state.protocol);
        await transport.resumeStream(inbox.state.cursor, token);
        const open = Math.max(...Object.keys(inbox.state.requests).map(Number));
        await inbox.untilAnswered(open, timeout);
    },
    // Two calls in one POST, as revision 2025-03-26 had it. `Client` speaks only newer ones: the bare transport.
    async batch({ calls, timeout = 4000 }) {
        const { protocol } = inbox.state;
        const params = { protocolVersion: protocol, capabilities: {}, clientInfo: { name, version: '1.0.0' } };
        await transport.start();
        await transport.send({ jsonrpc: '2.0', id: 'init', method: 'initialize', params });
        await inbox.untilAnswered('init', timeout);
        transport.setProtocolVersion(protocol);
        await transport.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
        await sleep(80);
        const requests = calls.map(({ id, tool, args }) => ({
            jsonrpc: '2.0', id, method: 'tools/call',
            params: { name: tool, arguments: args, _meta: { progressToken: id } }
        }));
        await transport.send(requests, token);
        await Promise.all(requests.map(({ id }) => inbox.untilAnswered(id, timeout)));
    },
    wait: ({ ms }) => sleep(ms),
    join: () => Promise.all(background),
    tell: ({ what }) => { process.send(what); },
    exit: () => process.exit(),
    async delete() {
        await transport.terminateSession();
        await client.close();
    }
};

async function main() {
    if (config.hooks)
        attachDispatchLog(transport, { path: config.log, client: `${name}/1.0.0`, watch });
    if (inbox)
        transport.onmessage = message => inbox.onMessage(message);
    for (const { do: action, ...rest } of config.steps)
        await actions[action](rest);
    process.exit();
}

main().catch(error => {
    process.stderr.write(`client: ${error.stack}\n`);
    process.exit(1);
});
