/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads ranges of page-locked host memory into the input of a batch, as whole lines of 128 bytes, the size of
 * one bus request. Each warp gets the same number of consecutive lines. It finds the range of its first line
 * by bisection, and keeps several independent reads in flight.
 */

#define GATHER_WORDS (LEAT_JOB_LINE / 16) /* 16-byte words per line */
#define GATHER_DEEP 4                     /* reads in flight per lane */

/* Finds the range that contains line `line`: the last one that does not begin after it. */
DEVICE uint32_t find_range(const leat_job *job, uint32_t line)
{
    uint32_t low = 0, high = job->range_count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (job->ranges[middle].first <= line) low = middle;
        else high = middle;
    }
    return low;
}

/* Copies words of 16 bytes, by one warp. */
DEVICE void gather_words(const sixteen *from, sixteen *to, uint32_t words)
{
    LANES
    {
        for (uint32_t i = (uint32_t)lane; i < words; i += 32 * GATHER_DEEP) {
            sixteen word[GATHER_DEEP];
            UNROLL
            for (uint32_t k = 0; k < GATHER_DEEP; k++)
                if (i + 32 * k < words) word[k] = load_host(from + i + 32 * k);
            UNROLL
            for (uint32_t k = 0; k < GATHER_DEEP; k++)
                if (i + 32 * k < words) to[i + 32 * k] = word[k];
        }
    }
}

/* Copies part `part` of `parts` of all lines. */
DEVICE void gather_part(const leat_job *job, uint32_t part, uint32_t parts)
{
    uint32_t line = (uint32_t)((uint64_t)job->lines * part / parts);
    const uint32_t end = (uint32_t)((uint64_t)job->lines * (part + 1) / parts);
    if (line == end) return;
    uint32_t at = find_range(job, line);
    leat_job_range range = job->ranges[at];
    while (line < end) {
        const leat_job_range next = job->ranges[at + 1 < job->range_count ? ++at : at];
        const uint32_t skip = line - range.first, left = range.lines - skip;
        const uint32_t lines = left < end - line ? left : end - line;
        gather_words((const sixteen *)range.from + skip * GATHER_WORDS,
                     (sixteen *)range.to + skip * GATHER_WORDS, lines * GATHER_WORDS);
        line += lines;
        range = next;
    }
}
