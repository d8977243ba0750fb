/*
 * tls.c - see tls.h. Each direction runs through epochs, each with keys of its own; records that
 * cannot be opened yet are held, because their keys may stand further down the capture file, and
 * because early data counts only when the server has accepted it.
 */
#include "tls.h"

#include "tls_crypto.h"
#include "tls_hello.h"

#include <stdio.h>
#include <stdlib.h>

enum content { CHANGE_CIPHER_SPEC = 20, ALERT, HANDSHAKE, APPLICATION, HEARTBEAT };

enum message {
    CLIENT_HELLO = 1,
    SERVER_HELLO = 2,
    END_OF_EARLY_DATA = 5,
    ENCRYPTED_EXTENSIONS = 8,
    FINISHED = 20,
    KEY_UPDATE = 24,
};

/* TLS 1.2 knows the first and the last only. */
enum epoch { EPOCH_PLAIN, EPOCH_EARLY, EPOCH_HANDSHAKE, EPOCH_TRAFFIC };

#define HEADER       5
#define HELD_MAX     ((size_t)65536)
#define MESSAGE_MAX  ((size_t)65536)
#define FAILURES_MAX 8                     /* records in a row, then a direction is given up */
#define TRIAL_WINDOW 4096                  /* records that may be missing in a gap */
#define TRIAL_EPOCHS 4                     /* KeyUpdates, at most, that may be missing in it */
#define TRIAL_BYTES  (UINT64_C(256) << 20) /* trial decryption of one connection ends here */
#define CLOSE_NOTIFY 0

/* One record, and where its last byte stands. */
struct located {
    struct tls_record rec;
    struct place at;
    uint64_t tcp_end;
    bool ambiguous;
};

struct held {
    struct held *next;
    struct located item; /* payload in bytes */
    bool gap;            /* no record: a gap, which took `lost` records at least */
    uint64_t lost;
    uint64_t order;
    uint8_t bytes[];
};

/* The handshake messages of one direction, cut out of their records. */
struct messages {
    uint8_t head[4];
    size_t have; /* of head */
    size_t left; /* of the body */
    bool wanted;
    struct buf body;
};

struct side {
    struct buf record; /* one that came in several pieces; while searching, what may be one */
    bool ambiguous;    /* some byte in `record` is */
    size_t skip;       /* bytes left of a record that a gap has hit */
    bool started;
    bool searching;      /* the record boundary is lost */
    struct piece sought; /* the last one searched; its bytes are in `record` */
    bool resync;         /* records are missing: the sequence number is not known */
    bool gap_owed;       /* to be told above before the next data */
    bool traffic_only;   /* the handshake secret is not in the key log: wait for the first record */
    bool dead;
    bool closed;
    enum epoch epoch;
    struct tls_cipher *cipher; /* of the epoch; NULL: not made yet */
    struct tls_secret secret;  /* TLS 1.3 */
    uint64_t seq;
    unsigned failures;
    struct messages messages;
    struct held *held;
    struct held **held_end;
    size_t held_bytes;
};

struct tls {
    struct exchanges *all;
    const struct keylog *keys;
    const struct conn *conn;
    struct tls_above above;
    struct layer up;
    bool up_made;
    struct side side[2];
    uint8_t client_random[TLS_RANDOM];
    uint8_t server_random[TLS_RANDOM];
    bool hello_seen;
    bool encrypt_then_mac;
    bool early_offered;
    bool early_accepted;
    bool extensions_seen;
    const struct tls_suite *suite; /* NULL until the ServerHello */
    bool decrypted;                /* some record was */
    bool dead;
    bool lost_noted;
    uint64_t trial_bytes;
    uint64_t held_count; /* ever */
    size_t name_len;
    size_t alpn_len;
    uint8_t name[255];
    uint8_t alpn[255];
};

static bool is_13(const struct tls *t)
{
    return t->suite && t->suite->version == TLS13;
}

static void note(struct tls *t, enum note_kind kind, struct slice text, struct place at)
{
    exchanges_note(t->all, 0, (struct rec_note){ kind, 1, t->conn->tcp_stream, text }, at);
}

static void held_free(struct side *s)
{
    while (s->held) {
        struct held *h = s->held;
        s->held = h->next;
        free(h);
    }
    s->held_end = &s->held;
    s->held_bytes = 0;
}

/* This connection cannot be read at all. text empty: its name, if it has one. */
static void unreadable(struct tls *t, struct slice text, struct place at)
{
    if (t->dead)
        return;
    if (text.len == 0 && !t->hello_seen)
        text = SLICE_LIT("joined in the middle");
    if (text.len == 0)
        text = (struct slice){ t->name, t->name_len };
    t->dead = true;
    held_free(&t->side[DIR_CLIENT]);
    held_free(&t->side[DIR_SERVER]);
    note(t, NOTE_TLS_NO_KEYS, text, at);
}

static void tell_gap(struct tls *t, enum dir dir, struct place at)
{
    if (t->up.ops)
        t->up.ops->gap(t->up.self, dir, 0, at);
    else
        t->side[dir].gap_owed = true;
}

/* What follows in this direction cannot be read. */
static void give_up(struct tls *t, enum dir dir, struct place at)
{
    t->side[dir].dead = true;
    held_free(&t->side[dir]);
    if (!t->lost_noted)
        note(t, NOTE_TLS_LOST, (struct slice){ t->name, t->name_len }, at);
    t->lost_noted = true;
}

static void enter(struct side *s, enum epoch epoch)
{
    tls_cipher_free(s->cipher);
    s->cipher = NULL;
    s->epoch = epoch;
    s->seq = 0;
    s->messages.have = 0;
}

static bool ready_12(struct tls *t, enum dir dir)
{
    struct side *s = &t->side[dir];
    struct tls_keys12 keys = { .master = keylog_find(t->keys, t->client_random, KEY_MASTER),
                               .client_random = t->client_random,
                               .server_random = t->server_random,
                               .encrypt_then_mac = t->encrypt_then_mac };

    if (s->epoch != EPOCH_TRAFFIC || !keys.master)
        return false;
    s->cipher = tls_cipher_new12(t->suite, &keys, dir);
    return s->cipher != NULL;
}

static const struct tls_secret *secret_of(const struct tls *t, enum dir dir, enum epoch epoch)
{
    static const enum key_label label[2][4] = {
        [DIR_CLIENT] = { [EPOCH_EARLY] = KEY_CLIENT_EARLY,
                         [EPOCH_HANDSHAKE] = KEY_CLIENT_HANDSHAKE,
                         [EPOCH_TRAFFIC] = KEY_CLIENT_TRAFFIC },
        [DIR_SERVER] = { [EPOCH_HANDSHAKE] = KEY_SERVER_HANDSHAKE,
                         [EPOCH_TRAFFIC] = KEY_SERVER_TRAFFIC },
    };

    return keylog_find(t->keys, t->client_random, label[dir][epoch]);
}

static bool ready_13(struct tls *t, enum dir dir)
{
    struct side *s = &t->side[dir];
    bool early_known = !t->early_offered || t->extensions_seen;

    if (s->epoch == EPOCH_PLAIN) {
        if (!early_known && t->side[DIR_SERVER].epoch != EPOCH_TRAFFIC)
            return false;
        enter(s,
              t->early_accepted && secret_of(t, dir, EPOCH_EARLY) ? EPOCH_EARLY : EPOCH_HANDSHAKE);
    }
    const struct tls_secret *secret = secret_of(t, dir, s->epoch);
    if (!secret && s->epoch == EPOCH_HANDSHAKE) {
        secret = secret_of(t, dir, EPOCH_TRAFFIC);
        s->traffic_only = secret != NULL;
    }
    if (!secret)
        return false;
    if (s->traffic_only)
        s->epoch = EPOCH_TRAFFIC;
    s->secret = *secret;
    s->cipher = tls_cipher_new13(t->suite, secret);
    return s->cipher != NULL;
}

/* Are the keys for the next record of this direction at hand? */
static bool ready(struct tls *t, enum dir dir)
{
    if (t->side[dir].cipher)
        return true;
    if (!t->suite)
        return false;
    return is_13(t) ? ready_13(t, dir) : ready_12(t, dir);
}

static void take_client_hello(struct tls *t, struct slice body)
{
    struct tls_client_hello h;

    if (is_13(t) || !tls_client_hello_parse(body, &h))
        return;
    t->hello_seen = true;
    t->early_offered |= h.early_data;
    memcpy(t->client_random, h.random, TLS_RANDOM);
    t->name_len = h.server_name.len < sizeof(t->name) ? h.server_name.len : sizeof(t->name);
    if (t->name_len > 0)
        memcpy(t->name, h.server_name.ptr, t->name_len);
}

static void keep_alpn(struct tls *t, struct slice alpn)
{
    if (alpn.len == 0 || alpn.len > sizeof(t->alpn))
        return;
    memcpy(t->alpn, alpn.ptr, alpn.len);
    t->alpn_len = alpn.len;
}

static void take_server_hello(struct tls *t, struct slice body, struct place at)
{
    struct tls_server_hello h;
    char text[48];

    if (is_13(t) || !tls_server_hello_parse(body, &h) || h.retry)
        return;
    t->suite = tls_suite_find(h.suite);
    if (!t->suite || t->suite->version != h.version) {
        snprintf(text, sizeof(text), "version 0x%04x, cipher suite 0x%04x", h.version, h.suite);
        unreadable(t, slice_str(text), at);
        return;
    }
    memcpy(t->server_random, h.random, TLS_RANDOM);
    t->encrypt_then_mac = h.encrypt_then_mac;
    keep_alpn(t, h.alpn);
    if (is_13(t))
        enter(&t->side[DIR_SERVER], EPOCH_HANDSHAKE);
}

static void take_extensions(struct tls *t, struct slice body)
{
    struct tls_extensions e;

    if (!tls_extensions_parse(body, &e))
        return;
    t->extensions_seen = true;
    t->early_accepted = e.early_data;
    keep_alpn(t, e.alpn);
}

/* RFC 8446 4.6.3: the sender's next record has the next keys. */
static void update_keys(struct tls *t, struct side *s)
{
    struct tls_secret next = s->secret;

    tls_secret_next(t->suite, &next);
    enter(s, EPOCH_TRAFFIC);
    s->secret = next;
    s->cipher = tls_cipher_new13(t->suite, &next);
}

static void take_message(struct tls *t, enum dir dir, struct place at)
{
    struct side *s = &t->side[dir];
    struct slice body = buf_slice(&s->messages.body);

    switch (s->messages.head[0]) {
    case CLIENT_HELLO:
        if (dir == DIR_CLIENT)
            take_client_hello(t, body);
        break;
    case SERVER_HELLO:
        if (dir == DIR_SERVER)
            take_server_hello(t, body, at);
        break;
    case END_OF_EARLY_DATA:
        if (is_13(t) && s->epoch == EPOCH_EARLY)
            enter(s, EPOCH_HANDSHAKE);
        break;
    case ENCRYPTED_EXTENSIONS:
        if (dir == DIR_SERVER && s->epoch == EPOCH_HANDSHAKE)
            take_extensions(t, body);
        break;
    case FINISHED:
        if (is_13(t) && s->epoch == EPOCH_HANDSHAKE)
            enter(s, EPOCH_TRAFFIC);
        break;
    case KEY_UPDATE:
        if (is_13(t) && s->epoch == EPOCH_TRAFFIC)
            update_keys(t, s);
        break;
    default: break;
    }
}

static void message_begins(struct messages *m)
{
    static const uint8_t wanted[] = { CLIENT_HELLO, SERVER_HELLO, ENCRYPTED_EXTENSIONS };

    m->left = (size_t)m->head[1] << 16 | (size_t)m->head[2] << 8 | m->head[3];
    m->body.len = 0;
    m->wanted = m->left <= MESSAGE_MAX && memchr(wanted, m->head[0], sizeof(wanted));
}

static void feed_messages(struct tls *t, enum dir dir, struct slice data, struct place at)
{
    struct messages *m = &t->side[dir].messages;
    struct slice part;

    while (data.len > 0 && !t->dead) {
        if (m->have < sizeof(m->head)) {
            if (!slice_u8(&data, &m->head[m->have++]))
                return;
            if (m->have < sizeof(m->head))
                continue;
            message_begins(m);
        }
        if (!slice_take(&data, data.len < m->left ? data.len : m->left, &part))
            return;
        if (m->wanted)
            m->wanted = buf_add(&m->body, part);
        m->left -= part.len;
        if (m->left > 0)
            continue;
        m->have = 0;
        take_message(t, dir, at);
    }
}

/* n bytes of plain handshake are missing. */
static void skip_messages(struct messages *m, size_t n)
{
    m->wanted = false;
    if (m->have == sizeof(m->head) && n < m->left)
        m->left -= n;
    else
        m->have = 0; /* at best the end of this message; else nothing below will parse */
}

static void deliver(struct tls *t, enum dir dir, const struct located *l, struct slice data)
{
    struct side *s = &t->side[dir];
    struct piece piece = {
        .data = data, .at = l->at, .tcp_end = l->tcp_end, .sealed = true, .ambiguous = l->ambiguous
    };

    if (data.len == 0)
        return;
    if (!t->up_made)
        t->up = t->above.make(t->above.ctx, (struct slice){ t->alpn, t->alpn_len }, data, dir);
    t->up_made = true;
    if (!t->up.ops)
        return;
    if (s->gap_owed)
        t->up.ops->gap(t->up.self, dir, 0, l->at);
    s->gap_owed = false;
    t->up.ops->data(t->up.self, dir, &piece);
}

static void close_up(struct tls *t, enum dir dir, enum close_kind kind, struct place at)
{
    if (t->up.ops && !t->side[dir].closed)
        t->up.ops->close(t->up.self, dir, kind, at);
    t->side[dir].closed = true;
}

static void take_content(struct tls *t, enum dir dir, const struct located *l, uint8_t type,
                         struct slice data)
{
    if (type == HANDSHAKE)
        feed_messages(t, dir, data, l->at);
    else if (type == APPLICATION)
        deliver(t, dir, l, data);
    else if (type == ALERT && data.len == 2 && data.ptr[1] == CLOSE_NOTIFY)
        close_up(t, dir, CLOSE_FIN, l->at);
    else if (type == CHANGE_CIPHER_SPEC && t->suite && !is_13(t))
        enter(&t->side[dir], EPOCH_TRAFFIC);
}

static void opened(struct tls *t, enum dir dir, const struct located *l, struct slice plain)
{
    struct side *s = &t->side[dir];
    uint8_t type = l->rec.type;

    s->failures = 0;
    s->resync = false;
    s->traffic_only = false;
    t->decrypted = true;
    if (is_13(t)) { /* RFC 8446 5.2: content, its type, zeros */
        while (plain.len > 0 && plain.ptr[plain.len - 1] == 0)
            plain.len--;
        if (plain.len == 0)
            return;
        type = plain.ptr[--plain.len];
        if (s->epoch == EPOCH_HANDSHAKE)
            s->gap_owed = false; /* it cannot have hit application data */
    }
    take_content(t, dir, l, type, plain);
}

struct opening {
    struct slice plain; /* in out */
    uint64_t seq;
    uint8_t out[TLS_OUT_MAX];
};

/* Opens the record with the cipher and one of the sequence numbers from `first`. */
static bool try_window(struct tls *t, struct tls_cipher *c, uint64_t first,
                       const struct tls_record *rec, struct opening *o)
{
    for (o->seq = first; o->seq < first + TRIAL_WINDOW && t->trial_bytes < TRIAL_BYTES; o->seq++) {
        t->trial_bytes += rec->payload.len;
        if (tls_cipher_open(c, o->seq, rec, o->out, &o->plain))
            return true;
    }
    return false;
}

/* Steps on to the keys after these; false: they are not in the key log. */
static bool next_keys(const struct tls *t, enum dir dir, enum epoch *epoch,
                      struct tls_secret *secret)
{
    if (*epoch == EPOCH_TRAFFIC) {
        tls_secret_next(t->suite, secret);
        return true;
    }
    ++*epoch;
    const struct tls_secret *found = secret_of(t, dir, *epoch);
    if (found)
        *secret = *found;
    return found != NULL;
}

/* Records are missing: finds the place of this one under the keys in use, or those after them. */
static bool resynced(struct tls *t, enum dir dir, const struct tls_record *rec, struct opening *o)
{
    struct side *s = &t->side[dir];
    enum epoch epoch = s->epoch;
    struct tls_secret secret = s->secret;

    if (try_window(t, s->cipher, s->seq, rec, o)) {
        s->seq = o->seq + 1;
        return true;
    }
    for (int i = 0; is_13(t) && i < TRIAL_EPOCHS; i++) {
        struct tls_cipher *c =
            next_keys(t, dir, &epoch, &secret) ? tls_cipher_new13(t->suite, &secret) : NULL;
        if (!c || !try_window(t, c, 0, rec, o)) {
            tls_cipher_free(c);
            continue;
        }
        s->gap_owed &= s->epoch != EPOCH_HANDSHAKE || epoch != EPOCH_TRAFFIC || o->seq > 0;
        enter(s, epoch);
        s->cipher = c;
        s->secret = secret;
        s->seq = o->seq + 1;
        return true;
    }
    return false;
}

static bool try_open(struct tls *t, enum dir dir, const struct located *l)
{
    struct side *s = &t->side[dir];
    struct opening o;

    if (tls_cipher_open(s->cipher, s->seq, &l->rec, o.out, &o.plain))
        s->seq++;
    else if (!s->resync || !resynced(t, dir, &l->rec, &o))
        return false;
    opened(t, dir, l, o.plain);
    return true;
}

static void open_record(struct tls *t, enum dir dir, const struct located *l)
{
    struct side *s = &t->side[dir];
    bool early = dir == DIR_CLIENT && t->early_offered && s->epoch == EPOCH_HANDSHAKE;

    if (try_open(t, dir, l))
        return;
    if (s->seq == 0 && (early || s->traffic_only))
        return; /* early data the server has refused, or a handshake without its secret */
    s->seq++;
    if (s->failures++ == 0)
        tell_gap(t, dir, l->at);
    if (s->failures > FAILURES_MAX)
        give_up(t, dir, l->at);
}

/* l NULL: a gap that took `lost` records at least. */
static void hold(struct tls *t, enum dir dir, const struct located *l, uint64_t lost,
                 struct place at)
{
    struct side *s = &t->side[dir];
    size_t len = l ? l->rec.payload.len : 0;

    if (s->held_bytes + sizeof(struct held) + len > HELD_MAX) {
        if (t->decrypted)
            give_up(t, dir, at);
        else
            unreadable(t, (struct slice){ 0 }, at);
        return;
    }
    struct held *h = mem_alloc(sizeof(*h) + len);
    h->gap = !l;
    h->lost = lost;
    h->order = t->held_count++;
    if (l) {
        h->item = *l;
        memcpy(h->bytes, l->rec.payload.ptr, len);
        h->item.rec.payload.ptr = h->bytes;
    }
    s->held_bytes += sizeof(*h) + len;
    *s->held_end = h;
    s->held_end = &h->next;
}

static void release_first(struct tls *t, enum dir dir)
{
    struct side *s = &t->side[dir];
    struct held *h = s->held;

    s->held = h->next;
    if (!s->held)
        s->held_end = &s->held;
    s->held_bytes -= sizeof(*h) + h->item.rec.payload.len;
    s->resync |= h->gap;
    s->seq += h->lost;
    if (!h->gap)
        open_record(t, dir, &h->item);
    free(h);
}

/* Opens what has its keys by now, both directions in the order in which the records were sent. */
static void release(struct tls *t)
{
    while (!t->dead) {
        const struct held *client = t->side[DIR_CLIENT].held;
        const struct held *server = t->side[DIR_SERVER].held;
        bool client_ready = client && ready(t, DIR_CLIENT);
        bool server_ready = server && ready(t, DIR_SERVER);
        if (client_ready && (!server_ready || client->order < server->order))
            release_first(t, DIR_CLIENT);
        else if (server_ready)
            release_first(t, DIR_SERVER);
        else
            break;
    }
}

static bool is_protected(const struct tls *t, enum dir dir, uint8_t type)
{
    return type == APPLICATION || (t->side[dir].epoch == EPOCH_TRAFFIC && !is_13(t));
}

/* Whoever sees the first record of a direction sees a hello (or a refusal of one). */
static bool starts_well(struct tls *t, enum dir dir, const struct located *l)
{
    struct slice p = l->rec.payload;

    if (t->side[dir].started)
        return true;
    t->side[dir].started = true;
    if (dir == DIR_SERVER && l->rec.type == ALERT)
        return true;
    return l->rec.type == HANDSHAKE &&
           p.ptr[0] == (dir == DIR_CLIENT ? CLIENT_HELLO : SERVER_HELLO);
}

static void take_record(struct tls *t, enum dir dir, const struct located *l)
{
    struct side *s = &t->side[dir];

    if (!starts_well(t, dir, l)) {
        unreadable(t, SLICE_LIT("joined in the middle"), l->at);
        return;
    }
    if (!is_protected(t, dir, l->rec.type)) {
        if (!is_13(t) || s->epoch == EPOCH_PLAIN)
            take_content(t, dir, l, l->rec.type, l->rec.payload);
    } else if (s->held || !ready(t, dir)) {
        hold(t, dir, l, 0, l->at);
    } else {
        open_record(t, dir, l);
    }
    release(t);
}

/* With its header; 0: s is too short to tell, or does not begin with a record. */
static size_t record_total(struct slice s)
{
    uint8_t type;
    uint8_t major;
    uint8_t minor;
    uint16_t len;

    if (!slice_u8(&s, &type) || !slice_u8(&s, &major) || !slice_u8(&s, &minor) ||
        !slice_be16(&s, &len))
        return 0;
    if (type < CHANGE_CIPHER_SPEC || type > HEARTBEAT || major != 3 || minor > 4)
        return 0;
    return len > 0 && len <= TLS_PAYLOAD_MAX ? (size_t)len + HEADER : 0;
}

bool tls_is(struct slice s)
{
    return record_total(s) > 0 && s.ptr[0] != CHANGE_CIPHER_SPEC && s.ptr[0] != HEARTBEAT;
}

/* bytes: a whole record, the last byte of which is the last of `from`. */
static struct located locate(struct slice bytes, const struct piece *from, bool ambiguous)
{
    return (struct located){
        .rec = { .type = bytes.ptr[0],
                 .version = (uint16_t)(bytes.ptr[1] << 8 | bytes.ptr[2]),
                 .payload = { bytes.ptr + HEADER, bytes.len - HEADER } },
        .at = from->at,
        .tcp_end = from->tcp_end,
        .ambiguous = ambiguous,
    };
}

static void lose_boundary(struct tls *t, enum dir dir, struct place at)
{
    struct side *s = &t->side[dir];

    s->messages.have = 0;
    s->searching = true;
    s->resync = true;
    if (s->held && t->decrypted)
        give_up(t, dir, at);
    else if (s->held || !t->hello_seen)
        unreadable(t, (struct slice){ 0 }, at);
}

/* Is there something in the buffer to work on before more bytes are needed? */
static bool is_buffered(const struct side *s)
{
    return s->record.len >= HEADER && record_total(buf_slice(&s->record)) <= s->record.len;
}

/* No more off the piece than is wanted for a header, or for the whole record behind it. */
static struct piece take_wanted(const struct side *s, struct piece *piece)
{
    size_t total = record_total(buf_slice(&s->record));
    size_t want = total > 0 ? total : HEADER;
    size_t need = want > s->record.len ? want - s->record.len : 0;

    return piece_take(piece, need < piece->data.len ? need : piece->data.len);
}

/* Takes one record, or what there is of it, off the piece. */
static void cut_record(struct tls *t, enum dir dir, struct piece *piece)
{
    struct side *s = &t->side[dir];
    size_t total = record_total(s->record.len > 0 ? buf_slice(&s->record) : piece->data);

    if (s->record.len == 0 && total > 0 && total <= piece->data.len) { /* whole: no copy */
        struct piece whole = piece_take(piece, total);
        struct located l = locate(whole.data, &whole, whole.ambiguous);
        take_record(t, dir, &l);
        return;
    }
    struct piece part = take_wanted(s, piece);
    if (!buf_add(&s->record, part.data))
        return; /* never: a record is shorter than the ceiling */
    s->ambiguous |= part.ambiguous;
    total = record_total(buf_slice(&s->record));
    if (s->record.len >= HEADER && total == 0) {
        tell_gap(t, dir, part.at);
        lose_boundary(t, dir, part.at);
    } else if (total > 0 && s->record.len >= total) {
        struct located l = locate((struct slice){ s->record.ptr, total }, &part, s->ambiguous);
        l.tcp_end -= s->record.len - total;
        take_record(t, dir, &l);
        buf_drop(&s->record, total);
        s->ambiguous = false;
    }
}

/* Is this run of bytes really a record? It is when it can be opened. */
static bool accept_record(struct tls *t, enum dir dir, const struct located *l)
{
    static const uint8_t change[] = { 1 };
    struct side *s = &t->side[dir];

    if (t->suite && !is_13(t) && s->epoch == EPOCH_PLAIN) {
        if (l->rec.type != CHANGE_CIPHER_SPEC ||
            !slice_eq(l->rec.payload, (struct slice){ change, 1 }))
            return false;
        s->started = true;
        take_record(t, dir, l);
        return true;
    }
    if (!is_protected(t, dir, l->rec.type) || !ready(t, dir))
        return false;
    s->started = true;
    return try_open(t, dir, l);
}

/* Looks for a record in the buffer; last: what is not whole there is none. */
static void search_buffer(struct tls *t, enum dir dir, bool last)
{
    struct side *s = &t->side[dir];
    size_t i = 0;

    for (; i + HEADER <= s->record.len; i++) {
        struct slice rest = { s->record.ptr + i, s->record.len - i };
        size_t total = record_total(rest);
        if (total > rest.len && !last)
            break;
        if (total == 0 || total > rest.len)
            continue;
        struct located l =
            locate((struct slice){ rest.ptr, total }, &s->sought, s->sought.ambiguous);
        l.tcp_end -= rest.len - total;
        if (accept_record(t, dir, &l)) {
            s->searching = false;
            i += total;
            break; /* what is left in the buffer follows it */
        }
    }
    buf_drop(&s->record, i);
}

/* Looks for the next record; takes no more bytes than the candidate at hand needs. */
static void search(struct tls *t, enum dir dir, struct piece *piece)
{
    struct side *s = &t->side[dir];
    struct piece part = take_wanted(s, piece);

    if (!buf_add(&s->record, part.data))
        return;
    s->sought = part;
    search_buffer(t, dir, false);
}

static void tls_data(void *self, enum dir dir, const struct piece *whole)
{
    struct tls *t = self;
    struct side *s = &t->side[dir];
    struct piece piece = *whole;

    while ((piece.data.len > 0 || is_buffered(s)) && !t->dead && !s->dead) {
        if (s->skip > 0) {
            size_t n = s->skip < piece.data.len ? s->skip : piece.data.len;
            (void)piece_take(&piece, n);
            s->skip -= n;
        } else if (s->searching) {
            search(t, dir, &piece);
        } else {
            cut_record(t, dir, &piece);
        }
    }
}

/* A gap within one record, the header of which is known. */
static void lose_record(struct tls *t, enum dir dir, struct place at)
{
    struct side *s = &t->side[dir];
    uint8_t type = s->record.ptr[0];

    if (!is_protected(t, dir, type)) {
        if (type == HANDSHAKE)
            skip_messages(&s->messages, record_total(buf_slice(&s->record)) - HEADER);
    } else if (s->held || !ready(t, dir)) {
        hold(t, dir, NULL, 1, at);
    } else {
        s->seq++;
        s->resync = true; /* it may have been a KeyUpdate */
    }
}

static void tls_gap(void *self, enum dir dir, uint64_t len, struct place at)
{
    struct tls *t = self;
    struct side *s = &t->side[dir];
    size_t left = s->skip;

    if (t->dead || s->dead)
        return;
    tell_gap(t, dir, at);
    if (left == 0 && !s->searching && record_total(buf_slice(&s->record)) > 0)
        left = record_total(buf_slice(&s->record)) - s->record.len;
    if (len > 0 && len <= left) {
        if (s->record.len > 0)
            lose_record(t, dir, at);
        s->skip = left - (size_t)len;
    } else {
        s->skip = 0;
        lose_boundary(t, dir, at);
    }
    s->record.len = 0;
    s->ambiguous = false;
}

static void tls_ack(void *self, enum dir dir, uint64_t tcp_offset, struct place at)
{
    struct tls *t = self;

    if (t->up.ops)
        t->up.ops->ack(t->up.self, dir, tcp_offset, at);
}

static void tls_silence(void *self, enum dir dir, const struct silence *silence)
{
    struct tls *t = self;

    if (t->up.ops)
        t->up.ops->silence(t->up.self, dir, silence);
}

/* No more bytes will come: a candidate that waited for some was no record, but hides what came
 * behind it. */
static void search_rest(struct tls *t, enum dir dir)
{
    struct side *s = &t->side[dir];

    while (s->searching && s->record.len >= HEADER && !t->dead && !s->dead) {
        search_buffer(t, dir, true);
        struct piece none = s->sought;
        none.data.len = 0;
        tls_data(t, dir, &none); /* what follows a record that was found */
    }
}

static void tls_close(void *self, enum dir dir, enum close_kind kind, struct place at)
{
    search_rest(self, dir);
    close_up(self, dir, kind, at);
}

static void tls_finish(void *self, struct place at)
{
    struct tls *t = self;

    for (enum dir dir = DIR_CLIENT; dir <= DIR_SERVER; dir++) {
        search_rest(t, dir);
        if (!t->decrypted && (t->side[dir].held || t->side[dir].searching))
            unreadable(t, (struct slice){ 0 }, at);
    }
    if (t->up.ops)
        t->up.ops->finish(t->up.self, at);
    for (size_t i = 0; i < ARRAY_LEN(t->side); i++) {
        held_free(&t->side[i]);
        tls_cipher_free(t->side[i].cipher);
        buf_release(&t->side[i].record);
        buf_release(&t->side[i].messages.body);
    }
    free(t);
}

struct layer tls_new(struct exchanges *all, const struct keylog *keys, const struct conn *conn,
                     struct tls_above above)
{
    static const struct layer_ops ops = { .name = "tls",
                                          .data = tls_data,
                                          .gap = tls_gap,
                                          .ack = tls_ack,
                                          .silence = tls_silence,
                                          .close = tls_close,
                                          .finish = tls_finish };
    struct tls *t = mem_alloc(sizeof(*t));

    t->all = all;
    t->keys = keys;
    t->conn = conn;
    t->above = above;
    for (size_t i = 0; i < ARRAY_LEN(t->side); i++) {
        t->side[i].held_end = &t->side[i].held;
        buf_init(&t->side[i].record, HEADER + TLS_PAYLOAD_MAX);
        buf_init(&t->side[i].messages.body, MESSAGE_MAX);
    }
    return (struct layer){ &ops, t };
}
