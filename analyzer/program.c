/* program.c - see program.h. */
#include "program.h"

#include "catalogue.h"
#include "corpus.h"
#include "output.h"
#include "report.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static enum exit_status judge(const struct options *opt, const struct policy *policy, FILE *to,
                              bool color, FILE *err)
{
    struct audit *a = audit_run(opt, err);
    enum exit_status status;

    if (!a)
        return EXIT_USAGE;
    struct findings *f = rules_run(a->model, opt->profiles, policy_thresholds(policy));
    policy_apply(policy, f);
    struct report *r = report_new(opt, a, f, policy);
    status = report_has_session(r, err) ? report_status(r) : EXIT_USAGE;
    if (status != EXIT_USAGE && (!opt->quiet || opt->format != FORMAT_TEXT))
        report_write(r, to, color);
    report_free(r);
    findings_free(f);
    audit_free(a);
    return status;
}

enum exit_status program_audit(const struct options *opt, FILE *to, bool color, FILE *err)
{
    struct policy *policy = policy_load(opt->policy, err);
    enum exit_status status;

    if (!policy)
        return EXIT_USAGE;
    status = judge(opt, policy, to, color, err);
    policy_free(policy);
    return status;
}

static bool wants_color(const struct options *opt)
{
    const char *term = getenv("TERM");

    if (opt->color != WHEN_AUTO)
        return opt->color == WHEN_ALWAYS;
    return !opt->output && isatty(STDOUT_FILENO) == 1 && !getenv("NO_COLOR") && term &&
           strcmp(term, "dumb") != 0;
}

static enum exit_status run_command(const struct options *opt, FILE *to)
{
    bool color = wants_color(opt);

    switch (opt->command) {
    case COMMAND_RULES: catalogue_list(to, opt->format, color); return EXIT_CLEAN;
    case COMMAND_EXPLAIN:
        return catalogue_explain(opt->file[0].path, to, color, stderr) ? EXIT_CLEAN : EXIT_USAGE;
    case COMMAND_CORPUS: return corpus_run(opt, to, stderr);
    case COMMAND_AUDIT:
    case COMMAND_EXTRACT:
    case COMMAND_JUDGE:
    case COMMAND_ANNOTATE: break;
    }
    return program_audit(opt, to, color, stderr);
}

static enum exit_status run(const struct options *opt)
{
    struct output *out = output_open(opt->output, stderr);
    enum exit_status status;

    if (!out)
        return EXIT_USAGE;
    status = run_command(opt, out->to);
    if (status == EXIT_USAGE) {
        output_drop(out);
        return status;
    }
    return output_close(out, stderr) ? status : EXIT_INCOMPLETE;
}

enum exit_status program_run(int argc, char *const *argv)
{
    struct options opt;
    enum exit_status status;

    (void)signal(SIGPIPE, SIG_IGN); /* output.c takes care of a closed pipe */
    switch (options_parse(argc, argv, &opt, stderr)) {
    case OPTIONS_BAD: return EXIT_USAGE;
    case OPTIONS_DONE: return EXIT_CLEAN;
    case OPTIONS_GO: break;
    }
    status = run(&opt);
    options_release(&opt);
    return status;
}
