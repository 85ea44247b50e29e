// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/opencl/standin.h"

#include <array>
#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <utility>

namespace klineage::gate::opencl {

namespace {

constexpr std::size_t mostStandIns = 1024;
constexpr const char *groupFunctionPrefix = "_pocl_kernel_";

/// Arguments, PoCL's context, and the place of the group; the same in every version of PoCL so far.
using GroupFunction = void (*)(void *, void *, std::size_t, std::size_t, std::size_t);

std::array<GroupFunction, mostStandIns> functions;
std::atomic<bool> asleep = false;

template <std::size_t index>
void callFunction(void *arguments, void *context, std::size_t x, std::size_t y, std::size_t z)
{
    if (!asleep.load(std::memory_order_relaxed))
        functions[index](arguments, context, x, y, z);
}

template <std::size_t... indices>
constexpr std::array<GroupFunction, mostStandIns> tableOf(std::index_sequence<indices...>)
{
    return {&callFunction<indices>...};
}
constexpr auto standIns = tableOf(std::make_index_sequence<mostStandIns>());

std::mutex mutex;
std::size_t used = 0;

} // namespace

void *standIn(const char *name, void *found) noexcept
{
    if (!name || !found || std::strncmp(name, groupFunctionPrefix, std::strlen(groupFunctionPrefix)) != 0)
        return found;
    const std::lock_guard lock(mutex);
    const auto function = reinterpret_cast<GroupFunction>(found);
    for (std::size_t i = 0; i < used; ++i) {
        if (functions[i] == function)
            return reinterpret_cast<void *>(standIns[i]);
    }
    if (used == mostStandIns)
        return nullptr; // PoCL gives up then, which is better than running what was to be compiled only
    functions[used] = function;
    return reinterpret_cast<void *>(standIns[used++]);
}

bool standInsWork() noexcept
{
    Dl_info here = {};
    Dl_info there = {};
    void *const looked = ::dlsym(RTLD_DEFAULT, "dlsym");
    return looked && ::dladdr(looked, &there) != 0
           && ::dladdr(reinterpret_cast<void *>(&standInsWork), &here) != 0
           && here.dli_fbase == there.dli_fbase;
}

std::size_t standInCount() noexcept
{
    const std::lock_guard lock(mutex);
    return used;
}

StandInsAsleep::StandInsAsleep() noexcept
{
    asleep = true;
}

StandInsAsleep::~StandInsAsleep()
{
    asleep = false;
}

} // namespace klineage::gate::opencl
