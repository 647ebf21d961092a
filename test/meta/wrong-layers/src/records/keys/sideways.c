/* For the test of scripts/check-layers: a subject of records that uses one which it must not know. */
#include "people/person_read.h"
