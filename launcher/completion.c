#include "launcher/completion.h"

#include "launcher/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

/*
 * Print the words of a metavar that are values themselves, which are those
 * without capitals: "auto cpu gpu" of "N|auto|cpu|gpu". Returns how many; file
 * may be NULL.
 */
static size_t print_choices(const char *metavar, FILE *file)
{
    const char *word = metavar;
    size_t n = 0;

    while (word != NULL && strchr(metavar, '|') != NULL) {
        size_t len = strcspn(word, "|");
        bool is_value = true;
        size_t i;

        for (i = 0; i < len; i++) {
            is_value = is_value && !isupper((unsigned char)word[i]);
        }
        if (is_value && file != NULL) {
            (void)fprintf(file, "%s%.*s", n > 0 ? " " : "", (int)len, word);
        }
        n += is_value;
        word = word[len] == '|' ? word + len + 1 : NULL;
    }
    return n;
}

static bool has_choices(const struct option_row *row)
{
    return row->metavar != NULL && print_choices(row->metavar, NULL) > 0;
}

static bool is_directory(const struct option_row *row)
{
    return row->metavar != NULL && strcmp(row->metavar, "DIR") == 0;
}

/* --- bash --------------------------------------------------------------- */

static void bash_case(const struct option_row *row, FILE *file)
{
    if (is_directory(row)) {
        (void)fprintf(file,
                      "    --%s) mapfile -t COMPREPLY < <(compgen -d -- "
                      "\"$cur\"); return ;;\n",
                      row->name);
    } else if (has_choices(row)) {
        (void)fprintf(file, "    --%s) values=\"", row->name);
        (void)print_choices(row->metavar, file);
        (void)fputs("\" ;;\n", file);
    } else if (row->kind == OPTION_VALUE) {
        (void)fprintf(file, "    --%s) return ;;\n", row->name);
    }
}

static void bash_print(FILE *file)
{
    int id;

    (void)fputs("# source <(flaunch --print-completion bash)\n"
                "_flaunch() {\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} values=\n"
                "    local prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                "    COMPREPLY=()\n"
                "    # bash takes --option=value apart at the sign.\n"
                "    [[ $cur == = ]] && cur=\n"
                "    [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
                "    case ${prev//_/-} in\n",
                file);
    for (id = 0; id < N_OPTIONS; id++) {
        bash_case(&option_table[id], file);
    }
    (void)fputs("    *) [[ $cur == -* ]] && values=\"", file);
    for (id = 0; id < N_OPTIONS; id++) {
        (void)fprintf(file, "%s--%s", id > 0 ? " " : "", option_table[id].name);
    }
    (void)fputs("\" ;;\n"
                "    esac\n"
                "    mapfile -t COMPREPLY < <(compgen -W \"$values\" -- "
                "\"$cur\")\n"
                "}\n"
                "complete -o bashdefault -o default -F _flaunch flaunch\n",
                file);
}

/* --- zsh ---------------------------------------------------------------- */

/* In single quotes, where [ ] : and \ mean something to _arguments. */
static void zsh_text(const char *text, FILE *file)
{
    for (; *text != '\0'; text++) {
        if (strchr("[]:\\", *text) != NULL) {
            (void)fputc('\\', file);
        }
        (void)fputs(*text == '\'' ? "'\\''" : (char[]){ *text, '\0' }, file);
    }
}

static void zsh_value(const struct option_row *row, FILE *file)
{
    (void)fputc(':', file);
    zsh_text(row->metavar, file);
    (void)fputc(':', file);
    if (is_directory(row)) {
        (void)fputs("_directories", file);
    } else if (has_choices(row)) {
        (void)fputc('(', file);
        (void)print_choices(row->metavar, file);
        (void)fputc(')', file);
    }
}

static void zsh_row(const struct option_row *row, FILE *file)
{
    bool letter = row->letter != '\0';

    if (letter) {
        (void)fprintf(file, "        {-%c%s,--%s%s}'[", row->letter,
                      row->kind == OPTION_VALUE ? "+" : "", row->name,
                      row->kind == OPTION_VALUE ? "=" : "");
    } else {
        (void)fprintf(file, "        '--%s%s[", row->name,
                      row->kind == OPTION_VALUE ? "=" : "");
    }
    zsh_text(row->help, file);
    (void)fputc(']', file);
    if (row->kind == OPTION_VALUE) {
        zsh_value(row, file);
    }
    (void)fputs("' \\\n", file);
}

static void zsh_print(FILE *file)
{
    int id;

    (void)fputs("#compdef flaunch\n"
                "# source <(flaunch --print-completion zsh)\n"
                "_flaunch() {\n"
                "    _arguments -s -S \\\n",
                file);
    for (id = 0; id < N_OPTIONS; id++) {
        zsh_row(&option_table[id], file);
    }
    (void)fputs("        '(-)1:program:_files' \\\n"
                "        '*::arguments:_files'\n"
                "}\n"
                "compdef _flaunch flaunch\n",
                file);
}

/* --- fish --------------------------------------------------------------- */

static void fish_text(const char *text, FILE *file)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\') {
            (void)fputc('\\', file);
        }
        (void)fputc(*text, file);
    }
}

static void fish_row(const struct option_row *row, FILE *file)
{
    (void)fprintf(file, "complete -c flaunch -l %s", row->name);
    if (row->letter != '\0') {
        (void)fprintf(file, " -s %c", row->letter);
    }
    (void)fputs(" -d '", file);
    fish_text(row->help, file);
    (void)fputc('\'', file);
    if (row->kind == OPTION_VALUE) {
        (void)fputs(is_directory(row) ? " -r" : " -x", file);
    }
    if (has_choices(row)) {
        (void)fputs(" -a '", file);
        (void)print_choices(row->metavar, file);
        (void)fputc('\'', file);
    }
    (void)fputc('\n', file);
}

static void fish_print(FILE *file)
{
    int id;

    (void)fputs("# flaunch --print-completion fish | source\n", file);
    for (id = 0; id < N_OPTIONS; id++) {
        fish_row(&option_table[id], file);
    }
}

int completion_print(const char *shell, FILE *file)
{
    if (strcmp(shell, "bash") == 0) {
        bash_print(file);
    } else if (strcmp(shell, "zsh") == 0) {
        zsh_print(file);
    } else if (strcmp(shell, "fish") == 0) {
        fish_print(file);
    } else {
        return -EINVAL;
    }
    return 0;
}
