// The cases: what server, proxy and client are told to do. The event ids in the comments follow from it: the
// store counts over the session, so `initialize` takes 1 (priming) and 2 (result), and the first
// tools/call is primed with 3.
import { strict as assert } from 'node:assert';

const connect = { do: 'connect' };
const end = { do: 'delete' };
const call = (tool, args, more = {}) => ({ do: 'call', tool, args, ...more });
const count = (steps, interval, more = {}, args = {}) => call('count', { steps, interval, ...args }, more);
const email = call('send_email', { to: 'ann@example.com', subject: 'Quarterly figures' });
const wait = ms => ({ do: 'wait', ms });

// The client that most programs have, with the SDK's own cursor; its log is written by dispatch-log.mjs.
const plain = { hooks: 'some' };
const watched = { hooks: 'all' }; // with watchFetch(): event ids of all streams, and digests

// A receive buffer of a few kilobytes, so that little data closes the window.
const smallWindow = { '/proc/sys/net/ipv4/tcp_rmem': '4096 4096 8192' };

const ok = status => assert.equal(status, 0, `the client ended with ${status}`);
const crashed = status => assert.equal(status, 'SIGKILL', `the client should have crashed: ${status}`);

const once = (...steps) => async recording => ok(await recording.client([connect, ...steps, end]));

// A crash in the first run, then the same client again with what it has stored.
const crashThenResume = (...steps) => async recording => {
    crashed(await recording.client([connect, ...steps]));
    ok(await recording.client([{ do: 'resume' }, end], { crash: undefined }));
};

export const scenarios = [
    {
        name: 'clean-session',
        server: { store: {}, retry: 400, keepAlive: 700 },
        client: watched,
        run: once({ do: 'list' }, call('echo', { text: 'hello' }), count(4, 250),
            call('announce', { count: 3, interval: 60, label: 'news' }), email)
    },
    {
        name: 'clean-resume', // reset after 5 (step 2); 6, 7 stored meanwhile
        capture: 'pcapng',
        server: { store: {}, retry: 400 },
        rules: [{ at: '"progress":2,', action: 'rst' }],
        client: plain,
        run: once(count(6, 150))
    },
    {
        name: 'silent-skip', // cursor 6 (the response) stored, never handled
        server: { store: {}, keepAlive: 500 },
        client: { policy: 'before', crash: { when: 'before-dispatch', at: 'sent to' } },
        run: crashThenResume(email)
    },
    {
        name: 'duplicate-replay', // 6 (the response) handled, cursor still 5
        capture: 'pcapng',
        server: { store: {} },
        client: { policy: 'after', commits: true, crash: { when: 'before-cursor', at: 'sent to' } },
        run: crashThenResume(email)
    },
    {
        name: 'map-log', // the same with the short form of the log
        server: { store: {} },
        client: { policy: 'after', commits: true, crash: { when: 'before-cursor', at: 'sent to' } },
        asMap: true,
        run: crashThenResume(email)
    },
    {
        name: 'atomic-client', // cursor and effect of 5 (step 2) in one write, then the crash
        server: { store: {} },
        client: { policy: 'atomic', crash: { when: 'after-commit', at: '"progress":2,' } },
        run: crashThenResume(count(5, 150))
    },
    {
        name: 'silent-gap', // cursor 5; 6 to 13 go by meanwhile, of which the newest four are kept
        server: { store: { ring: 4 }, retry: 1000 },
        rules: [{ at: '"progress":2,', action: 'rst' }],
        client: { policy: 'after' },
        run: once(count(10, 60, {}, { rest: 1500 }))
    },
    {
        name: 'dense-gap', // ids s2_0 (priming), s2_1, ...: cursor s2_2, replay from s2_7
        capture: 'pcapng',
        server: { store: { ring: 4, dense: true }, retry: 1000 },
        rules: [{ at: '"progress":2,', action: 'rst' }],
        client: plain,
        run: once(count(10, 60, {}, { rest: 1500 }))
    },
    {
        name: 'gap-signalled', // as silent-gap, but the server refuses cursor 5
        server: { store: { ring: 4, refuse: true }, retry: 1000 },
        rules: [{ at: '"progress":2,', action: 'rst' }],
        client: { policy: 'after', reconnect: { maxRetries: 1 } },
        run: once(count(10, 60, { timeout: 2500, fails: true }), call('echo', { text: 'on we go' }))
    },
    {
        name: 'empty-resume', // 6, 7 and the response 8 are made during the break, and none of them is replayed
        server: { store: { silent: true }, retry: 1000, keepAlive: 400 },
        rules: [{ at: '"progress":2,', action: 'rst' }],
        client: { policy: 'after' },
        run: once(count(4, 60, { timeout: 3000, fails: true }))
    },
    {
        name: 'new-ids', // as duplicate-replay, but the replayed response has id 7 in place of 6
        server: { store: { renumber: true } },
        client: { policy: 'after', commits: true, crash: { when: 'before-cursor', at: 'sent to' } },
        run: crashThenResume(email)
    },
    {
        name: 'partial-event', // 70 bytes of 6 arrive, then the reset; cursor 5
        server: { store: {}, retry: 300 },
        rules: [{ at: '"progress":3,', action: 'partial', bytes: 70 }],
        client: watched,
        run: once(count(5, 120))
    },
    {
        name: 'inclusive-replay', // cursor 7, replay from 7
        capture: 'pcapng',
        server: { store: { inclusive: true }, retry: 300 },
        rules: [{ at: '"progress":4,', action: 'rst' }],
        client: { policy: 'after' },
        run: once(count(7, 120))
    },
    {
        name: 'opaque-ids',
        capture: 'nano.pcap',
        host: '::1',
        server: { store: { kind: 'opaque' }, retry: 300 },
        rules: [{ at: '"progress":2,', action: 'fin' }],
        client: watched,
        run: once(count(6, 150))
    },
    {
        // A (3, 5, 7 ...) and B (4, 6, 8 ...) take turns every 150 ms; only A is cut, after 7. Replay: 8, 9, 10.
        name: 'foreign-stream',
        server: { store: { foreign: true }, retry: 500 },
        rules: [{ at: 'A 2', action: 'rst' }],
        client: watched,
        keepLog: false,
        run: once(count(4, 300, { background: true }, { label: 'A' }), wait(150),
            count(4, 300, { background: true }, { label: 'B' }), { do: 'join' })
    },
    {
        name: 'backpressure-stall', // reads up to 7 (step 4), then nothing for 2.5 s; gives up and resumes
        settings: smallWindow,
        server: { store: {}, retry: 300, keepAlive: 400 },
        client: { policy: 'after', stall: { at: '"progress":4,', ms: 2500, thenGiveUp: true } },
        run: once(count(14, 60, {}, { padding: 500 }))
    },
    {
        name: 'backpressure-delay', // the same, but the client reads on: delayed, not failed
        capture: 'pcapng',
        settings: smallWindow,
        server: { store: {}, retry: 300, keepAlive: 400 },
        client: { policy: 'after', stall: { at: '"progress":4,', ms: 2500 } },
        run: once(count(14, 60, {}, { padding: 500 }))
    },
    {
        name: 'keepalive-stopped', // nothing passes after 5 (step 2), keep-alives included; the client resumes
        server: { store: {}, retry: 300, keepAlive: 300 },
        rules: [{ at: '"progress":2,', action: 'blackhole' }],
        client: { policy: 'after', idle: 1600 },
        run: once(count(4, 1000))
    },
    {
        name: 'polling-close', // the server ends its stream after 4, the client polls with cursor 4
        capture: 'pcapng',
        server: { store: {}, retry: 500 },
        client: plain,
        run: once(call('poll', { work: 900 }))
    },
    {
        // Cut after 5, and the resumed leg right after its head: the SDK has then forgotten its cursor.
        name: 'second-break',
        server: { store: {}, retry: 300 },
        rules: [{ at: '"progress":2,', action: 'rst' }, { action: 'rst' }],
        client: { ...plain, reconnect: { maxRetries: 2 } },
        run: once(count(5, 150, { timeout: 3000, fails: true }))
    },
    {
        name: 'session-lost', // the server dies after 5 (step 2), its successor knows no session
        capture: 'nano.pcap',
        server: { store: {}, retry: 1200 },
        client: { policy: 'after', reconnect: { maxRetries: 1 } },
        told: { restart: async recording => { await recording.killServer(); await recording.startServer(); } },
        async run(recording) {
            const lost = count(20, 200, { background: true, fails: true });
            ok(await recording.client([connect, lost, wait(500), { do: 'tell', what: 'restart' }, wait(2400),
                { do: 'exit' }]));
            ok(await recording.client([connect, call('echo', { text: 'again' }), end],
                { state: `${recording.log}.state` }));
        }
    },
    {
        // Standalone stream with 4 to 7; the restarted server knows the session, but counts from 1 again.
        name: 'epoch-reset',
        server: { store: {}, retry: 1200 },
        client: { policy: 'after' },
        told: {
            restart: async recording => {
                await recording.killServer();
                await recording.startServer({ adopt: true });
            }
        },
        run: once(call('announce', { count: 4, interval: 60, label: 'old' }), { do: 'tell', what: 'restart' },
            wait(2400), call('announce', { count: 3, interval: 60, label: 'new' }), wait(200))
    },
    {
        // Two calls in one batch; cut after the first response. The SDK takes the stream for finished.
        name: 'batch-abandoned',
        server: { store: {} },
        rules: [{ at: 'A: 2 steps done', action: 'rst' }],
        client: { policy: 'after', protocol: '2025-03-26' },
        run: async recording => ok(await recording.client([{
            do: 'batch',
            timeout: 6500,
            calls: [
                { id: 1, tool: 'count', args: { steps: 2, interval: 200, label: 'A' } },
                { id: 2, tool: 'count', args: { steps: 3, interval: 250, label: 'B' } }
            ]
        }, end]))
    }
];
