// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace klineage {

/// Allocates as std::allocator does, but leaves elements without a value unwritten: who fills hundreds of megabytes on all processors does not
/// want them cleared on one first.
template <typename T>
struct UnclearedAllocator : std::allocator<T> {
    template <typename Other>
    struct rebind {
        using other = UnclearedAllocator<Other>;
    };
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
};

/// Bytes that hold anything until they are written.
using RawBytes = std::vector<std::byte, UnclearedAllocator<std::byte>>;

} // namespace klineage
