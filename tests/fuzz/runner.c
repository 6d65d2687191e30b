/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain main for fuzz targets: runs the target over every file of the folders and files
 * given, so that corpora are ordinary tests in every build.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned ran;

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        perror(path);
        return 1;
    }
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    /* Exactly as long as the input, so that sanitizers see a read past its end. */
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    size_t got = fread(data, 1, (size_t)size, f);
    fclose(f);
    if (got == (size_t)size) {
        (void)LLVMFuzzerTestOneInput(data, got);
        ran++;
    }
    free(data);
    return got != (size_t)size;
}

static int run_path(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        perror(path);
        return 1;
    }
    if (!S_ISDIR(st.st_mode)) return run_file(path);
    DIR *dir = opendir(path);
    int bad = dir == NULL;
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        char file[4096];
        if (e->d_name[0] == '.') continue;
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        bad += run_path(file);
    }
    if (dir != NULL) closedir(dir);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = 0;
    for (int i = 1; i < argc; i++) bad += run_path(argv[i]);
    printf("%u inputs\n", ran);
    return bad != 0 || ran == 0;
}
