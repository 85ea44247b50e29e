// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/keptblocks.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <mutex>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace klineage {

namespace {

constexpr std::size_t mostBytes = std::size_t{6} << 30;

std::size_t roundedUp(std::size_t bytes)
{
    return (bytes + KeptBlocks::leastBytes - 1) / KeptBlocks::leastBytes * KeptBlocks::leastBytes;
}

std::size_t budget()
{
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long pageBytes = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && pageBytes > 0 ? std::min(mostBytes, static_cast<std::size_t>(pages) / 8
                                                                * static_cast<std::size_t>(pageBytes))
                                      : 0;
}

struct Block {
    void *data = nullptr;
    std::size_t bytes = 0;
};

struct Store {
    std::mutex mutex;
    std::deque<Block> blocks; ///< the oldest first
    std::size_t bytes = 0;
    const std::size_t most = budget();
};

/// Never destroyed: static objects may let go of memory after it would be.
Store &store()
{
    static auto *const kept = new Store;
    return *kept;
}

} // namespace

void *KeptBlocks::take(std::size_t bytes)
{
    const std::size_t room = roundedUp(bytes);
    {
        Store &kept = store();
        const std::lock_guard lock(kept.mutex);
        const auto found = std::find_if(kept.blocks.rbegin(), kept.blocks.rend(),
                                        [room](const Block &block) { return block.bytes == room; });
        if (found != kept.blocks.rend()) {
            void *const data = found->data;
            kept.bytes -= room;
            kept.blocks.erase(std::next(found).base());
            return data;
        }
    }
    void *data = std::aligned_alloc(leastBytes, room);
    if (!data) {
        drop(); // what is kept of other sizes may be all that is missing
        data = std::aligned_alloc(leastBytes, room);
    }
    if (!data)
        throw std::bad_alloc();
    ::madvise(data, room, MADV_HUGEPAGE); // where the kernel knows such
    return data;
}

void KeptBlocks::give(void *block, std::size_t bytes) noexcept
{
    const std::size_t room = roundedUp(bytes);
    Store &kept = store();
    const std::lock_guard lock(kept.mutex);
    if (room > kept.most) {
        std::free(block);
        return;
    }
    while (kept.bytes + room > kept.most) {
        std::free(kept.blocks.front().data);
        kept.bytes -= kept.blocks.front().bytes;
        kept.blocks.pop_front();
    }
    try {
        kept.blocks.push_back({block, room});
        kept.bytes += room;
    } catch (const std::bad_alloc &) {
        std::free(block);
    }
}

std::size_t KeptBlocks::keptBytes()
{
    Store &kept = store();
    const std::lock_guard lock(kept.mutex);
    return kept.bytes;
}

void KeptBlocks::drop() noexcept
{
    Store &kept = store();
    const std::lock_guard lock(kept.mutex);
    for (const Block &block : kept.blocks)
        std::free(block.data);
    kept.blocks.clear();
    kept.bytes = 0;
}

} // namespace klineage
