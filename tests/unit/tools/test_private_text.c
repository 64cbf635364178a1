/* SPDX-License-Identifier: Apache-2.0 */
/* Private data that reports must not contain. */
#include <config.h>

#include "../../../tools/cl-probe/private_text.h"

#include <stdlib.h>
#include <string.h>

#include "../../support/test_list.h"

static struct private_names names;

static void setup(void)
{
    memset(&names, 0, sizeof names);
    private_names_add(names.homes, "/usr/home/ann lee");
    private_names_add(names.homes, "/home/ann");
    private_names_add(names.users, "ann");
    private_names_add(names.hosts, "box-7.example.org");
    private_names_add(names.hosts, "box-7");
}

static void teardown(void)
{
    private_names_destroy(&names);
}

static void expect(const char *text, const char *expected)
{
    char *result = private_text_remove(&names, text);

    ck_assert_str_eq(result, expected);
    free(result);
}

TEST(test_paths_outside_the_system_are_removed)
{
    expect("/home/ann", "[path]");
    expect("/home/anna/x.so: not found", "[path]: not found");
    expect("reads \"/home/ann/My Files/x.so\" twice", "reads \"[path]\" twice");
    expect("a=/srv/x,b=/tmp/y;c", "a=[path],b=[path];c");
    expect("/home/ann/x is bad, so is (/mnt/y z)", "[path], so is ([path])");
    expect("/usr/home/ann lee/x: bad", "[path]: bad");
    expect("/usr/lib/../../home/x", "[path]");
    expect("file:///home/ann/x", "file:[path]");
    expect("/usr/lib//home/ann/x", "/usr/lib/[path]");
    expect("\xff/home/ann", "\xff/home/[user]");
}

TEST(test_paths_of_the_system_are_kept)
{
    const char *kept[] = {"/etc/OpenCL/vendors/pocl.icd: libpocl.so.2",
                          "/usr/lib/x86_64-linux-gnu/libOpenCL.so.1",
                          "/opt/rocm/lib/libamdocl64.so", "/dev/dri/renderD128",
                          "3 GB/s, 1/2, and / alone", ""};

    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        expect(kept[i], kept[i]);
}

TEST(test_names_are_removed_as_words)
{
    expect("ann: annual ann_1 ann-1 Ann", "[user]: annual ann_1 [user]-1 Ann");
    expect("on box-7.example.org, box-7, box-77", "on [host], [host], box-77");
    expect("/usr/share/ann/x", "/usr/share/[user]/x");
    expect("GPU-01234567-89ab-cdef-0123-456789abcdef",
           "GPU-[uuid]");
    expect("01234567-89ab-cdef-0123-456789abcdef0",
           "01234567-89ab-cdef-0123-456789abcdef0");
}

TEST(test_common_words_are_no_names)
{
    static const char *const words[] = {"root", "localhost", "cpu", "gpu",
                                        "opencl", "/", "", "x"};
    char *list[PRIVATE_NAMES] = {NULL};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        private_names_add(list, words[i]);
    private_names_add(list, NULL);
    ck_assert_ptr_null(list[0]);
    for (int i = 0; i < 3; i++)
        private_names_add(list, "ann");
    ck_assert_str_eq(list[0], "ann");
    ck_assert_ptr_null(list[1]);
    free(list[0]);
}

TEST(test_json_is_copied_without_private_data)
{
    json_t *value = json_pack(
        "{s:s, s:s, s:{s:[s, i, f, b, n]}}", "uuid", "u", "pci", "p", "a", "b",
        "/home/ann/x", 3, 2.5, 1);
    json_t *expected = json_pack("{s:{s:[s, i, f, b, n]}}", "a", "b", "[path]",
                                 3, 2.5, 1);
    json_t *result = private_json_remove(&names, value);

    ck_assert(json_equal(result, expected));
    json_decref(value);
    json_decref(expected);
    json_decref(result);
}

TEST_MAIN(tests_run_with("private text", setup, teardown))
