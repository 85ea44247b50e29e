// SPDX-License-Identifier: GPL-3.0-or-later
// A library with a work-group function, and a page of its own that can be written.
#include <cstddef>

extern "C" {

__attribute__((visibility("default"))) char klineage_stub_room[64] = {1};

__attribute__((visibility("default"))) void _pocl_kernel_stub_workgroup(void *, void *, std::size_t,
                                                                        std::size_t, std::size_t)
{}
}
