// Records the cases: record.mjs [NAME...]. Started by ./make inside a network namespace of its own, so that the
// loopback interface carries nothing else and its settings can be changed.
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startProxy } from './proxy.mjs';
import { scenarios } from './scenarios.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const samples = dirname(here);
const PORT = 8931; // of the proxy: what the client talks to, and the only port that is recorded
const SERVER_PORT = 8932;
const BIGGEST = 100_000;

const capturers = {
    pcap: ['tcpdump', '-Z', 'root', '--immediate-mode', '-i', 'lo', '-w'],
    'nano.pcap': ['tcpdump', '-Z', 'root', '--immediate-mode', '--nano', '-i', 'lo', '-w'],
    pcapng: ['dumpcap', '-q', '-i', 'lo', '-w']
};

// One recording: the children and files of a scenario, and the verbs that a scenario is told in.
class Recording {
    constructor(scenario) {
        this.scenario = scenario;
        this.dir = mkdtempSync(join(tmpdir(), 'record-'));
        this.host = scenario.host ?? '127.0.0.1';
        this.log = join(this.dir, 'dispatch.ndjson');
        this.capture = join(this.dir, 'capture');
        this.kind = scenario.capture ?? 'pcap';
    }

    async start() {
        const [command, ...args] = capturers[this.kind];
        const filter = ['tcp', 'port', String(PORT)];
        const tail = command === 'dumpcap' ? [this.capture, '-f', filter.join(' ')] : [this.capture, ...filter];
        this.sniffer = spawn(command, [...args, ...tail], { stdio: ['ignore', 'ignore', 'pipe'] });
        await once(this.sniffer.stderr, 'data'); // it says that it listens
        await sleep(700);
        await this.startServer();
        const { host } = this;
        this.proxy = await startProxy({
            host, port: PORT, targetPort: SERVER_PORT, rules: this.scenario.rules
        });
    }

    async startServer(changes = {}) {
        const config = { host: this.host, port: SERVER_PORT, ...this.scenario.server, ...changes };
        this.server = fork(join(here, 'server.mjs'), [JSON.stringify(config)]);
        await once(this.server, 'message');
    }

    // As a crash: no stream is ended, no client told.
    async killServer() {
        this.server.kill('SIGKILL');
        await once(this.server, 'exit');
    }

    // Runs a client to its end; how it ended, and what `tell` steps said, is the scenario's to check.
    async client(steps, changes = {}) {
        const config = {
            url: `http://${this.host.includes(':') ? `[${this.host}]` : this.host}:${PORT}/mcp`,
            log: this.log, state: join(this.dir, 'state.json'), ...this.scenario.client, ...changes, steps
        };
        const child = fork(join(here, 'client.mjs'), [JSON.stringify(config)]);
        child.on('message', what => this.scenario.told?.[what]?.(this));
        const [code, signal] = await once(child, 'exit');
        return signal ?? code;
    }

    async stop() {
        await sleep(1200); // what the kernel still holds for the sniffer
        this.sniffer.kill('SIGINT');
        await once(this.sniffer, 'exit');
        this.proxy.close();
        this.server.kill('SIGKILL');
    }

    // The packets and the log replace those of the case; expectation and README are written by hand.
    save() {
        const target = join(samples, this.scenario.name);
        const bytes = readFileSync(this.capture);
        if (bytes.length > BIGGEST)
            throw new Error(`the capture has ${bytes.length} bytes, more than ${BIGGEST}`);
        writeFileSync(join(target, this.kind === 'pcapng' ? 'capture.pcapng' : 'capture.pcap'), bytes);
        if (existsSync(this.log) && this.scenario.keepLog !== false)
            this.saveLog(target);
        rmSync(this.dir, { recursive: true });
    }

    saveLog(target) {
        const log = readFileSync(this.log, 'utf8');
        const { asMap } = this.scenario;
        if (!asMap)
            return writeFileSync(join(target, 'dispatch.ndjson'), log);
        const entries = log.trim().split('\n').map(line => JSON.parse(line));
        writeFileSync(join(target, 'dispatch.json'), JSON.stringify(mapOf(entries), null, 2) + '\n');
    }
}

// The short form of a dispatch log, as it lay on the disk when the client came back: the last state of each
// event, and the stored cursor.
function mapOf(log) {
    const entries = log.slice(0, log.findIndex(entry => entry.state === 'reconnect'));
    const cursor = entries.findLast(entry => entry.state === 'cursor').event_id;
    const session = entries.findLast(entry => entry.session).session;
    const states = entries.filter(entry => ['processed', 'committed'].includes(entry.state));
    return {
        session, last_event_id: cursor, idempotent_handlers: false,
        dispatch_log: Object.fromEntries(states.map(entry => [entry.event_id, entry.state]))
    };
}

async function record(scenario) {
    const undo = scenario.settings ? change(scenario.settings) : () => {};
    const recording = new Recording(scenario);
    try {
        await recording.start();
        await scenario.run(recording);
        await recording.stop();
        recording.save();
    } finally {
        recording.server?.kill('SIGKILL');
        recording.sniffer?.kill('SIGKILL');
        recording.proxy?.close();
        undo();
    }
}

// Kernel settings of this network namespace, for one scenario.
function change(settings) {
    const before = Object.keys(settings).map(path => [path, readFileSync(path, 'utf8')]);
    for (const [path, value] of Object.entries(settings))
        writeFileSync(path, value);
    return () => before.forEach(([path, value]) => writeFileSync(path, value));
}

const wanted = process.argv.slice(2);
const chosen = scenarios.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
if (chosen.length === 0) {
    process.stderr.write(`no such case; there are: ${scenarios.map(({ name }) => name).join(' ')}\n`);
    process.exit(2);
}
let failed = 0;
for (const scenario of chosen) {
    try {
        await record(scenario);
        process.stdout.write(`recorded ${scenario.name}\n`);
    } catch (error) {
        failed++;
        process.stdout.write(`FAILED   ${scenario.name}: ${error.stack}\n`);
    }
}
process.exit(failed ? 1 : 0);
