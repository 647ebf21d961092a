#include "core/device_seal.h"

#include "base/check.h"

static void seal_add(struct seal *seal, struct text part)
{
    CHECK(seal->record.count < SEAL_PARTS_MAX);
    seal->parts[seal->record.count++] = part;
}

static void seal_begin(struct seal *seal, enum record_kind kind, const struct sealed_device *sealed)
{
    struct buf out = BUF_OVER(seal->scopes, sizeof seal->scopes);

    buf_append_u64(&out, sealed->scopes);
    seal->record = (struct record_parts){.kind = kind, .parts = seal->parts};
    seal_add(seal, (struct text){(const char *)sealed->code_digest, KEYRING_DIGEST_BYTES});
    seal_add(seal, sealed->name);
    seal_add(seal, buf_text(&out));
}

void seal_enrolment(struct seal *seal, const struct sealed_device *sealed,
                    const uint8_t user_code_digest[KEYRING_DIGEST_BYTES])
{
    seal_begin(seal, RECORD_ENROLMENT, sealed);
    seal_add(seal, (struct text){(const char *)user_code_digest, KEYRING_DIGEST_BYTES});
    seal_add(seal, sealed->client);
}

void seal_approval(struct seal *seal, const struct sealed_device *sealed, const struct id *account,
                   const struct id *user)
{
    seal_begin(seal, RECORD_APPROVAL, sealed);
    seal_add(seal, id_text(account));
    seal_add(seal, id_text(user));
    seal_add(seal, sealed->client);
}
