// dispatch-log.test.mjs - the log of a real SDK client against a small scripted server. Run: node --test
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { attachDispatchLog, watchFetch } from './dispatch-log.mjs';

const result = (id, value) => JSON.stringify({ jsonrpc: '2.0', id, result: value });

// Answers a tool call with: priming event, progress, an answer nobody asked for, the end of the response;
// the result comes on the GET that resumes after it.
async function answer(request, response) {
    const sse = { 'content-type': 'text/event-stream', 'mcp-session-id': 'session-1' };
    const event = (id, data) => response.write(`id: ${id}\ndata: ${data}\n\n`);
    let body = '';
    for await (const chunk of request)
        body += chunk;
    const message = body ? JSON.parse(body) : {};
    if (request.method === 'GET' && request.headers['last-event-id']) {
        response.writeHead(200, sse);
        event('e4', result(1, { content: [] }));
        return response.end();
    }
    if (request.method === 'GET')
        return response.writeHead(405).end();
    if (message.id === undefined)
        return response.writeHead(202).end();
    response.writeHead(200, sse);
    if (message.method === 'initialize') {
        const { protocolVersion } = message.params;
        event('i1', result(message.id, { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }));
        return response.end();
    }
    response.write('id: e1\nretry: 10\ndata:\n\n');
    const { progressToken } = message.params._meta;
    event('e2', JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } }));
    // (an error: after any result, even to another request, the SDK does not resume)
    event('e3', JSON.stringify({ jsonrpc: '2.0', id: 999, error: { code: 1, message: 'who asked?' } }));
    response.end();
}

async function run({ watched, sync, ownCursor }) {
    const dir = mkdtempSync(join(tmpdir(), 'dispatch-log-'));
    const path = join(dir, 'log');
    const server = createServer(answer).listen(0, '127.0.0.1');
    await new Promise(done => server.once('listening', done));
    const watch = watched ? watchFetch() : undefined;
    const url = new URL(`http://127.0.0.1:${server.address().port}/mcp`);
    const transport = new StreamableHTTPClientTransport(url, { fetch: watch });
    const log = attachDispatchLog(transport, { path, client: 'test/1', watch, sync, ownCursor, idempotentHandlers: ['echo'] });
    const client = new Client({ name: 'test', version: '1' });
    const errors = [];
    client.onerror = error => errors.push(error.message);
    await client.connect(transport);
    await client.callTool({ name: 'echo', arguments: {} }, undefined, { onprogress: () => {} });
    log.entry({ state: 'committed', event_id: 'e4', request_id: 1, txn: 5 });
    await sleep(20);
    await client.close();
    log.close();
    await sleep(20);
    server.close();
    assert.match(errors.join(), /unknown message ID/); // what the log calls dropped
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n').map(line => JSON.parse(line));
    rmSync(dir, { recursive: true });
    return lines;
}

const of = (lines, id) => lines.filter(line => line.event_id === id).map(line => line.state);

for (const sync of [true, false]) {
    test(`hooks alone, sync ${sync}`, async () => {
        const [header, ...lines] = await run({ sync });
        assert.deepEqual(header, { dispatch_log: 1, client: 'test/1', idempotent_handlers: ['echo'] });
        assert.deepEqual(lines.filter(line => line.state === 'sent').map(line => line.method),
            ['initialize', 'notifications/initialized', 'tools/call']);
        assert.deepEqual(of(lines, 'i1'), ['received', 'cursor', 'processed']);
        assert.deepEqual(of(lines, 'e1'), ['received', 'cursor']);
        assert.deepEqual(of(lines, 'e2'), ['received', 'cursor', 'processed']);
        assert.deepEqual(of(lines, 'e3'), ['received', 'cursor', 'dropped']);
        assert.deepEqual(of(lines, 'e4').toSorted(), ['committed', 'cursor', 'processed', 'received']);
        const progress = lines.find(line => line.event_id === 'e2');
        assert.equal(progress.request_id, 1);
        const answer = lines.find(line => line.event_id === 'e4' && line.state === 'processed');
        assert.deepEqual([answer.method, answer.tool, answer.request_id], ['tools/call', 'echo', 1]);
        assert.equal(answer.session, 'session-1');
        assert.ok(lines.every(line => Math.abs(Date.parse(line.ts) - Date.now()) < 60000));
    });
}

test('with the transport\'s fetch', async () => {
    const [, ...lines] = await run({ watched: true });
    assert.deepEqual(of(lines, 'e1'), ['received', 'cursor']);
    assert.deepEqual(of(lines, 'e2').toSorted(), ['cursor', 'processed', 'received']);
    assert.deepEqual(of(lines, 'e3'), ['received', 'cursor', 'dropped', 'reconnect']);
    assert.equal(lines.filter(line => line.state === 'reconnect' && line.event_id === 'e3').length, 1);
    const received = lines.find(line => line.event_id === 'e4' && line.state === 'received');
    const digest = createHash('sha256').update(result(1, { content: [] })).digest('hex');
    assert.equal(received.digest, `sha256:${digest}`);
    assert.match(received.stream, /^get-/);
    const processed = lines.find(line => line.event_id === 'e4' && line.state === 'processed');
    assert.equal(processed.digest, received.digest);
});

test('a program that stores its cursor itself', async () => {
    const [, ...lines] = await run({ ownCursor: true });
    assert.deepEqual(of(lines, 'e2'), ['received', 'processed']);
    assert.ok(lines.every(line => line.state !== 'cursor'));
});

test('a handler that throws', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'dispatch-log-'));
    const path = join(dir, 'log');
    const transport = { send: async () => {}, onmessage: undefined };
    const log = attachDispatchLog(transport, { path });
    transport.onmessage = () => { throw new Error('no'); };
    assert.throws(() => transport.onmessage({ jsonrpc: '2.0', method: 'm' }));
    log.close();
    const states = readFileSync(path, 'utf8').trimEnd().split('\n').map(line => JSON.parse(line).state);
    assert.deepEqual(states, [undefined, 'received', 'failed']);
    rmSync(dir, { recursive: true });
});
