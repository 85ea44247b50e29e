// SPDX-License-Identifier: GPL-3.0-or-later
//
// PoCL compiles a kernel for a size of work-groups when it is first launched with it: it starts a linker, opens the result and runs it, all
// at once. So that everything is compiled and loaded before the first instruction of a candidate's runs, a program that exports
// `dlsym` hands what PoCL looks up there to standIn(): PoCL gets a function that does nothing while the process is compiling, and from then
// on calls the kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace klineage::gate::opencl {

/// What a lookup of `name` is answered with: `found`, or, for a work-group function of PoCL's, a stand-in that calls it. Thread-safe.
[[nodiscard]] void *standIn(const char *name, void *found) noexcept;

/// Whether lookups of other libraries come to standIn() in this program.
[[nodiscard]] bool standInsWork() noexcept;

/// How many work-group functions have one.
[[nodiscard]] std::size_t standInCount() noexcept;

/// From here on there are no others, and nobody can exchange what they stand for.
void sealStandIns() noexcept;

/// While one lives, work-groups of a launch with so many change places: which, follows from the key.
class StandInsInOrder
{
public:
    StandInsInOrder(const std::array<std::size_t, 3> &groups, std::uint64_t key) noexcept;
    ~StandInsInOrder();
    StandInsInOrder(const StandInsInOrder &) = delete;
    StandInsInOrder &operator=(const StandInsInOrder &) = delete;
};

/// While one lives, stand-ins return at once instead of calling what they stand for.
class StandInsAsleep
{
public:
    StandInsAsleep() noexcept;
    ~StandInsAsleep();
    StandInsAsleep(const StandInsAsleep &) = delete;
    StandInsAsleep &operator=(const StandInsAsleep &) = delete;
};

} // namespace klineage::gate::opencl
