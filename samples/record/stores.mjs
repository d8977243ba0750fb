// Event stores for the recorder's server: counted ids, with the faults that real stores have.
import { InMemoryEventStore } from '@modelcontextprotocol/sdk/examples/shared/inMemoryEventStore.js';

// A priming event is stored as an empty object; it says nothing and is never replayed.
const isPriming = message => Object.keys(message).length === 0;

/*
 * Counted ids. Options, all off by default:
 *   dense      every stream counts by itself, from 0, and its name goes before the number (s2_0, s2_1, ...),
 *              as in the Go SDK; otherwise one counter runs over the whole session, from 1
 *   ring       keep only that many newest events of the session and replay from the oldest one that is
 *              left, without a word about those that are gone
 *   inclusive  replay the cursor's own event too
 *   foreign    replay the events of every stream, not only the cursor's
 *   renumber   give every replayed event a fresh id
 *   silent     replay nothing
 *   refuse     refuse a cursor whose successor is gone (with ring) or that is unknown
 */
export class CountingStore {
    constructor(options = {}) {
        this.options = options;
        this.events = []; // in order: { id, number, streamId, message }
        this.given = new Map(); // every id ever given, also the evicted ones -> { number, streamId }
        this.counters = new Map();
    }

    nextId(streamId) {
        const key = this.options.dense ? streamId : '';
        const counter = this.counters.get(key)
            ?? (this.options.dense ? { name: `s${this.counters.size + 1}_`, next: 0 } : { name: '', next: 1 });
        this.counters.set(key, counter);
        const number = counter.next++;
        const id = counter.name + number;
        this.given.set(id, { number, streamId });
        return { id, number };
    }

    async storeEvent(streamId, message) {
        const event = { ...this.nextId(streamId), streamId, message };
        this.events.push(event);
        if (this.options.ring)
            this.events.splice(0, this.events.length - this.options.ring);
        return event.id;
    }

    async replayEventsAfter(lastEventId, { send }) {
        // A cursor of an earlier life: whatever its number, it is taken for the standalone stream's.
        const cursor = this.given.get(lastEventId) ?? { number: Number(lastEventId), streamId: '_GET_stream' };
        const due = this.events.filter(event => this.isDue(event, cursor));
        for (const event of due) {
            if (this.options.renumber)
                Object.assign(event, this.nextId(event.streamId));
            await send(event.id, event.message);
        }
        return cursor.streamId;
    }

    isDue(event, { number, streamId }) {
        if (this.options.silent || isPriming(event.message))
            return false;
        if (event.streamId !== streamId && !this.options.foreign)
            return false;
        return this.options.inclusive ? event.number >= number : event.number > number;
    }
}

// A store that refuses a cursor which it cannot honour: the SDK answers 400 when no stream is named.
export class RefusingStore extends CountingStore {
    async getStreamIdForEventId(eventId) {
        const cursor = this.given.get(eventId);
        const oldest = this.events[0]?.number ?? Infinity;
        return cursor && cursor.number + 1 >= oldest ? cursor.streamId : undefined;
    }
}

export function makeStore(options) {
    if (options === undefined)
        return undefined;
    if (options.kind === 'opaque')
        return new InMemoryEventStore(); // the SDK's example: STREAM_MILLISECONDS_RANDOM
    return options.refuse ? new RefusingStore(options) : new CountingStore(options);
}
