/* SPDX-License-Identifier: Apache-2.0
 *
 * The small parts of include/leat/text.h: lists of names, scores and signatures of texts in memory.
 */
#include <leat/text.h>

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "text/minhash.h"
#include "text/modify.h"
#include "text/rule.h"
#include "text/sketch.h"
#include "text/unicode.h"

int leat_text_profile(uint32_t index, const char **name, const char **source)
{
    leat__profile p;
    LEAT_REQUIRE(name != NULL && source != NULL, NULL);
    if (!leat__profile_at(index, &p)) return LEAT_ENOENT;
    *name = p.name;
    *source = p.source;
    return 0;
}

int leat_text_score(uint32_t index, const char **name, const char **help)
{
    LEAT_REQUIRE(name != NULL && help != NULL, NULL);
    if (index >= leat__score_total) return LEAT_ENOENT;
    *name = leat__scores[index].name;
    *help = leat__scores[index].help;
    return 0;
}

int leat_text_modifier(uint32_t index, const char **name, const char **help)
{
    LEAT_REQUIRE(name != NULL && help != NULL, NULL);
    return leat__modifier_at(index, name, help) ? 0 : LEAT_ENOENT;
}

double leat_dedup_chance(double similarity, uint32_t bands, uint32_t rows)
{
    return leat__sketch_curve(similarity, bands, rows);
}

static int check_utf8(const char *text, size_t len, leat_error *err)
{
    size_t good = leat__utf8_check((const uint8_t *)text, len);
    if (good == len) return 0;
    leat__fail(err, LEAT_EDATA, "the text is not valid UTF-8 at byte %zu", good);
    leat__error_at(err, NULL, -1, (int64_t)good);
    return LEAT_EDATA;
}

struct leat_text_scorer {
    leat__scorer s;
};

int leat_text_scorer_open(leat_text_scorer **scorer, leat_error *err)
{
    LEAT_REQUIRE(scorer != NULL, err);
    *scorer = LEAT_NEW(CURATE, leat_text_scorer);
    if (!*scorer) return leat__fail_nomem(err, sizeof **scorer, "a scorer");
    int rc = leat__scorer_init(&(*scorer)->s, err);
    if (rc != 0) leat_text_scorer_close(scorer);
    return rc;
}

void leat_text_scorer_close(leat_text_scorer **scorer)
{
    if (scorer == NULL || *scorer == NULL) return;
    leat__scorer_reset(&(*scorer)->s);
    leat__free(*scorer);
    *scorer = NULL;
}

int leat_text_scorer_run(leat_text_scorer *scorer, const char *text, size_t len, double *out, uint32_t count,
                         leat_error *err)
{
    LEAT_REQUIRE(scorer != NULL && (text != NULL || len == 0) && (out != NULL || count == 0), err);
    leat__scorer *s = &scorer->s;
    LEAT_TRY(check_utf8(text, len, err));
    LEAT_TRY(leat__scorer_reserve(s, len, err));
    if (len > 0) memcpy(s->text, text, len);
    LEAT_TRY(leat__scorer_run(s, len, err));
    for (uint32_t i = 0; i < LEAT_MIN(count, leat__score_total); i++)
        out[i] = leat__score_value(i, &s->counts);
    return 0;
}

struct leat_text_signer {
    leat__minhasher m;
};

int leat_text_signer_open(leat_text_signer **signer, uint32_t compatible, uint32_t words, uint32_t chars,
                          uint32_t values, leat_error *err)
{
    LEAT_REQUIRE(signer != NULL, err);
    *signer = NULL;
    if (compatible < LEAT_COMPATIBLE_DATASKETCH || compatible > LEAT_COMPATIBLE_DATATROVE)
        return leat__fail(err, LEAT_EINVAL, "compatible: %u is not valid", compatible);
    if (values == 0 || values > LEAT__SKETCH_MAX)
        return leat__fail(err, LEAT_EINVAL, "%u values: 1 to %d are possible", values, LEAT__SKETCH_MAX);
    if ((words > 0) == (chars > 0))
        return leat__fail(err, LEAT_EINVAL, "shingles are of words or of characters: give one of them");
    if (compatible == LEAT_COMPATIBLE_DATATROVE && chars > 0)
        return leat__fail(err, LEAT_EINVAL, "datatrove has shingles of words, not of characters");
    *signer = LEAT_NEW(CURATE, leat_text_signer);
    if (!*signer) return leat__fail_nomem(err, sizeof **signer, "a signer");
    int rc = leat__minhasher_init(&(*signer)->m, compatible, words, chars, values, err);
    if (rc != 0) leat_text_signer_close(signer);
    return rc;
}

void leat_text_signer_close(leat_text_signer **signer)
{
    if (signer == NULL || *signer == NULL) return;
    leat__minhasher_reset(&(*signer)->m);
    leat__free(*signer);
    *signer = NULL;
}

int leat_text_signer_run(leat_text_signer *signer, const char *text, size_t len, uint64_t *out,
                         uint32_t *shingles, leat_error *err)
{
    LEAT_REQUIRE(signer != NULL && (text != NULL || len == 0) && out != NULL && shingles != NULL, err);
    LEAT_TRY(check_utf8(text, len, err));
    LEAT_TRY(leat__minhasher_reserve(&signer->m, len, err));
    if (len > 0) memcpy(signer->m.text, text, len);
    *shingles = leat__minhasher_sign(&signer->m, len, out);
    return 0;
}
