// SPDX-License-Identifier: GPL-3.0-or-later
//
// The program's own `dlsym`, exported so that libraries find it before the C library's: see core/device/opencl/standin.h.
#include "core/device/opencl/standin.h"

#include <dlfcn.h>
#include <initializer_list>

namespace {

using Lookup = void *(*)(void *, const char *);

Lookup lookupOfTheSystem()
{
    for (const char *version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
        if (void *found = ::dlvsym(RTLD_NEXT, "dlsym", version))
            return reinterpret_cast<Lookup>(found);
    }
    return nullptr;
}

} // namespace

extern "C" __attribute__((visibility("default"))) void *dlsym(void *handle, const char *name) noexcept
{
    static const Lookup lookup = lookupOfTheSystem();
    return lookup ? klineage::gate::opencl::standIn(name, lookup(handle, name)) : nullptr;
}
