// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/opencl/standin.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <mutex>
#include <numeric>
#include <span>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace klineage::gate::opencl {

namespace {

constexpr std::size_t mostStandIns = 1024;
constexpr std::size_t mostGroups = std::size_t{1} << 31; ///< that change places: products of two are exact
constexpr const char *groupFunctionPrefix = "_pocl_kernel_";

/// Arguments, PoCL's context, and the place of the group; the same in every version of PoCL so far.
using GroupFunction = void (*)(void *, void *, std::size_t, std::size_t, std::size_t);

/// Of whole pages, which become read-only.
alignas(4096) std::array<GroupFunction, mostStandIns> functions;
std::atomic<bool> asleep = false;

/// The place of the i-th group is that of the (factor · i + shift)-th, where groups are counted in all dimensions.
struct Order {
    std::array<std::size_t, 3> groups{};
    std::size_t factor = 1;
    std::size_t shift = 0;
};
Order order;
std::atomic<bool> ordered = false;

void move(std::size_t &x, std::size_t &y, std::size_t &z)
{
    const auto &[width, height, depth] = order.groups;
    const std::size_t count = width * height * depth;
    const std::size_t moved = (order.factor * ((z * height + y) * width + x) + order.shift) % count;
    x = moved % width;
    y = moved / width % height;
    z = moved / width / height;
}

template <std::size_t index>
void callFunction(void *arguments, void *context, std::size_t x, std::size_t y, std::size_t z)
{
    if (asleep.load(std::memory_order_relaxed))
        return;
    if (ordered.load(std::memory_order_acquire))
        move(x, y, z);
    functions[index](arguments, context, x, y, z);
}

template <std::size_t... indices>
constexpr std::array<GroupFunction, mostStandIns> tableOf(std::index_sequence<indices...>)
{
    return {&callFunction<indices>...};
}
constexpr auto standIns = tableOf(std::make_index_sequence<mostStandIns>());

/// Whatever of the library with this function can be written becomes read-only: a kernel's own has no variables, but a page for the jumps
/// to others, which would outlast every launch and be shared by all threads. The program itself stays as it is.
int closeLibrary(dl_phdr_info *library, std::size_t /*bytes*/, void *function)
{
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto beginOf = [&](const ElfW(Phdr) & part) { return library->dlpi_addr + part.p_vaddr; };
    const std::span parts(library->dlpi_phdr, library->dlpi_phnum);
    const auto holds = [&](std::uintptr_t address) {
        return std::any_of(parts.begin(), parts.end(), [&](const ElfW(Phdr) & part) {
            return part.p_type == PT_LOAD && address >= beginOf(part)
                   && address - beginOf(part) < part.p_memsz;
        });
    };
    if (!holds(reinterpret_cast<std::uintptr_t>(function)))
        return 0;
    if (holds(reinterpret_cast<std::uintptr_t>(&closeLibrary)))
        return 1;
    for (const ElfW(Phdr) & part : parts) {
        if (part.p_type != PT_LOAD || (part.p_flags & PF_W) == 0)
            continue;
        const std::uintptr_t begin = beginOf(part) / page * page;
        const std::uintptr_t end = (beginOf(part) + part.p_memsz + page - 1) / page * page;
        ::mprotect(reinterpret_cast<void *>(begin), end - begin, PROT_READ);
    }
    return 1;
}

std::mutex mutex;
std::size_t used = 0;
bool isSealed = false;

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
    if (used == mostStandIns || isSealed)
        return nullptr; // PoCL gives up then, which is better than running what was to be compiled only
    ::dl_iterate_phdr(closeLibrary, found);
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

void sealStandIns() noexcept
{
    const std::lock_guard lock(mutex);
    isSealed = true;
    ::mprotect(functions.data(), sizeof functions, PROT_READ);
}

StandInsInOrder::StandInsInOrder(const std::array<std::size_t, 3> &groups, std::uint64_t key) noexcept
{
    const std::size_t count = groups[0] * groups[1] * groups[2];
    if (count < 2 || count >= mostGroups)
        return;
    // Every second key: backwards, which shows who writes over what a later one wrote.
    std::size_t factor = key % 2 == 0 ? count - 1 : 1 + (key >> 1) % (count - 1);
    while (std::gcd(factor, count) != 1)
        --factor; // 1 in the end
    order = {groups, factor, static_cast<std::size_t>((key >> 32) % count)};
    if (key % 2 == 0)
        order.shift = count - 1;
    ordered.store(true, std::memory_order_release);
}

StandInsInOrder::~StandInsInOrder()
{
    ordered.store(false, std::memory_order_release);
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
