/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the CPU quotas of control groups from directory trees that look like
 * the kernel's.
 */
#include <config.h>

#include <stdio.h>
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

static void tree_setup(void)
{
    directory_remove(scratch_path("root"));
    directory_make(scratch_path("root"));
}

static void quota_is(uint32_t expected)
{
    ck_assert_uint_eq(quota_processors(scratch_path("root"), 64), expected);
}

TEST(nothing_there)
{
    quota_is(64);
    tree_write("proc/self/cgroup", "");
    quota_is(64);
    tree_write("proc/self/cgroup", "nonsense\n::\n0:\n0::/x\n");
    quota_is(64);
}

static const struct {
    const char *text;
    uint32_t processors;
} maxima[] = {
    {"max 100000\n", 64},       {"100000 100000\n", 1},
    {"100001 100000\n", 2},     {"50000 100000\n", 1},
    {"1000 100000\n", 1},       {"250000 100000\n", 3},
    {"6400000 100000\n", 64},   {"99999999999999 1\n", 64},
    {"9223372036854775807 1\n", 64}, {"-1 100000\n", 64},
    {"0 100000\n", 64},         {"100000 0\n", 64},
    {"100000\n", 64},           {"", 64},
    {"rubbish", 64},
};

LOOP_TEST(version_2, CASES_IN(maxima))
{
    tree_write("proc/self/cgroup", "0::/\n");
    tree_write("sys/fs/cgroup/cpu.max", maxima[_i].text);
    quota_is(maxima[_i].processors);
}

/* The quotas of parent directories apply, too; the smallest one counts. */
TEST(version_2_nested)
{
    tree_write("proc/self/cgroup", "0::/a.slice/b.scope\n");
    tree_write("sys/fs/cgroup/a.slice/b.scope/cpu.max", "max 100000\n");
    quota_is(64);
    tree_write("sys/fs/cgroup/a.slice/cpu.max", "300000 100000\n");
    quota_is(3);
    tree_write("sys/fs/cgroup/a.slice/b.scope/cpu.max", "700000 100000\n");
    quota_is(3);
    tree_write("sys/fs/cgroup/a.slice/b.scope/cpu.max", "150000 100000\n");
    quota_is(2);
    /* The quota of another group does not apply. */
    tree_write("sys/fs/cgroup/a.slice/c.scope/cpu.max", "100000 100000\n");
    quota_is(2);
}

/* In a container that sees the machine's path, but only its own mount. */
TEST(version_2_container)
{
    tree_write("proc/self/cgroup", "0::/docker/0123456789abcdef\n");
    tree_write("sys/fs/cgroup/cpu.max", "400000 100000\n");
    quota_is(4);
}

static void quota_write(const char *mount, const char *file, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "sys/fs/cgroup/%s/%s", mount, file);
    tree_write(path, text);
}

LOOP_TEST(version_1, 2)
{
    static const char *const mounts[] = {"cpu", "cpu,cpuacct"};
    const char *mount = mounts[_i];

    tree_write("proc/self/cgroup",
               "12:cpuset:/x\n4:cpu,cpuacct:/jobs/7\n1:name=systemd:/\n");
    quota_write(mount, "jobs/7/cpu.cfs_quota_us", "-1\n");
    quota_write(mount, "jobs/7/cpu.cfs_period_us", "100000\n");
    quota_is(64);
    quota_write(mount, "jobs/7/cpu.cfs_quota_us", "210000\n");
    quota_is(3);
    quota_write(mount, "jobs/cpu.cfs_quota_us", "100000\n");
    quota_write(mount, "jobs/cpu.cfs_period_us", "50000\n");
    quota_is(2);
}

/* The group of another controller does not count. */
TEST(version_1_others)
{
    tree_write("proc/self/cgroup", "5:cpuset:/x\n6:cpuacct:/x\n7:memory:/x\n");
    tree_write("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "100000\n");
    tree_write("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
    quota_is(64);
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

TEST_MAIN(host_tests_run("quota", tree_setup, NULL))
