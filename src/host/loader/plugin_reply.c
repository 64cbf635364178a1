/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces invalid values that plugins return; see plugin_reply.h. */
#include <config.h>

#include "host/loader/plugin_reply.h"

const char *plugin_reply_error(const struct tandem_backend *vtable)
{
    const char *text = vtable->last_error();

    return text != NULL && text[0] != '\0' ? text : "the plugin gave no reason";
}

enum tandem_status plugin_reply_sanitize_status(enum tandem_status status)
{
    return (unsigned)status <= TANDEM_FAILED ? status : TANDEM_FAILED;
}

size_t utf8_character_bytes(const unsigned char *text)
{
    static const struct {
        unsigned char first, last, min_second, max_second;
        size_t bytes;
    } kinds[] = {
        /* The second byte's range excludes overlong UTF-8 forms, surrogates and
         * values above U+10FFFF. */
        {0x20, 0x7e, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2},
        {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
        {0xf4, 0xf4, 0x80, 0x8f, 4},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (text[0] < kinds[i].first || text[0] > kinds[i].last)
            continue;
        if (kinds[i].bytes > 1 &&
            (text[1] < kinds[i].min_second || text[1] > kinds[i].max_second))
            return 0;
        for (size_t j = 2; j < kinds[i].bytes; j++) {
            if ((text[j] & 0xc0) != 0x80)
                return 0;
        }
        return kinds[i].bytes;
    }
    return 0;
}

static void text_sanitize(char *text, size_t bytes)
{
    unsigned char *at = (unsigned char *)text;

    text[bytes - 1] = '\0';
    while (*at != '\0') {
        const size_t length = utf8_character_bytes(at);

        if (length == 0)
            *at = '?';
        at += length > 0 ? length : 1;
    }
}

void plugin_reply_sanitize_info(struct tandem_device_info *info, uint32_t index)
{
    info->struct_size = sizeof(*info);
    text_sanitize(info->name, sizeof(info->name));
    text_sanitize(info->vendor, sizeof(info->vendor));
    text_sanitize(info->platform, sizeof(info->platform));
    text_sanitize(info->driver_version, sizeof(info->driver_version));
    text_sanitize(info->pci_address, sizeof(info->pci_address));
    text_sanitize(info->extensions, sizeof(info->extensions));
    text_sanitize(info->quirks, sizeof(info->quirks));
    if (info->kind < TANDEM_DEVICE_CPU ||
        info->kind > TANDEM_DEVICE_ACCELERATOR)
        info->kind = TANDEM_DEVICE_ACCELERATOR;
    /* A duplicate device must have a greater index than its original. */
    if (info->duplicate_of < -1 || info->duplicate_of >= (int64_t)index)
        info->duplicate_of = -1;
}
