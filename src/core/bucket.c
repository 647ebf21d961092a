#include "core/bucket.h"

#include "base/check.h"
#include "base/crc32.h"

uint8_t bucket_of_text(struct text t)
{
    return (uint8_t)crc32_of(t);
}

uint8_t bucket_of_account(const struct id *account)
{
    CHECK(account->text[0]);
    return bucket_of_text(id_text(account));
}
