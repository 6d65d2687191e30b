/* SPDX-License-Identifier: Apache-2.0
 *
 * The origin of a page: see origin.h.
 */
#include "doctor/origin.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <leat/machine.h>
#include <leat/version.h>

#include "base/str.h"

#define COMMAND_BYTES 400 /* longer commands are truncated */
#define DOT " \xc2\xb7 "

/* Returns the command line as "leat doctor …", however it was started: /usr/bin/leat, python3 -P -m leat. */
static const char *without_path(const char *words)
{
    const char *module = strstr(words, " -m leat ");
    const size_t first = strcspn(words, " ");
    if (module != NULL) return module + strlen(" -m ");
    if (first > 5 && strncmp(words + first - 5, "/leat", 5) == 0) return words + first - 4;
    return words;
}

/* Appends the words of the command line, separated by blanks. */
static void put_command(leat__buf *out)
{
    char words[COMMAND_BYTES], shown[4 * COMMAND_BYTES];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, words, sizeof words - 1);
    if (fd >= 0) close(fd);
    if (n <= 0) return;
    while (n > 0 && words[n - 1] == '\0') n--;
    for (ssize_t i = 0; i < n; i++)
        if (words[i] == '\0') words[i] = ' ';
    words[n] = '\0';
    leat__str_hide_secrets(words, sizeof words);
    leat__buf_printf(out, "%s" DOT, leat__str_shown(without_path(words), shown, sizeof shown));
}

static void put_machine(leat__buf *out)
{
    leat_machine m;
    char host[64], text[24];
    if (leat_machine_read(&m, sizeof m, NULL) != 0) return;
    if (gethostname(host, sizeof host) != 0) snprintf(host, sizeof host, "this machine");
    host[sizeof host - 1] = '\0';
    leat__buf_printf(out, "%s: %u CPU%s", host, m.cpus_usable, m.cpus_usable == 1 ? "" : "s");
    if (m.cpu_model[0] != '\0') leat__buf_printf(out, " (%s)", m.cpu_model);
    leat__buf_printf(out, ", %s" DOT, leat__format_bytes(m.memory_limit_bytes, text, sizeof text));
}

void leat__origin_text(leat__buf *out)
{
    time_t now = time(NULL);
    struct tm parts;
    char date[32];
    put_command(out);
    put_machine(out);
    if (gmtime_r(&now, &parts) != NULL && strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &parts) > 0)
        leat__buf_printf(out, "%s" DOT, date);
    leat__buf_printf(out, "leat %s", leat_version());
}
