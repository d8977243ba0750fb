// A TCP proxy that breaks connections at a chosen event of the server's byte stream.
import { connect, createServer } from 'node:net';

// Long enough for the client to read what was sent before its connection is broken.
const SETTLE_MS = 60;

/*
 * rules: [{ at, action, bytes, after }], each used once, in order:
 *   at      text; the rule fires on the first event from the server that holds it
 *   action  'rst'        the event is passed on whole, then the client gets a reset
 *           'fin'        the same with a FIN in place of the protocol's end
 *           'partial'    only the event's first `bytes` bytes are passed on, then a reset
 *           'blackhole'  the event is passed on, and not one byte after it; nothing is closed
 *   after   { refuse: ms }: connections are reset for so long afterwards
 * A rule with at: undefined fires on the next response head in place of an event.
 */
export function startProxy({ host, port, targetPort, rules = [], onBreak = () => {} }) {
    const pending = [...rules];
    const open = new Set();
    let refuseUntil = 0;

    const server = createServer({ noDelay: true }, client => {
        client.on('error', () => {});
        if (Date.now() < refuseUntil)
            return client.resetAndDestroy();
        open.add(client);
        client.on('close', () => open.delete(client));
        join(client, connect({ host, port: targetPort, noDelay: true }));
    });

    function join(client, upstream) {
        let tail = ''; // of what was passed on: an event may span reads
        let broken = false;
        upstream.on('error', () => client.destroy());
        upstream.on('end', () => broken || client.end());
        upstream.on('close', () => broken || client.destroy());
        client.on('close', () => upstream.destroy());
        client.on('data', bytes => pass(client, upstream, bytes));
        upstream.on('data', bytes => {
            if (broken)
                return;
            const seen = tail + bytes.toString('latin1');
            const cut = cutFor(seen, pending[0]);
            tail = seen.slice(seen.lastIndexOf('\n\n') + 2);
            if (cut === undefined)
                return pass(upstream, client, bytes);
            broken = true;
            const rule = pending.shift();
            const before = seen.length - bytes.length;
            client.write(bytes.subarray(0, Math.max(cut - before, 0)));
            setTimeout(() => breakUp(rule, client, upstream), SETTLE_MS);
        });
    }

    function breakUp(rule, client, upstream) {
        if (rule.action === 'blackhole')
            return;
        refuseUntil = Date.now() + (rule.after?.refuse ?? 0);
        upstream.destroy();
        if (rule.action === 'fin')
            client.end();
        else
            client.resetAndDestroy();
        onBreak(rule);
    }

    return new Promise(resolve => {
        server.listen(port, host, () => resolve({
            add: rule => pending.push(rule),
            resetAll: () => open.forEach(socket => socket.resetAndDestroy()),
            close: () => {
                open.forEach(socket => socket.destroy());
                server.close();
            }
        }));
    });
}

function pass(from, to, bytes) {
    if (to.write(bytes))
        return;
    from.pause();
    to.once('drain', () => from.resume());
}

// Where to cut `seen`: after the event's blank line and the end of its HTTP chunk, or inside the event.
function cutFor(seen, rule) {
    if (rule === undefined)
        return undefined;
    if (rule.at === undefined) {
        const head = seen.indexOf('\r\n\r\n');
        return head >= 0 && seen.includes('text/event-stream') ? head + 4 : undefined;
    }
    const hit = seen.indexOf(rule.at);
    if (hit < 0)
        return undefined;
    if (rule.action === 'partial')
        return Math.max(seen.lastIndexOf('\n\n', hit) + 2, seen.lastIndexOf('\r\n', hit) + 2) + rule.bytes;
    const end = seen.indexOf('\n\n\r\n', hit);
    return end < 0 ? undefined : end + 4;
}
