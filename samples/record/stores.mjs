// Event stores for the recorder's server: integer ids, with the faults that real stores have.
import { InMemoryEventStore } from '@modelcontextprotocol/sdk/examples/shared/inMemoryEventStore.js';

// A priming event is stored as an empty object; it says nothing and is never replayed.
const isPriming = message => Object.keys(message).length === 0;

/*
 * Integer ids. Options, all off by default:
 *   dense      every stream counts by itself, from its own thousand (1001, 1002, ..., 2001, ...);
 *              otherwise one counter runs over the whole session
 *   ring       keep only that many newest events of the session and replay from the oldest one that is
 *              left, without a word about those that are gone
 *   inclusive  replay the cursor's own event too
 *   foreign    replay the events of every stream, not only the cursor's
 *   renumber   give every replayed event a fresh id
 *   silent     replay nothing
 *   refuse     refuse a cursor whose successor is gone (with ring) or that is unknown
 */
export class IntegerStore {
    constructor(options = {}) {
        this.options = options;
        this.events = []; // in order: { id, streamId, message }
        this.streamOf = new Map(); // every id ever given, also the evicted ones
        this.counters = new Map();
    }

    nextId(streamId) {
        const key = this.options.dense ? streamId : '';
        if (!this.counters.has(key))
            this.counters.set(key, this.options.dense ? 1000 * (this.counters.size + 1) : 0);
        const id = this.counters.get(key) + 1;
        this.counters.set(key, id);
        return id;
    }

    async storeEvent(streamId, message) {
        const id = this.nextId(streamId);
        this.events.push({ id, streamId, message });
        this.streamOf.set(String(id), streamId);
        if (this.options.ring)
            this.events.splice(0, this.events.length - this.options.ring);
        return String(id);
    }

    async replayEventsAfter(lastEventId, { send }) {
        const cursor = Number(lastEventId);
        const streamId = this.streamOf.get(lastEventId) ?? '_GET_stream';
        const due = this.events.filter(event => this.isDue(event, cursor, streamId));
        for (const event of due) {
            if (this.options.renumber)
                this.streamOf.set(String(event.id = this.nextId(streamId)), streamId);
            await send(String(event.id), event.message);
        }
        return streamId;
    }

    isDue(event, cursor, streamId) {
        if (this.options.silent || isPriming(event.message))
            return false;
        if (event.streamId !== streamId && !this.options.foreign)
            return false;
        return this.options.inclusive ? event.id >= cursor : event.id > cursor;
    }
}

// A store that refuses a cursor which it cannot honour: the SDK answers 400 when no stream is named.
export class RefusingStore extends IntegerStore {
    async getStreamIdForEventId(eventId) {
        const oldest = this.events[0]?.id ?? Infinity;
        return Number(eventId) + 1 < oldest ? undefined : this.streamOf.get(eventId);
    }
}

export function makeStore(options) {
    if (options === undefined)
        return undefined;
    if (options.kind === 'opaque')
        return new InMemoryEventStore(); // the SDK's example: STREAM_MILLISECONDS_RANDOM
    return options.refuse ? new RefusingStore(options) : new IntegerStore(options);
}
