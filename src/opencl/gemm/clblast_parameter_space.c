/* SPDX-License-Identifier: Apache-2.0 */
/* CLBlast's parameters; see clblast_parameter_space.h. */
#include "opencl/gemm/clblast_parameter_space.h"

#include <stdio.h>
#include <string.h>

/* ---- what must hold ---- */

/* Where b divides a. */
static bool multiple(uint64_t a, uint64_t b)
{
    return b != 0 && a % b == 0;
}

/* Where b c / d is whole and divides a. */
static bool multiple_share(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return multiple(b * c, d) && multiple(a, b * c / d);
}

static bool holds(const struct family_limits *limits, uint64_t group,
                  uint64_t floats)
{
    /* Drivers may want a few bytes for themselves. */
    return group <= limits->group &&
           floats * sizeof(float) + 64 <= limits->local_bytes;
}

enum { GEMMK, KREG, KWG, KWI, MDIMA, MDIMC, MWG, NDIMB, NDIMC, NWG, SA, SB,
       STRM, STRN, VWM, VWN };

static bool xgemm_fits(const uint32_t *v, const struct family_limits *limits)
{
    /* More sums than this in a work-item do not stay in registers. */
    const uint64_t most_sums = 128;
    return multiple(v[KWG], v[KWI]) && multiple(v[MWG], v[MDIMC] * v[VWM]) &&
           multiple(v[NWG], v[NDIMC] * v[VWN]) &&
           multiple(v[MWG], v[MDIMA] * v[VWM]) &&
           multiple(v[NWG], v[NDIMB] * v[VWN]) &&
           multiple_share(v[KWG], v[MDIMC], v[NDIMC], v[MDIMA]) &&
           multiple_share(v[KWG], v[MDIMC], v[NDIMC], v[NDIMB]) &&
           v[MWG] * v[NWG] <= most_sums * v[MDIMC] * v[NDIMC] &&
           holds(limits, v[MDIMC] * v[NDIMC],
                 v[KWG] * (v[SA] * v[MWG] + v[SB] * v[NWG]));
}

enum { KWID, MDIMAD, MDIMCD, NDIMBD, NDIMCD, PADA, PADB, VWMD, VWND, WGD };

static bool direct_fits(const uint32_t *v, const struct family_limits *limits)
{
    return multiple(v[WGD], v[KWID]) &&
           multiple(v[WGD], v[MDIMCD] * v[VWMD]) &&
           multiple(v[WGD], v[NDIMCD] * v[VWND]) &&
           multiple(v[WGD], v[MDIMAD] * v[VWMD]) &&
           multiple(v[WGD], v[NDIMBD] * v[VWND]) &&
           multiple_share(v[WGD], v[MDIMCD], v[NDIMCD], v[MDIMAD]) &&
           multiple_share(v[WGD], v[MDIMCD], v[NDIMCD], v[NDIMBD]) &&
           holds(limits, v[MDIMCD] * v[NDIMCD],
                 v[WGD] * (2 * v[WGD] + v[PADA] + v[PADB]));
}

static bool plane_fits(const uint32_t *v, const struct family_limits *limits)
{
    return holds(limits, v[0] * v[1], 0);
}

enum { TRA_DIM, TRA_PAD, TRA_SHUFFLE, TRA_WPT };

static bool transpose_fits(const uint32_t *v,
                           const struct family_limits *limits)
{
    return holds(limits, v[TRA_DIM] * v[TRA_DIM],
                 (uint64_t)v[TRA_WPT] * v[TRA_WPT] * v[TRA_DIM] *
                     (v[TRA_DIM] + v[TRA_PAD]));
}

enum { PADTRA_PAD, PADTRA_TILE, PADTRA_WPT };

static bool padtranspose_fits(const uint32_t *v,
                              const struct family_limits *limits)
{
    uint64_t side = v[PADTRA_WPT] * v[PADTRA_TILE];
    return holds(limits, v[PADTRA_TILE] * v[PADTRA_TILE],
                 side * (side + v[PADTRA_PAD]));
}

static bool any_fits(const uint32_t *v, const struct family_limits *limits)
{
    (void)v;
    (void)limits;
    return true;
}

/* ---- the spaces ---- */

const struct family families[FAMILIES] = {
    [FAMILY_XGEMM] = {"Xgemm",
                      16,
                      {{"GEMMK", 1, {0}},
                       {"KREG", 1, {1}},
                       {"KWG", 2, {16, 32}},
                       {"KWI", 2, {2, 8}},
                       {"MDIMA", 3, {8, 16, 32}},
                       {"MDIMC", 3, {8, 16, 32}},
                       {"MWG", 4, {16, 32, 64, 128}},
                       {"NDIMB", 3, {8, 16, 32}},
                       {"NDIMC", 3, {8, 16, 32}},
                       {"NWG", 4, {16, 32, 64, 128}},
                       {"SA", 2, {0, 1}},
                       {"SB", 2, {0, 1}},
                       {"STRM", 2, {0, 1}},
                       {"STRN", 2, {0, 1}},
                       {"VWM", 4, {1, 2, 4, 8}},
                       {"VWN", 4, {1, 2, 4, 8}}},
                      xgemm_fits},
    [FAMILY_DIRECT] = {"XgemmDirect",
                       10,
                       {{"KWID", 3, {2, 8, 16}},
                        {"MDIMAD", 3, {8, 16, 32}},
                        {"MDIMCD", 3, {8, 16, 32}},
                        {"NDIMBD", 3, {8, 16, 32}},
                        {"NDIMCD", 3, {8, 16, 32}},
                        {"PADA", 2, {0, 1}},
                        {"PADB", 2, {0, 1}},
                        {"VWMD", 4, {1, 2, 4, 8}},
                        {"VWND", 4, {1, 2, 4, 8}},
                        {"WGD", 4, {8, 16, 32, 64}}},
                       direct_fits},
    [FAMILY_ROUTINE] = {"GemmRoutine",
                        1,
                        {{"XGEMM_MIN_INDIRECT_SIZE", 0, {0, 2048}}},
                        any_fits},
    [FAMILY_COPY] = {"Copy",
                     4,
                     {{"COPY_DIMX", 3, {8, 16, 32}},
                      {"COPY_DIMY", 3, {8, 16, 32}},
                      {"COPY_VW", 4, {1, 2, 4, 8}},
                      {"COPY_WPT", 4, {1, 2, 4, 8}}},
                     plane_fits},
    [FAMILY_PAD] = {"Pad",
                    4,
                    {{"PAD_DIMX", 3, {8, 16, 32}},
                     {"PAD_DIMY", 3, {8, 16, 32}},
                     {"PAD_WPTX", 3, {1, 2, 4}},
                     {"PAD_WPTY", 3, {1, 2, 4}}},
                    plane_fits},
    [FAMILY_TRANSPOSE] = {"Transpose",
                          4,
                          {{"TRA_DIM", 5, {4, 8, 16, 32, 64}},
                           {"TRA_PAD", 2, {0, 1}},
                           {"TRA_SHUFFLE", 2, {0, 1}},
                           {"TRA_WPT", 5, {1, 2, 4, 8, 16}}},
                          transpose_fits},
    [FAMILY_PADTRANSPOSE] = {"Padtranspose",
                             3,
                             {{"PADTRA_PAD", 2, {0, 1}},
                              {"PADTRA_TILE", 4, {8, 16, 32, 64}},
                              {"PADTRA_WPT", 5, {1, 2, 4, 8, 16}}},
                             padtranspose_fits},
};

enum family_id family_find(const char *name)
{
    uint32_t id = 0;
    while (id < FAMILIES && strcmp(families[id].name, name) != 0)
        id++;
    return (enum family_id)id;
}

static bool value_allowed(const struct parameter *parameter, uint32_t value)
{
    if (parameter->count == 0)
        return value >= parameter->values[0] && value <= parameter->values[1];
    for (uint32_t i = 0; i < parameter->count; i++)
        if (parameter->values[i] == value)
            return true;
    return false;
}

bool family_valid(enum family_id id, const struct parameter_set *set,
                  const struct family_limits *limits)
{
    const struct family *family = &families[id];
    for (uint32_t i = 0; i < family->count; i++)
        if (!value_allowed(&family->parameters[i], set->values[i]))
            return false;
    return family->fits(set->values, limits);
}

/* ---- text ---- */

/* One "NAME=1" and the spaces after it. */
static bool value_read(const struct family *family, const char **text,
                       uint32_t *out_index, uint32_t *out_value)
{
    size_t length = strcspn(*text, "=");
    uint32_t index = 0, value = 0;
    while (index < family->count &&
           (strlen(family->parameters[index].name) != length ||
            strncmp(family->parameters[index].name, *text, length) != 0))
        index++;
    const char *at = *text + length;
    if (index == family->count || *at++ != '=' || *at < '0' || *at > '9')
        return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (uint32_t)(*at - '0');
        if (value > 1000000)
            return false;
    }
    if (*at != ' ' && *at != '\0')
        return false;
    while (*at == ' ')
        at++;
    *text = at;
    *out_index = index;
    *out_value = value;
    return true;
}

bool family_read(enum family_id id, const char *text,
                 struct parameter_set *out)
{
    const struct family *family = &families[id];
    uint32_t seen = 0;
    memset(out, 0, sizeof(*out));
    while (*text != '\0') {
        uint32_t index, value;
        if (!value_read(family, &text, &index, &value) ||
            (seen >> index & 1u) != 0)
            return false;
        seen |= 1u << index;
        out->values[index] = value;
    }
    return seen == (1u << family->count) - 1;
}

void family_write(enum family_id id, const struct parameter_set *set,
                  char out_text[FAMILY_TEXT_BYTES])
{
    const struct family *family = &families[id];
    size_t used = 0;
    out_text[0] = '\0';
    for (uint32_t i = 0; i < family->count && used < FAMILY_TEXT_BYTES; i++)
        used += (size_t)snprintf(out_text + used, FAMILY_TEXT_BYTES - used,
                                 "%s%s=%u", i > 0 ? " " : "",
                                 family->parameters[i].name, set->values[i]);
}

bool family_same(enum family_id id, const struct parameter_set *a,
                 const struct parameter_set *b)
{
    return memcmp(a->values, b->values,
                  families[id].count * sizeof(a->values[0])) == 0;
}
