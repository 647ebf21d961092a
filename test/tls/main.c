/* tls_load checks RATE CONNECTIONS SECONDS PORT...   RATE a second in all, on open connections, each a thread
 * tls_load resume|full COUNT PORT...                 a connection for each request, at one port after the other
 * tls_load idle COUNT PORT                           connections that stay open after a request, until SIGTERM
 * tls_load flood SECONDS FULL HALF GARBAGE STALLED PORT   that many threads for each kind of handshake, see flood.c
 *
 * What it asks, and whom it trusts, is in the environment: see client.h. SIGTERM ends a measurement early. Prints
 * "name=value" pairs. For scripts/tls. */
#include "modes.h"

#include "base/text.h"
#include <stdio.h>
#include <stdlib.h>

static const struct mode {
    const char *name;
    int numbers;
    bool (*run)(const struct mode_arguments *arguments);
} MODES[] = {{"checks", 3, mode_checks},
             {"resume", 1, mode_resume},
             {"full", 1, mode_full},
             {"idle", 1, mode_idle},
             {"flood", 5, mode_flood}};

static bool read_arguments(const struct mode *mode, int count, char **words, struct mode_arguments *ret_arguments)
{
    int ports = count - mode->numbers;
    uint64_t port;

    if (ports < 1 || ports > PORTS_MAX)
        return false;
    for (int i = 0; i < mode->numbers; i++)
        if (!text_to_u64(text_of(words[i]), ARGUMENT_MAX, &ret_arguments->numbers[i]))
            return false;
    for (int i = 0; i < ports; i++) {
        if (!text_to_u64(text_of(words[mode->numbers + i]), UINT16_MAX, &port))
            return false;
        ret_arguments->ports[i] = (uint16_t)port;
    }
    ret_arguments->port_count = (size_t)ports;
    return true;
}

int main(int argc, char **argv)
{
    struct mode_arguments arguments = {0};

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; argc >= 2 && i < sizeof MODES / sizeof *MODES; i++)
        if (strcmp(argv[1], MODES[i].name) == 0 && read_arguments(&MODES[i], argc - 2, argv + 2, &arguments))
            return MODES[i].run(&arguments) ? EXIT_SUCCESS : EXIT_FAILURE;
    fputs("usage: tls_load checks RATE CONNECTIONS SECONDS PORT... | resume COUNT PORT... | full COUNT PORT... |\n"
          "       idle COUNT PORT | flood SECONDS FULL HALF GARBAGE STALLED PORT\n",
          stderr);
    return EXIT_FAILURE;
}
