# SPDX-License-Identifier: Apache-2.0
# The environment of the tests of the tools, which source this file first. $libs has
# the plugins, $work is removed at the end, and caches are in $work/cache. All
# variables below are exported, so a test only has to set them.
libs=$PWD/.libs
work=$PWD/tools-test.$$
mkdir -p "$work/cache" || exit 99
chmod 755 "$work"
chmod 700 "$work/cache"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
. "${srcdir:-.}/tests/support/cases.sh"

unset OCL_ICD_FILENAMES OPENCL_LAYERS OPENCL_VENDOR_PATH RUSTICL_ENABLE \
    TANDEM_BACKENDS TANDEM_DEVICE TANDEM_LAYER_CORRUPT TANDEM_LAYER_FAULT \
    TANDEM_LOG TANDEM_OPENCL_BLOCKLIST TANDEM_PROFILE_DIR TANDEM_TEST_PLUGIN
XDG_CACHE_HOME=$work/cache
TANDEM_PLUGIN_PATH=$libs
COLUMNS=1000 # a row, a line
: "${POCL_CACHE_DIR=$PWD/pocl-cache}"
: "${OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd}"
export COLUMNS OCL_ICD_VENDORS POCL_CACHE_DIR TANDEM_BACKENDS TANDEM_PLUGIN_PATH \
    TANDEM_PROFILE_DIR TANDEM_TEST_PLUGIN XDG_CACHE_HOME

# needs FILE...: skips the test if a file is missing.
needs() {
    for file in "$@"; do
        test -e "$file" || { echo "there is no $file"; exit 77; }
    done
}
