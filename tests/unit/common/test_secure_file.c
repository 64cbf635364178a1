/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secure files: which files and directories are trusted, that a file is not
 * replaced between check and read, and that files are replaced atomically.
 * Attacks by other users are tested if the tests run as root.
 */
#include <config.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/secure_file.h"
#include "support/failing_writes.h"
#include "support/scratch_directory.h"
#include "support/test_list.h"

#define STRANGER 12345
#define SHARED_GROUP 100

static char why[SECURE_WHY_BYTES];

/* ---- scratch directory ---- */

static int place; /* The open directory of the tests of files. */

static const char *directory_make(const char *name, mode_t mode)
{
    const char *path = scratch_path("%s", name);

    mkdir(path, 0700);
    ck_assert_int_eq(chmod(path, mode), 0);
    return path;
}

static void setup(void)
{
    scratch_create();
    ck_assert_int_eq(chmod(scratch, 0755), 0);
    umask(0);
    place =
        secure_directory_open(directory_make("place", 0755), SECURE_READ, why);
    ck_assert_int_ge(place, 0);
}

static void teardown(void)
{
    close(place);
    scratch_remove();
}

static void text_write(const char *path, const char *text)
{
    file_write(path, text);
    ck_assert_int_eq(chmod(path, 0600), 0);
}

static void owner_set(const char *path, uid_t user, gid_t group)
{
    ck_assert_int_eq(lchown(path, user, group), 0);
}

static int descriptors(void)
{
    DIR *open = opendir("/proc/self/fd");
    int count = 0;

    while (open != NULL && readdir(open) != NULL)
        count++;
    if (open != NULL)
        closedir(open);
    return count;
}

/*
 * Checks that a file or directory was not opened, for this reason. "" means
 * that it does not exist.
 */
static void expect_rejection(const char *name, int opened,
                             int descriptors_before, const char *reason)
{
    ck_assert_msg(opened == -1, "%s was trusted", name);
    ck_assert_int_eq(descriptors(), descriptors_before);
    ck_assert_msg(reason[0] != '\0' ? strstr(why, reason) != NULL
                                    : why[0] == '\0',
                  "%s: \"%s\" does not say \"%s\"", name, why, reason);
}

/* ---- directories ---- */

static void expect_directory_trusted(const char *path, enum secure_use use)
{
    const int directory = secure_directory_open(path, use, why);

    ck_assert_msg(directory >= 0, "%s: %s", path, why);
    close(directory);
}

static void expect_directory_rejected(const char *path, enum secure_use use,
                                      const char *reason)
{
    const int before = descriptors();
    const int opened = secure_directory_open(path, use, why);

    expect_rejection(path, opened, before, reason);
}

/* The same for a path in the scratch directory. */

static void expect_trusted(const char *name, enum secure_use use)
{
    expect_directory_trusted(scratch_path("%s", name), use);
}

static void expect_rejected(const char *name, enum secure_use use,
                            const char *reason)
{
    expect_directory_rejected(scratch_path("%s", name), use, reason);
}

TEST(test_paths)
{
    char path[5000];

    expect_directory_trusted("/", SECURE_READ);
    directory_make("good", 0755);
    expect_trusted("good", SECURE_READ);
    expect_trusted("good//./", SECURE_READ);
    expect_trusted("good/../good", SECURE_READ);
    expect_directory_rejected("", SECURE_READ, "relative");
    expect_directory_rejected("tmp", SECURE_READ, "relative");
    expect_directory_rejected("./tmp", SECURE_WRITE, "relative");
    expect_rejected("nothing", SECURE_READ, "");
    expect_rejected("nothing/below", SECURE_READ, "");
    text_write(scratch_path("file"), "text");
    expect_rejected("file", SECURE_READ, "is no directory");
    expect_rejected("file/below", SECURE_WRITE, "is no directory");
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    path[0] = '/';
    expect_directory_rejected(path, SECURE_READ, "too long");
    path[400] = '\0';
    expect_directory_rejected(path, SECURE_READ, "name");
}

TEST(test_writable_directories)
{
    char reason[1024];

    directory_make("open", 0777);
    directory_make("open/below", 0755);
    directory_make("open/below/deep", 0755);
    snprintf(reason, sizeof(reason),
             "/open can be written by others; run \"chmod go-w %s\"",
             scratch_path("open"));
    expect_rejected("open", SECURE_READ, reason);
    expect_rejected("open/below", SECURE_READ, reason);
    expect_rejected("open/below/deep", SECURE_READ, "/open can be written");
    expect_rejected("open/below/deep", SECURE_WRITE, "/open can be written");
    directory_make("good", 0755);
    expect_rejected("open/../good", SECURE_READ, "/open can be written");
    /* In a sticky directory only the owner of an entry can replace it. */
    directory_make("open", 01777);
    expect_trusted("open", SECURE_READ);
    expect_trusted("open/below", SECURE_READ);
    expect_trusted("open/below", SECURE_WRITE);
    expect_rejected("open", SECURE_WRITE, "/open can be written by others");
    /* The mode of a directory such as /tmp must not change. */
    ck_assert_ptr_eq(strstr(why, "run"), NULL);
}

TEST(test_links_in_the_path)
{
    directory_make("good", 0755);
    directory_make("open", 0777);
    directory_make("open/below", 0755);
    ck_assert_int_eq(symlink("good", scratch_path("link")), 0);
    ck_assert_int_eq(
        symlink(scratch_path("good/../good"), scratch_path("absolute")), 0);
    ck_assert_int_eq(symlink("open/below", scratch_path("astray")), 0);
    ck_assert_int_eq(symlink("loop", scratch_path("loop")), 0);
    ck_assert_int_eq(symlink("nothing", scratch_path("dangling")), 0);
    ck_assert_int_eq(symlink("../good", scratch_path("open/in")), 0);
    expect_trusted("link", SECURE_READ);
    expect_trusted("link/", SECURE_WRITE);
    expect_trusted("absolute", SECURE_READ);
    expect_rejected("astray", SECURE_READ, "/open can be written");
    expect_rejected("loop", SECURE_READ, "leads nowhere");
    expect_rejected("dangling", SECURE_READ, "");
    /* The directory is private, but other users could replace its parent. */
    expect_rejected("open/in", SECURE_READ, "/open can be written");
    if (geteuid() != 0)
        return;
    owner_set(scratch_path("link"), STRANGER, STRANGER);
    expect_rejected("link", SECURE_READ, "another user's link");
}

TEST(test_directories_are_made)
{
    directory_make("open", 0777);
    expect_rejected("open/new", SECURE_WRITE, "/open can be written");
    ck_assert_int_ne(access(scratch_path("open/new"), F_OK), 0);
    expect_trusted("a/b/c", SECURE_WRITE);
    expect_mode(scratch_path("a"), 0700);
    expect_mode(scratch_path("a/b/c"), 0700);
    /* A umask of 0777 must not make the file unusable for its owner. */
    umask(0777);
    expect_trusted("shut/d", SECURE_WRITE);
    umask(0);
    expect_mode(scratch_path("shut"), 0700);
    expect_mode(scratch_path("shut/d"), 0700);
}

/* Another user trusts root's files, but not those of other users. */
TEST(test_owners)
{
    if (geteuid() != 0)
        return;
    directory_make("theirs", 0755);
    owner_set(scratch_path("theirs"), STRANGER, STRANGER);
    directory_make("theirs/below", 0755);
    expect_rejected("theirs", SECURE_READ, "belongs to another user");
    expect_rejected("theirs/below", SECURE_READ, "belongs to another user");
    text_write(scratch_path("file"), "text");
    ck_assert_int_eq(seteuid(STRANGER), 0);
    expect_trusted("theirs/below", SECURE_READ);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(seteuid(STRANGER + 1), 0);
    expect_directory_trusted(scratch, SECURE_READ);
    expect_rejected("theirs", SECURE_READ, "belongs to another user");
    expect_rejected("mine", SECURE_WRITE, "ermission");
    ck_assert_int_eq(seteuid(0), 0);
}

/*
 * A group that belongs to the user alone is trusted; other groups may have
 * other members. A group that root assigned is trusted.
 */
TEST(test_groups)
{
    if (geteuid() != 0)
        return;
    directory_make("group", 0775);
    owner_set(scratch_path("group"), 0, SHARED_GROUP);
    expect_trusted("group", SECURE_READ);
    ck_assert_int_eq(seteuid(STRANGER), 0);
    expect_trusted("group", SECURE_READ);
    ck_assert_int_eq(seteuid(0), 0);
    owner_set(scratch_path("group"), STRANGER, SHARED_GROUP);
    ck_assert_int_eq(seteuid(STRANGER), 0);
    expect_rejected("group", SECURE_READ, "can be written by others");
    ck_assert_int_eq(seteuid(0), 0);
    owner_set(scratch_path("group"), STRANGER, STRANGER);
    ck_assert_int_eq(seteuid(STRANGER), 0);
    expect_trusted("group", SECURE_READ);
    expect_trusted("group/below", SECURE_WRITE);
    ck_assert_int_eq(seteuid(0), 0);
}

/* ---- files ---- */

static void expect_file_trusted(const char *name)
{
    const int file = secure_file_open(place, name, why);

    ck_assert_msg(file >= 0, "%s: %s", name, why);
    close(file);
}

static void expect_file_rejected(const char *name, const char *reason)
{
    const int before = descriptors();
    const int opened = secure_file_open(place, name, why);

    expect_rejection(name, opened, before, reason);
}

TEST(test_kinds_of_files)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);

    text_write(scratch_path("place/file"), "text");
    expect_file_trusted("file");
    expect_file_rejected("nothing", "");
    ck_assert_int_eq(symlink("file", scratch_path("place/link")), 0);
    expect_file_rejected("link", "it is a link");
    ck_assert_int_eq(mkfifo(scratch_path("place/pipe"), 0600), 0);
    expect_file_rejected("pipe", "no regular file");
    directory_make("place/directory", 0755);
    expect_file_rejected("directory", "no regular file");
    snprintf(address.sun_path, sizeof(address.sun_path), "%s",
             scratch_path("place/socket"));
    ck_assert_int_eq(
        bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(secure_file_open(place, "socket", why), -1);
    ck_assert_str_ne(why, "");
    close(listener);
}

TEST(test_modes_and_owners_of_files)
{
    text_write(scratch_path("place/file"), "text");
    ck_assert_int_eq(chmod(scratch_path("place/file"), 0644), 0);
    expect_file_trusted("file");
    ck_assert_int_eq(chmod(scratch_path("place/file"), 0646), 0);
    expect_file_rejected("file", "can be written by others");
    ck_assert_int_eq(chmod(scratch_path("place/file"), 01666), 0);
    expect_file_rejected("file", "can be written by others");
    if (geteuid() == 0) {
        ck_assert_int_eq(chmod(scratch_path("place/file"), 0600), 0);
        owner_set(scratch_path("place/file"), STRANGER, STRANGER);
        expect_file_rejected("file", "belongs to another user");
        ck_assert_int_eq(seteuid(STRANGER), 0);
        expect_file_trusted("file");
        ck_assert_int_eq(chmod(scratch_path("place/file"), 0000), 0);
        expect_file_rejected("file", "ermission");
        ck_assert_int_eq(seteuid(0), 0);
        ck_assert_int_eq(chmod(scratch_path("place/file"), 0664), 0);
        owner_set(scratch_path("place/file"), STRANGER, SHARED_GROUP);
        ck_assert_int_eq(seteuid(STRANGER), 0);
        expect_file_rejected("file", "can be written by others");
        ck_assert_int_eq(seteuid(0), 0);
    }
}

TEST(test_reading)
{
    size_t bytes = 9;
    char *text;

    text_write(scratch_path("place/file"), "some text");
    text = secure_file_read(place, "file", 9, &bytes, why);
    ck_assert_str_eq(text, "some text");
    ck_assert_uint_eq(bytes, 9);
    free(text);
    ck_assert_ptr_null(secure_file_read(place, "file", 8, &bytes, why));
    ck_assert_ptr_nonnull(strstr(why, "larger than 8 bytes"));
    ck_assert_uint_eq(bytes, 0);
    text_write(scratch_path("place/empty"), "");
    text = secure_file_read(place, "empty", 9, &bytes, why);
    ck_assert_str_eq(text, "");
    free(text);
    ck_assert_ptr_null(secure_file_read(place, "no", 9, &bytes, why));
    ck_assert_str_eq(why, "");
}

/* The child process renames files until it is killed or the alarm ends it. */
static void rename_repeatedly(void)
{
    alarm(60);
    for (unsigned i = 0;; i++) {
        const char *target = i % 3 == 0 ? "good" : "evil";

        unlink(scratch_path("place/next"));
        if (i % 3 == 2 ? symlink(target, scratch_path("place/next")) != 0
                       : link(scratch_path("place/%s", target),
                              scratch_path("place/next")) != 0)
            _exit(1);
        rename(scratch_path("place/next"), scratch_path("place/name"));
    }
}

/*
 * Another process changes the target of the name all the time. The content of
 * a trusted file is read, or nothing.
 */
TEST(test_concurrent_renames)
{
    pid_t child;
    int seen = 0, rejected = 0;

    text_write(scratch_path("place/good"), "good");
    text_write(scratch_path("place/evil"), "evil");
    ck_assert_int_eq(chmod(scratch_path("place/evil"), 0666), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        rename_repeatedly();
    while (seen < 5000 || rejected < 5000) {
        size_t bytes;
        char *text = secure_file_read(place, "name", 100, &bytes, why);

        if (text != NULL)
            ck_assert_str_eq(text, "good");
        seen += text != NULL;
        rejected += text == NULL && why[0] != '\0';
        free(text);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* ---- writing ---- */

static bool text_replace(const char *name, const char *text)
{
    const struct file_part parts[] = {{text, 1}, {text + 1, strlen(text) - 1}};

    return file_replace_atomically(place, name, parts, 2, REPLACE_DURABLE, why);
}

static void text_is(const char *name, const char *expected)
{
    size_t bytes;
    char *text = secure_file_read(place, name, 1 << 20, &bytes, why);

    ck_assert_msg(text != NULL, "%s: %s", name, why);
    ck_assert_str_eq(text, expected);
    free(text);
}

TEST(test_replacing)
{
    struct stat status;
    char name[300];

    ck_assert(text_replace("file", "first"));
    text_is("file", "first");
    expect_mode(scratch_path("place/file"), 0600);
    umask(0777);
    ck_assert(text_replace("file", "second"));
    umask(0);
    text_is("file", "second");
    expect_mode(scratch_path("place/file"), 0600);
    /* The target of the link must not be used. */
    text_write(scratch_path("elsewhere"), "elsewhere");
    ck_assert_int_eq(
        symlink(scratch_path("elsewhere"), scratch_path("place/link")), 0);
    ck_assert(text_replace("link", "third"));
    text_is("link", "third");
    ck_assert_int_eq(stat(scratch_path("elsewhere"), &status), 0);
    ck_assert_int_eq(status.st_size, 9);
    directory_make("place/directory", 0755);
    ck_assert(!text_replace("directory", "text"));
    ck_assert_str_ne(why, "");
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    ck_assert(!text_replace(name, "text"));
    ck_assert_ptr_nonnull(strstr(why, "cannot be made"));
    ck_assert_uint_eq(directory_count(scratch_path("place")), 3);
}

/* Everybody can read a published file, and only its owner can write it. */
TEST(test_publishing)
{
    const struct file_part part = {"text", 4};
    const mode_t before = umask(077);

    directory_make("old", 0750);
    expect_trusted("a/b", SECURE_PUBLISH);
    expect_trusted("old/new", SECURE_PUBLISH);
    expect_mode(scratch_path("a"), 0755);
    expect_mode(scratch_path("a/b"), 0755);
    expect_mode(scratch_path("old"), 0750);
    directory_make("sticky", 01777);
    expect_rejected("sticky", SECURE_PUBLISH, "can be written by others");
    ck_assert(
        file_replace_atomically(place, "file", &part, 1, REPLACE_PUBLIC, why));
    expect_mode(scratch_path("place/file"), 0644);
    text_is("file", "text");
    umask(before);
}

TEST(test_replacing_in_unwritable_places)
{
    if (geteuid() != 0)
        return;
    ck_assert(text_replace("file", "first"));
    ck_assert_int_eq(seteuid(STRANGER), 0);
    ck_assert(!text_replace("file", "second"));
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_ptr_nonnull(strstr(why, "cannot be made"));
    text_is("file", "first");
    ck_assert_uint_eq(directory_count(scratch_path("place")), 1);
}

/*
 * The size of files is limited to 100 bytes. The call returns an ordinary
 * error, and the signal of the limit does not end the process.
 */
static void replace_with_size_limit(void)
{
    char text[1000];
    bool done;

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    writes_limit(100);
    done = text_replace("file", text);
    writes_limit(0);
    ck_assert(!done);
    ck_assert_ptr_nonnull(strstr(why, "cannot be written: File too large"));
    text_is("file", "first");
    ck_assert_uint_eq(directory_count(scratch_path("place")), 1);
}

/* Checks if the signal is pending and blocked in this thread. */
static void expect_limit_signal(bool pending, bool blocked)
{
    sigset_t set;

    ck_assert_int_eq(sigpending(&set), 0);
    ck_assert_int_eq(sigismember(&set, SIGXFSZ), pending);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &set), 0);
    ck_assert_int_eq(sigismember(&set, SIGXFSZ), blocked);
}

TEST(test_large_files)
{
    ck_assert(text_replace("file", "first"));
    replace_with_size_limit();
    expect_limit_signal(false, false);
    signal(SIGXFSZ, SIG_IGN);
    replace_with_size_limit();
    expect_limit_signal(false, false);
    ck_assert(text_replace("file", "second"));
    text_is("file", "second");
}

static volatile sig_atomic_t signals_seen;

static void signal_note(int number)
{
    (void)number;
    signals_seen = signals_seen + 1;
}

/* A signal that the host has pending is neither lost nor duplicated. */
TEST(test_limit_signal_of_the_host)
{
    sigset_t set;

    ck_assert(text_replace("file", "first"));
    signal(SIGXFSZ, signal_note);
    replace_with_size_limit();
    ck_assert_int_eq(signals_seen, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    replace_with_size_limit();
    expect_limit_signal(false, true);
    raise(SIGXFSZ);
    replace_with_size_limit();
    expect_limit_signal(true, true);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    ck_assert_int_eq(signals_seen, 1);
}

/* Runs a child that is killed in the middle of a write. */
static void replace_and_kill(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        writes_kill();
        _exit(text_replace("file", "text of the child"));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
}

static void parts_age(void)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - 4000},
                                {.tv_sec = time(NULL) - 4000}};
    DIR *open = opendir(scratch_path("place"));
    const struct dirent *entry;

    ck_assert_ptr_nonnull(open);
    while ((entry = readdir(open)) != NULL) {
        if (strstr(entry->d_name, ".part") != NULL)
            ck_assert_int_eq(utimensat(place, entry->d_name, times, 0), 0);
    }
    closedir(open);
}

TEST(test_killed_writer)
{
    ck_assert(text_replace("file", "first"));
    replace_and_kill();
    text_is("file", "first");
    ck_assert_uint_eq(directory_count(scratch_path("place")), 2);
    ck_assert(text_replace("file", "second"));
    /* The writer might still be running. */
    ck_assert_uint_eq(directory_count(scratch_path("place")), 2);
    parts_age();
    ck_assert(text_replace("file", "third"));
    ck_assert_uint_eq(directory_count(scratch_path("place")), 1);
    text_is("file", "third");
}

/* Several processes write one file; a reader always sees a complete file. */
TEST(test_concurrent_writers)
{
    static char text[3][20001];
    pid_t child[3];

    for (int i = 0; i < 3; i++)
        memset(text[i], 'a' + i, sizeof(text[i]) - 1);
    ck_assert(text_replace("file", text[0]));
    for (int i = 0; i < 3; i++) {
        child[i] = fork();
        ck_assert_int_ge(child[i], 0);
        if (child[i] != 0)
            continue;
        for (int round = 0; round < 100; round++) {
            const struct file_part part = {text[i], sizeof(text[i]) - 1};

            if (!file_replace_atomically(place, "file", &part, 1, 0, why))
                _exit(1);
        }
        _exit(0);
    }
    for (int round = 0; round < 500; round++) {
        size_t bytes;
        char *seen = secure_file_read(place, "file", 20000, &bytes, why);

        ck_assert_msg(seen != NULL, "%s", why);
        ck_assert(seen[0] >= 'a' && seen[0] <= 'c');
        ck_assert_str_eq(seen, text[seen[0] - 'a']);
        free(seen);
    }
    for (int i = 0; i < 3; i++) {
        int status = 1;

        ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_uint_eq(directory_count(scratch_path("place")), 1);
}

TEST_MAIN(tests_run_with("secure_file", setup, teardown))
