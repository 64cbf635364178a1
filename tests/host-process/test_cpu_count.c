/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the CPU quotas of control groups from directory trees that look like
 * the kernel's.
 */
#include <config.h>

#include <string.h>

#include "common/cpu_count.h"
#include "unit/host/support.h"

/* Writes a file in the scratch directory and creates its parent directories. */
static void tree_write(const char *path, const char *text)
{
    for (const char *at = path; (at = strchr(at, '/')) != NULL; at++)
        directory_make(scratch_path("root/%.*s", (int)(at - path), path));
    file_write(scratch_path("root/%s", path), text);
}

#define GROUP "proc/self/cgroup"
#define V2 "sys/fs/cgroup/"
#define V1 "sys/fs/cgroup/cpu/jobs/"
#define V1_BOTH "sys/fs/cgroup/cpu,cpuacct/jobs/"
#define OTHERS "12:cpuset:/x\n4:cpu,cpuacct:/jobs/7\n1:name=systemd:/\n"

/* Directory trees: paths and texts of files, and the quota of 64 CPUs. */
static const struct {
    uint32_t processors;
    const char *files[5][2];
} trees[] = {
    {64, {{NULL}}},
    {64, {{GROUP, ""}}},
    {64, {{GROUP, "nonsense\n::\n0:\n0::/x\n"}}},
    /* Version 2. */
    {64, {{GROUP, "0::/\n"}, {V2 "cpu.max", "max 100000\n"}}},
    {1, {{GROUP, "0::/\n"}, {V2 "cpu.max", "100000 100000\n"}}},
    {2, {{GROUP, "0::/\n"}, {V2 "cpu.max", "100001 100000\n"}}},
    {1, {{GROUP, "0::/\n"}, {V2 "cpu.max", "1000 100000\n"}}},
    {64, {{GROUP, "0::/\n"}, {V2 "cpu.max", "6400000 100000\n"}}},
    {64, {{GROUP, "0::/\n"}, {V2 "cpu.max", "9223372036854775807 1\n"}}},
    {64, {{GROUP, "0::/\n"}, {V2 "cpu.max", "-1 100000\n"}}},
    {64, {{GROUP, "0::/\n"}, {V2 "cpu.max", "0 100000\n"}}},
    {64, {{GROUP, "0::/\n"}, {V2 "cpu.max", "100000 0\n"}}},
    {64, {{GROUP, "0::/\n"}, {V2 "cpu.max", "100000\n"}}},
    {64, {{GROUP, "0::/\n"}, {V2 "cpu.max", ""}}},
    {64, {{GROUP, "0::/\n"}, {V2 "cpu.max", "rubbish"}}},
    /* The quotas of parent directories apply, too; the smallest one counts. */
    {3,
     {{GROUP, "0::/a/b\n"},
      {V2 "a/b/cpu.max", "max 100000\n"},
      {V2 "a/cpu.max", "300000 100000\n"}}},
    {3,
     {{GROUP, "0::/a/b\n"},
      {V2 "a/b/cpu.max", "700000 100000\n"},
      {V2 "a/cpu.max", "300000 100000\n"}}},
    {2,
     {{GROUP, "0::/a/b\n"},
      {V2 "a/b/cpu.max", "150000 100000\n"},
      {V2 "a/cpu.max", "300000 100000\n"}}},
    /* The quota of another group does not apply. */
    {64, {{GROUP, "0::/a/b\n"}, {V2 "a/c/cpu.max", "100000 100000\n"}}},
    /* In a container that sees the machine's path, but only its own mount. */
    {4,
     {{GROUP, "0::/docker/0123456789abcdef\n"},
      {V2 "cpu.max", "400000 100000\n"}}},
    /* Version 1. */
    {64,
     {{GROUP, OTHERS},
      {V1 "7/cpu.cfs_quota_us", "-1\n"},
      {V1 "7/cpu.cfs_period_us", "100000\n"}}},
    {3,
     {{GROUP, OTHERS},
      {V1 "7/cpu.cfs_quota_us", "210000\n"},
      {V1 "7/cpu.cfs_period_us", "100000\n"}}},
    {3,
     {{GROUP, OTHERS},
      {V1_BOTH "7/cpu.cfs_quota_us", "210000\n"},
      {V1_BOTH "7/cpu.cfs_period_us", "100000\n"}}},
    {2,
     {{GROUP, OTHERS},
      {V1 "7/cpu.cfs_quota_us", "210000\n"},
      {V1 "7/cpu.cfs_period_us", "100000\n"},
      {V1 "cpu.cfs_quota_us", "100000\n"},
      {V1 "cpu.cfs_period_us", "50000\n"}}},
    /* The group of another controller does not count. */
    {64,
     {{GROUP, "5:cpuset:/jobs\n6:cpuacct:/jobs\n7:memory:/jobs\n"},
      {V1 "cpu.cfs_quota_us", "100000\n"},
      {V1 "cpu.cfs_period_us", "100000\n"}}},
};

static void quota_is(uint32_t expected)
{
    ck_assert_uint_eq(quota_processors(scratch_path("root"), 64), expected);
}

LOOP_TEST(quotas_of_trees, CASES_IN(trees))
{
    for (int i = 0; i < 5 && trees[_i].files[i][0]; i++)
        tree_write(trees[_i].files[i][0], trees[_i].files[i][1]);
    quota_is(trees[_i].processors);
}

TEST(long_paths)
{
    char text[6000];

    memset(text, 'a', sizeof text - 1);
    memcpy(text, "0::/", 4);
    text[sizeof text - 1] = '\0';
    tree_write("proc/self/cgroup", text);
    tree_write("sys/fs/cgroup/cpu.max", "200000 100000\n");
    quota_is(2);
}

static void tree_setup(void)
{
    directory_remove(scratch_path("root"));
    directory_make(scratch_path("root"));
}

TEST_MAIN(host_tests_run("quota", tree_setup, NULL))
