/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/loader/setup_device.c: conflicting options for a device are refused.
 */
#include "gpu/fake_driver.h"
#include "tiny_loader.h"

#include "base/mem.h"

static char path[64];

static int set_up(void **state)
{
    if (find_fake(state) != 0) return -1;
    go_wrong("");
    snprintf(path, sizeof path, "/tmp/leat-sd-%d.leat", (int)getpid());
    tiny_pack(path, &(tiny_opts){.samples = 20, .classes = 3});
    return 0;
}

static int tear_down(void **state)
{
    unlink(path);
    return 0;
}

static void refused(const leat_loader_opts *o, int code, const char *text)
{
    leat_loader *l = NULL;
    leat_error err = {0};
    assert_int_equal(leat_loader_open(&l, path, o, &err), code);
    if (strstr(err.message, text) == NULL) fail_msg("'%s' does not say '%s'", err.message, text);
    assert_null(l);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void what_does_not_go_together(void **state)
{
    leat_loader_opts o = base_opts();
    o.digest = 0;
    o.cache = LEAT_CACHE_DEVICE;
    refused(&o, LEAT_EINVAL, "cache device needs a device");
    o.device = "cuda";
    o.decode = LEAT_DECODE_CPU;
    refused(&o, LEAT_EINVAL, "cache device: the device decodes what it keeps");
    o.decode = LEAT_DECODE_AUTO;
    o.device_memory = 64 << 20;
    refused(&o, LEAT_EBUDGET, "cache device: device_memory is 64.0 MiB");
    o.device_memory = 0;
    o.digest = 1;
    refused(&o, LEAT_EINVAL, "cache device: digest hashes pixels on the host");
    o.digest = 0;
    o.ops = "RandomResizedCrop(16); GaussianBlur(3)";
    refused(&o, LEAT_EINVAL, "cache device: GaussianBlur runs on the host");
}

static void a_full_device_is_named(void **state)
{
    leat_loader_opts o = base_opts();
    o.device = "cuda";
    go_wrong("stream");
    refused(&o, LEAT_ENOMEM, "cuda:0 has 8.00 GiB of memory left: free some");
    go_wrong("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_does_not_go_together),
                                       cmocka_unit_test(a_full_device_is_named)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
