/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the sources of variants, and lists the options of each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/device/device_enumeration.h"
#include "opencl/plan/kernel_info.h"
#include "variants.h"

#define LABEL_BYTES 160u

/* Sets *out to a label of the options, like "_op_add_2_float". */
static void label_make(char *out, const char *options)
{
    char text[KERNEL_OPTION_BYTES], *rest = NULL;
    out[0] = '\0';
    snprintf(text, sizeof(text), "%s", options);
    for (char *word = strtok_r(text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        const char *value = strchr(word, '=');
        size_t used = strlen(out);
        if (strncmp(word, "-D", 2) == 0)
            snprintf(out + used, LABEL_BYTES - used, "_%s",
                     value != NULL ? value + 1 : word + strlen("-D"));
    }
}

/* Writes the source of a kernel unless it exists, and prints the file and the
 * options, which rename the kernel. */
static bool variant_write(const char *directory,
                          const struct kernel_source *text)
{
    const struct kernel_info *kernel = text->kernel;
    char path[4096], label[LABEL_BYTES];
    snprintf(path, sizeof(path), "%s/%s", directory, kernel->file);
    label_make(label, text->options);
    printf("%s %s -D%s=%s%s\n", kernel->file, text->options, kernel->function,
           kernel->function, label);
    FILE *file = fopen(path, "wxe");
    if (file == NULL)
        return errno == EEXIST;
    bool written = fputs(kernel->source, file) >= 0;
    return fclose(file) == 0 && written;
}

bool variants_write(const char *directory, const struct keys *keys)
{
    /* The device for which keys_find plans. */
    struct platform_device hardware = {.correct_divide = true};
    struct kernel_source *texts = calloc(keys->chosen, sizeof(*texts));
    bool written = texts != NULL;
    for (uint32_t i = 0; written && i < keys->chosen; i++) {
        struct kernel_source *text = &texts[i];
        uint32_t same = 0;
        kernel_source_make(text, &keys->key[i], &hardware);
        if (strlen(text->options) + 1 >= sizeof(text->options)) {
            fprintf(stderr, "%s: the options exceed KERNEL_OPTION_BYTES\n",
                    text->kernel->function);
            written = false;
            break;
        }
        /* Different keys may have the same options. */
        while (texts[same].kernel != text->kernel ||
               strcmp(texts[same].options, text->options) != 0)
            same++;
        written = same < i || variant_write(directory, text);
    }
    free(texts);
    if (!written)
        fprintf(stderr, "cannot write the variants in %s\n", directory);
    return written;
}
