/* A program that checks keys by the shared table of the node on its host (reader.c, an image of its own), and what the
 * simulation does for it (readers.c). */
#pragma once
#include "chatelaine/check.h"

enum { SIM_READER_BATCH = 8 };

/* A check begins: of the secret that is returned; NULL: there is none. place: below SIM_READER_BATCH, the reader's own
 * for this check. */
const char *sim_reader_begin(unsigned reader, unsigned place);
/* It ends. scopes: that were asked for. who: NULL if the table did not accept the key, which is no verdict. */
void sim_reader_end(unsigned reader, unsigned place, uint32_t scopes, const struct chatelaine_principal *who);
/* The reader does nothing for so long. */
void sim_reader_wait(uint64_t ns);
