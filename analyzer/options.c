/* options.c - see options.h. */
#include "options.h"

#include "plain.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>

enum option_code {
    OPT_FILE = 1, /* getopt: an argument that is no option */
    OPT_LOG = 256,
    OPT_KEYLOG,
    OPT_FORMAT,
    OPT_SHOW_PAYLOAD,
    OPT_REVEAL,
    OPT_PROFILE,
    OPT_POLICY,
    OPT_STRICT,
    OPT_IDEMPOTENT,
    OPT_SESSION,
    OPT_FILTER,
    OPT_FAIL_ON,
    OPT_COLOR,
    OPT_PROGRESS,
    OPT_ACCEPT,
    OPT_SINCE,
    OPT_UNTIL,
    OPT_MAX_IDS,
    OPT_VERSION,
    OPT_HELP,
    OPT_HELP_POLICY,
};

static const struct option long_options[] = {
    { "log", required_argument, NULL, OPT_LOG },
    { "keylog", required_argument, NULL, OPT_KEYLOG },
    { "format", required_argument, NULL, OPT_FORMAT },
    { "show-payload", no_argument, NULL, OPT_SHOW_PAYLOAD },
    { "reveal", no_argument, NULL, OPT_REVEAL },
    { "output", required_argument, NULL, 'o' },
    { "profile", required_argument, NULL, OPT_PROFILE },
    { "policy", required_argument, NULL, OPT_POLICY },
    { "strict", no_argument, NULL, OPT_STRICT },
    { "idempotent", required_argument, NULL, OPT_IDEMPOTENT },
    { "session", required_argument, NULL, OPT_SESSION },
    { "filter", required_argument, NULL, OPT_FILTER },
    { "fail-on", required_argument, NULL, OPT_FAIL_ON },
    { "jobs", required_argument, NULL, 'j' },
    { "color", required_argument, NULL, OPT_COLOR },
    { "progress", required_argument, NULL, OPT_PROGRESS },
    { "quiet", no_argument, NULL, 'q' },
    { "verbose", no_argument, NULL, 'v' },
    { "accept", no_argument, NULL, OPT_ACCEPT },
    { "since", required_argument, NULL, OPT_SINCE },
    { "until", required_argument, NULL, OPT_UNTIL },
    { "max-ids", required_argument, NULL, OPT_MAX_IDS },
    { "version", no_argument, NULL, OPT_VERSION },
    { "help", no_argument, NULL, OPT_HELP },
    { "help-policy", no_argument, NULL, OPT_HELP_POLICY },
    { 0 },
};

struct word {
    const char *text;
    int value;
};

static const struct word commands[] = {
    { "corpus", COMMAND_CORPUS }, { "extract", COMMAND_EXTRACT },
    { "judge", COMMAND_JUDGE },   { "annotate", COMMAND_ANNOTATE },
    { "rules", COMMAND_RULES },   { "explain", COMMAND_EXPLAIN },
};
static const struct word formats[] = {
    { "text", FORMAT_TEXT }, { "json", FORMAT_JSON },   { "ndjson", FORMAT_NDJSON },
    { "html", FORMAT_HTML }, { "sarif", FORMAT_SARIF }, { "junit", FORMAT_JUNIT },
};
static const struct word endings[] = {
    { ".json", FORMAT_JSON }, { ".ndjson", FORMAT_NDJSON }, { ".jsonl", FORMAT_NDJSON },
    { ".html", FORMAT_HTML }, { ".htm", FORMAT_HTML },      { ".sarif", FORMAT_SARIF },
    { ".xml", FORMAT_JUNIT },
};
static const struct word profiles[] = {
    { "divergence", PROFILE_DIVERGENCE },
    { "conformance", PROFILE_CONFORMANCE },
    { "all", PROFILE_DIVERGENCE | PROFILE_CONFORMANCE },
};
#define FAIL_NEVER (SEV_ERROR + 1)
static const struct word severities[] = {
    { "error", SEV_ERROR },
    { "warning", SEV_WARNING },
    { "info", SEV_INFO },
    { "never", FAIL_NEVER },
};
static const struct word whens[] = {
    { "auto", WHEN_AUTO },
    { "always", WHEN_ALWAYS },
    { "never", WHEN_NEVER },
};

struct parser {
    struct options *opt;
    FILE *err;
};

static PRINTF_LIKE(2, 3) bool bad(struct parser *p, const char *fmt, ...)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) >= 0)
        fprintf(p->err, "sseaudit: %s\n", plain_text(a, slice_str(text), PLAIN_WHOLE));
    va_end(args);
    free(text);
    return false;
}

static const struct word *word_find(const struct word *list, size_t count, struct slice text)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_eq(slice_str(list[i].text), text))
            return &list[i];
    }
    return NULL;
}

/* The value of an option that is one of a list of words. */
static bool word_of(struct parser *p, const char *option, const struct word *list, size_t count,
                    int *ret)
{
    const struct word *w = word_find(list, count, slice_str(optarg));

    if (w) {
        *ret = w->value;
        return true;
    }
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *known = "";
    for (size_t i = 0; i < count; i++)
        known = arena_printf(a, "%s%s%s", known,
                             i == 0          ? ""
                             : i + 1 < count ? ", "
                                             : " or ",
                             list[i].text);
    return bad(p, "%s: unknown value \"%s\"; use %s", option, optarg, known);
}

static bool number_of(struct parser *p, const char *option, uint64_t max, uint64_t *ret)
{
    if (slice_u64(slice_str(optarg), max, ret) && *ret > 0)
        return true;
    return bad(p, "%s: \"%s\" is no number from 1 to %llu", option, optarg,
               (unsigned long long)max);
}

static bool time_of(struct parser *p, const char *option, int64_t *ret)
{
    if (time_parse(slice_str(optarg), ret))
        return true;
    return bad(p, "%s: \"%s\" is no time; write it as 2026-11-30T16:05:28Z", option, optarg);
}

static bool fail_on(struct parser *p)
{
    struct slice rest = slice_str(optarg);
    struct slice part;

    do {
        const uint8_t *comma = rest.len > 0 ? memchr(rest.ptr, ',', rest.len) : NULL;
        const struct word *w;

        if (!slice_take(&rest, comma ? (size_t)(comma - rest.ptr) : rest.len, &part))
            break;
        if (comma) {
            rest.ptr++;
            rest.len--;
        }
        w = word_find(severities, ARRAY_LEN(severities), part);
        if (w)
            p->opt->fail_on = w->value;
        else if (slice_eq(part, SLICE_LIT("undecidable")))
            p->opt->fail_on_undecidable = true;
        else
            return bad(p,
                       "--fail-on: unknown value \"" SLICE_FMT "\"; use error, warning, info or "
                       "never, and add \",undecidable\" where that should fail too",
                       SLICE_ARG(part));
    } while (rest.len > 0);
    return true;
}

static void add_file(struct options *opt, const char *path, enum input_kind kind)
{
    GROW(opt->file, opt->file_count, opt->file_cap);
    opt->file[opt->file_count++] = (struct file_arg){ path, kind };
}

static bool take_word(struct parser *p, int code)
{
    struct options *opt = p->opt;
    int value = 0;
    bool ok = false;

    switch (code) {
    case OPT_FORMAT:
        ok = word_of(p, "--format", formats, ARRAY_LEN(formats), &value);
        opt->format = (enum format)value;
        break;
    case OPT_PROFILE:
        ok = word_of(p, "--profile", profiles, ARRAY_LEN(profiles), &value);
        opt->profiles = (unsigned)value;
        break;
    case OPT_COLOR:
        ok = word_of(p, "--color", whens, ARRAY_LEN(whens), &value);
        opt->color = (enum when)value;
        break;
    default:
        ok = word_of(p, "--progress", whens, ARRAY_LEN(whens), &value);
        opt->progress = (enum when)value;
        break;
    }
    return ok;
}

static bool take_number(struct parser *p, int code)
{
    uint64_t n = 0;

    if (code == 'j') {
        if (!number_of(p, "-j", 1024, &n))
            return false;
        p->opt->jobs = (unsigned)n;
        return true;
    }
    if (!number_of(p, "--max-ids", UINT32_MAX, &n))
        return false;
    p->opt->max_ids = (size_t)n;
    return true;
}

static void take_flag(struct options *opt, int code)
{
    opt->show_payload |= code == OPT_SHOW_PAYLOAD;
    opt->reveal |= code == OPT_REVEAL;
    opt->strict |= code == OPT_STRICT;
    opt->accept |= code == OPT_ACCEPT;
    opt->quiet |= code == 'q';
    opt->verbose += code == 'v';
}

static bool take_option(struct parser *p, int code)
{
    struct options *opt = p->opt;

    switch (code) {
    case OPT_FILE: add_file(opt, optarg, INPUT_UNKNOWN); return true;
    case OPT_LOG: add_file(opt, optarg, INPUT_DISPATCH_LOG); return true;
    case OPT_KEYLOG: add_file(opt, optarg, INPUT_KEYLOG); return true;
    case OPT_POLICY: opt->policy = optarg; return true;
    case OPT_SESSION: opt->session = optarg; return true;
    case OPT_FILTER: opt->filter = optarg; return true;
    case OPT_SINCE: return time_of(p, "--since", &opt->since);
    case OPT_UNTIL: return time_of(p, "--until", &opt->until);
    case OPT_FAIL_ON: return fail_on(p);
    case OPT_IDEMPOTENT:
        GROW(opt->idempotent, opt->idempotent_count, opt->idempotent_cap);
        opt->idempotent[opt->idempotent_count++] = optarg;
        return true;
    case 'o': opt->output = optarg; return true;
    case 'j':
    case OPT_MAX_IDS: return take_number(p, code);
    case OPT_FORMAT:
    case OPT_PROFILE:
    case OPT_COLOR:
    case OPT_PROGRESS: return take_word(p, code);
    default: take_flag(opt, code); return true;
    }
}

static bool unknown_option(struct parser *p, int code, const char *argument)
{
    const char *what = code == ':' ? "needs a value" : "is not an option";
    const char *value = strncmp(argument, "--", 2) == 0 ? strchr(argument, '=') : NULL;

    if (value && optopt != 0) /* getopt knows the option, and refuses the value */
        return bad(p, "%.*s takes no value; see sseaudit --help", (int)(value - argument),
                   argument);
    if (optopt > ' ' && optopt < 256)
        return bad(p, "-%c %s; see sseaudit --help", optopt, what);
    return bad(p, "%s %s; see sseaudit --help", argument, what);
}

static enum options_result read_options(struct parser *p, int argc, char *const *argv, int first)
{
    int code;

    opterr = 0;
    optind = 0; /* glibc: start over, whatever an earlier call left */
    argc -= first;
    argv += first;
    while ((code = getopt_long(argc, argv, "-:o:j:qv", long_options, NULL)) != -1) {
        if (code == '?' || code == ':') {
            unknown_option(p, code, argv[optind - 1]);
            return OPTIONS_BAD;
        }
        if (code == OPT_HELP || code == OPT_HELP_POLICY || code == OPT_VERSION) {
            fputs(code == OPT_HELP          ? help_text
                  : code == OPT_HELP_POLICY ? help_policy_text
                                            : "sseaudit " SSEAUDIT_VERSION "\n",
                  stdout);
            return OPTIONS_DONE;
        }
        if (!take_option(p, code))
            return OPTIONS_BAD;
    }
    for (int i = optind; i < argc; i++)
        add_file(p->opt, argv[i], INPUT_UNKNOWN);
    return OPTIONS_GO;
}

static enum format format_of_output(const char *path)
{
    size_t len = path ? strlen(path) : 0;

    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        size_t n = strlen(endings[i].text);
        if (len > n && strcmp(path + len - n, endings[i].text) == 0)
            return (enum format)endings[i].value;
    }
    return FORMAT_TEXT;
}

static bool allows(enum command command, enum format format)
{
    switch (command) {
    case COMMAND_AUDIT:
        return format == FORMAT_TEXT || format == FORMAT_JSON || format == FORMAT_NDJSON;
    case COMMAND_CORPUS: return format == FORMAT_TEXT || format == FORMAT_JUNIT;
    case COMMAND_RULES: return format == FORMAT_TEXT || format == FORMAT_JSON;
    case COMMAND_EXPLAIN: return format == FORMAT_TEXT;
    case COMMAND_EXTRACT:
    case COMMAND_JUDGE:
    case COMMAND_ANNOTATE: break;
    }
    return true;
}

/* Something that would change what is found. */
static bool judges(const struct options *opt)
{
    return opt->policy || opt->strict || opt->idempotent_count > 0 || opt->session || opt->filter ||
           opt->since || opt->until || opt->max_ids > 0 || opt->profiles != PROFILE_DIVERGENCE ||
           opt->fail_on != SEV_ERROR || opt->fail_on_undecidable;
}

/* What the command takes, and whether this version has it. */
static bool check_command(struct parser *p)
{
    struct options *opt = p->opt;

    if (opt->command == COMMAND_EXTRACT || opt->command == COMMAND_JUDGE ||
        opt->command == COMMAND_ANNOTATE)
        return bad(p,
                   "%s is not in this version; sseaudit FILE... audits captures and logs at once",
                   opt->argv[1]);
    if (!allows(opt->command, opt->format))
        return bad(p, "--format %s is not in this version for this command; see sseaudit --help",
                   formats[opt->format - FORMAT_TEXT].text);
    if (opt->accept && opt->command != COMMAND_CORPUS)
        return bad(p, "--accept belongs to sseaudit corpus; remove it, or write sseaudit corpus "
                      "--accept DIR");
    if (opt->command == COMMAND_AUDIT && opt->file_count == 0)
        return bad(p, "no input: name a capture or a HAR, and the client's dispatch log; see "
                      "sseaudit --help");
    if (opt->command == COMMAND_CORPUS && opt->file_count == 0)
        return bad(p, "corpus: name the folder that holds the case folders");
    if (opt->command == COMMAND_CORPUS && judges(opt))
        return bad(p, "corpus: options of a case stand in its expect.json, as \"options\"; here "
                      "only --format, -o, --accept, -q and -v count");
    if (opt->command == COMMAND_RULES && opt->file_count > 0)
        return bad(p, "rules: takes no argument; for one rule write sseaudit explain %s",
                   opt->file[0].path);
    if (opt->command == COMMAND_EXPLAIN && opt->file_count != 1)
        return bad(p, "explain: name one rule; sseaudit rules lists them");
    if (opt->since && opt->until && opt->since >= opt->until)
        return bad(p, "--until is not after --since");
    return true;
}

enum options_result options_parse(int argc, char *const *argv, struct options *ret, FILE *err)
{
    struct parser p = { .opt = ret, .err = err };
    const struct word *command =
        argc > 1 ? word_find(commands, ARRAY_LEN(commands), slice_str(argv[1])) : NULL;
    enum options_result result;

    *ret = (struct options){
        .command = command ? (enum command)command->value : COMMAND_AUDIT,
        .argc = argc,
        .argv = argv,
        .profiles = PROFILE_DIVERGENCE,
        .fail_on = SEV_ERROR,
    };
    result = read_options(&p, argc, argv, command ? 1 : 0);
    if (result == OPTIONS_GO) {
        if (ret->format == FORMAT_NONE)
            ret->format = format_of_output(ret->output);
        if (!check_command(&p))
            result = OPTIONS_BAD;
    }
    if (result != OPTIONS_GO)
        options_release(ret);
    return result;
}

void options_release(struct options *opt)
{
    free(opt->file);
    free(opt->idempotent);
    *opt = (struct options){ 0 };
}

const char *profiles_text(unsigned mask)
{
    for (size_t i = 0; i < ARRAY_LEN(profiles); i++) {
        if ((unsigned)profiles[i].value == mask)
            return profiles[i].text;
    }
    return "none";
}
