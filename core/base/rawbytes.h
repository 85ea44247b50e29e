// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/keptblocks.h"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace klineage {

/// Allocates as std::allocator does, but leaves elements without a value unwritten: who fills hundreds of megabytes on all processors does not
/// want them cleared on one first. Large blocks are kept for the next one who needs them (KeptBlocks).
template <typename T>
struct UnclearedAllocator : std::allocator<T> {
    template <typename Other>
    struct rebind {
        using other = UnclearedAllocator<Other>;
    };
    [[nodiscard]] T *allocate(std::size_t count)
    {
        return isLarge(count) ? static_cast<T *>(KeptBlocks::take(count * sizeof(T)))
                              : std::allocator<T>::allocate(count);
    }
    void deallocate(T *at, std::size_t count)
    {
        if (isLarge(count))
            KeptBlocks::give(at, count * sizeof(T));
        else
            std::allocator<T>::deallocate(at, count);
    }
    template <typename Element>
    void construct(Element *at) noexcept
    {
        ::new (static_cast<void *>(at)) Element;
    }
    template <typename Element, typename... Arguments>
    void construct(Element *at, Arguments &&...arguments)
    {
        std::construct_at(at, std::forward<Arguments>(arguments)...);
    }

private:
    static bool isLarge(std::size_t count)
    {
        return count >= KeptBlocks::leastBytes / sizeof(T)
               && count <= static_cast<std::size_t>(-1) / 2 / sizeof(T);
    }
};

/// Values that hold anything until they are written.
template <typename T>
using RawVector = std::vector<T, UnclearedAllocator<T>>;
using RawBytes = RawVector<std::byte>;

} // namespace klineage
