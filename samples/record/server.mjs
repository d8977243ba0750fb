// An MCP server on the real SDK, as a child process of record.mjs so that it can be killed and restarted.
// argv[2] is JSON: { host, port, store, retry, keepAlive, adopt }
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';
import { makeStore } from './stores.mjs';

const config = JSON.parse(process.argv[2]);
const sessions = new Map();

const text = value => ({ content: [{ type: 'text', text: value }] });

function progress(extra, step, total, message) {
    const progressToken = extra._meta?.progressToken;
    if (progressToken === undefined)
        return Promise.resolve();
    const params = { progressToken, progress: step, total, message };
    return extra.sendNotification({ method: 'notifications/progress', params });
}

function makeServer() {
    const server = new McpServer(
        { name: 'sample-server', version: '1.0.0' },
        { capabilities: { logging: {} } }
    );
    const tool = (name, description, inputSchema, annotations, run) =>
        server.registerTool(name, { description, inputSchema, annotations }, run);

    tool('echo', 'Say it again', { text: z.string() }, { readOnlyHint: true },
        async args => text(args.text));

    tool('count', 'Count slowly', {
        steps: z.number(), interval: z.number(), label: z.string().optional(),
        rest: z.number().optional(), padding: z.number().optional()
    }, { readOnlyHint: true }, async ({ steps, interval, label = 'step', rest, padding = 0 }, extra) => {
        for (let step = 1; step <= steps; step++) {
            await sleep(interval);
            await progress(extra, step, steps, `${label} ${step}${' .'.repeat(padding)}`);
        }
        await sleep(rest ?? interval);
        return text(`${label}: ${steps} steps done`);
    });

    tool('send_email', 'Send an e-mail', { to: z.string(), subject: z.string() },
        { readOnlyHint: false, idempotentHint: false }, async ({ to, subject }, extra) => {
            await sleep(120);
            await progress(extra, 1, 2, 'connected');
            await sleep(120);
            await progress(extra, 2, 2, 'accepted for delivery');
            await sleep(120);
            return text(`"${subject}" sent to ${to}`);
        });

    // Notifications that belong to no request: they travel on the standalone stream.
    tool('announce', 'Announce on the standalone stream', {
        count: z.number(), interval: z.number(), label: z.string()
    }, { readOnlyHint: true }, async ({ count, interval, label }) => {
        for (let i = 1; i <= count; i++) {
            await server.sendLoggingMessage({ level: 'info', logger: 'announce', data: `${label} ${i}` });
            await sleep(interval);
        }
        return text(`${count} announced`);
    });

    // SEP-1699: the server ends its own stream early, the client polls with its cursor.
    tool('poll', 'Close the stream and let the client poll', { work: z.number() }, { readOnlyHint: true },
        async ({ work }, extra) => {
            await sleep(100);
            await progress(extra, 1, 2, 'accepted, poll for the rest');
            await sleep(100);
            extra.closeSSEStream?.();
            await sleep(work);
            await progress(extra, 2, 2, 'nearly done');
            return text('polled to the end');
        });
    return server;
}

async function newSession(adoptedId) {
    const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => adoptedId ?? randomUUID(),
        eventStore: makeStore(config.store),
        retryInterval: config.retry,
        keepAliveMs: config.keepAlive,
        onsessioninitialized: id => { sessions.set(id, transport); },
        onsessionclosed: id => { sessions.delete(id); }
    });
    await makeServer().connect(transport);
    if (adoptedId !== undefined)
        adopt(transport, adoptedId);
    return transport;
}

// A server that remembers its sessions over a restart, but not their events. The SDK has no door for
// this, so it is told that `initialize` has been seen.
function adopt(transport, id) {
    Object.assign(transport._webStandardTransport, { sessionId: id, _initialized: true });
    sessions.set(id, transport);
}

async function transportFor(req) {
    const id = req.headers['mcp-session-id'];
    if (id === undefined)
        return newSession();
    return sessions.get(id) ?? (config.adopt ? newSession(id) : undefined);
}

const http = createServer(async (req, res) => {
    const transport = await transportFor(req);
    if (transport)
        return transport.handleRequest(req, res);
    const error = { code: -32001, message: 'Session not found' };
    res.writeHead(404, { 'Content-Type': 'application/json' });
    res.end(JSON.stringify({ jsonrpc: '2.0', error, id: null }));
});

http.listen(config.port, config.host, () => process.send('listening'));
process.on('disconnect', () => process.exit());
