// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/helpers.h"

#include "core/device/cuda/subject.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

namespace klineage::gate::cuda {

namespace {

struct Mark {
    std::uint64_t sm;
    std::uint64_t cycles;
    std::uint64_t nanoseconds;
};

constexpr unsigned fillThreads = 256;
constexpr unsigned printThreads = 512;
// What a block of the kernels over regions has: enough of them to fill the device, none so long that others wait for it.
constexpr std::uint64_t leastPiece = std::uint64_t{16} << 10;
constexpr std::uint64_t mostPiece = std::uint64_t{512} << 10;
constexpr unsigned piecesPerMultiprocessor = 16;
static_assert(mostLocalBytes == std::size_t{16} << 10,
              "what a plan may have is what klineage_scrub_stack overwrites");
/// The device hands memory out in pieces of this size: no candidate's buffer lies in one of these.
constexpr std::size_t pieceBytes = std::size_t{2} << 20;

/// The number of the type among those of klineage_print.
std::uint64_t kindOf(kernel::DType dtype)
{
    switch (dtype) {
    case kernel::DType::F32:
    case kernel::DType::TF32:
        return 0;
    case kernel::DType::F16:
        return 1;
    case kernel::DType::BF16:
        return 2;
    case kernel::DType::F64:
        return 3;
    case kernel::DType::F8E4M3:
        return 4;
    case kernel::DType::F8E5M2:
        return 5;
    case kernel::DType::I64:
        return 6;
    case kernel::DType::I32:
        return 7;
    case kernel::DType::I16:
        return 8;
    case kernel::DType::I8:
        return 9;
    case kernel::DType::U32:
        return 10;
    case kernel::DType::U8:
        break;
    }
    return 11;
}

} // namespace

Status Helpers::install(CUdevice device, std::span<const std::byte> cubin)
{
    if (m_module)
        return {};
    m_device = device;
    int multiprocessors = 0;
    int shared = 0;
    m_driver.deviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    m_driver.deviceGetAttribute(&shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
    m_multiprocessors = static_cast<unsigned>(multiprocessors);
    m_sharedBytes = static_cast<unsigned>(shared);
    int threads = 0;
    m_driver.deviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
    m_blocksOf1024 = std::max(1u, static_cast<unsigned>(threads) / 1024);
    auto module = loadModule(m_driver, cubin.data(), "load the gate's kernels");
    if (!module)
        return tl::unexpected(module.error());
    m_module = std::move(*module);
    for (const auto &[function, name] : {std::pair{&m_fill, "klineage_fill"},
                                         {&m_guard, "klineage_guard"},
                                         {&m_touched, "klineage_touched"},
                                         {&m_zones, "klineage_zones"},
                                         {&m_sum, "klineage_sum"},
                                         {&m_wipe, "klineage_wipe"},
                                         {&m_scrub, "klineage_scrub"},
                                         {&m_scrubStack, "klineage_scrub_stack"},
                                         {&m_probe, "klineage_probe"},
                                         {&m_places, "klineage_places"},
                                         {&m_print, "klineage_print"},
                                         {&m_flush, "klineage_flush"},
                                         {&m_unmark, "klineage_unmark"},
                                         {&m_blend, "klineage_blend"}}) {
        if (auto found = m_driver.check(m_driver.moduleGetFunction(function, m_module.get(), name),
                                        std::string("find the gate's kernel ") + name);
            !found)
            return found;
    }
    if (auto done =
            m_driver.check(m_driver.funcSetAttribute(m_scrub, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                     static_cast<int>(m_sharedBytes)),
                           "prepare the gate's kernels");
        !done)
        return done;
    int cache = 0;
    m_driver.deviceGetAttribute(&cache, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
    m_otherBytes =
        (2 * static_cast<std::uint64_t>(std::max(cache, 0)) + pieceBytes - 1) / pieceBytes * pieceBytes;
    if (m_otherBytes > 0) {
        auto other = ScatteredMemory::hidden(m_driver, m_device, m_otherBytes,
                                             "allocate what the cache is filled with");
        if (!other)
            return tl::unexpected(other.error());
        m_other = std::move(*other);
    }
    return ensureRoom(0);
}

Status Helpers::flushCache(CUstream stream)
{
    if (m_otherBytes == 0)
        return {};
    CUdeviceptr begin = m_other.get();
    void *arguments[] = {&begin, &m_otherBytes};
    if (auto done = launch(m_flush, 4 * m_multiprocessors, 1, 512, 0, stream, arguments, "klineage_flush");
        !done)
        return done;
    return launch(m_unmark, 4 * m_multiprocessors, 1, 512, 0, stream, arguments, "klineage_unmark");
}

std::size_t Helpers::marksBytes() const
{
    return 2 * m_multiprocessors * sizeof(Mark);
}

Status Helpers::ensureRoom(std::size_t bytes)
{
    const std::size_t wanted = (marksBytes() + bytes + pieceBytes - 1) / pieceBytes * pieceBytes;
    if (m_room && wanted <= m_roomBytes)
        return {};
    auto room = ScatteredMemory::hidden(m_driver, m_device, wanted, "allocate room for the gate's kernels");
    if (!room)
        return tl::unexpected(room.error());
    m_room = std::move(*room);
    m_roomBytes = wanted;
    return {};
}

Status Helpers::launch(CUfunction function, unsigned gridX, unsigned gridY, unsigned threads, unsigned shared,
                       CUstream stream, void **arguments, const char *name) const
{
    CUlaunchConfig config{};
    config.gridDimX = gridX;
    config.gridDimY = gridY;
    config.gridDimZ = 1;
    config.blockDimX = threads;
    config.blockDimY = 1;
    config.blockDimZ = 1;
    config.sharedMemBytes = shared;
    config.hStream = stream;
    return m_driver.check(m_driver.launchKernelEx(&config, function, arguments, nullptr),
                          std::string("launch the gate's kernel ") + name);
}

Status Helpers::overRegions(CUfunction function, CUstream stream, CUdeviceptr table, std::size_t regions,
                            std::uint32_t word, CUdeviceptr found)
{
    if (regions == 0)
        return {};
    void *arguments[] = {&table, &word, &found};
    return launch(function, static_cast<unsigned>(regions), 1, fillThreads, 0, stream, arguments,
                  "over what is refilled");
}

Status Helpers::overGuards(CUfunction function, CUstream stream, CUdeviceptr table, std::size_t guards,
                           CUdeviceptr found)
{
    if (guards == 0)
        return {};
    void *arguments[] = {&table, &found};
    return launch(function, static_cast<unsigned>(guards), 1, fillThreads, 0, stream, arguments,
                  "over what is guarded");
}

std::vector<Region> FillTable::untouchedBy(std::size_t first, std::size_t count) const
{
    std::vector<Region> regions;
    const std::size_t sets = m_written.size();
    for (std::size_t set = 0; set < sets; ++set) {
        regions.insert(regions.end(), m_others[set].begin(), m_others[set].end());
        if ((set + sets - first % sets) % sets >= count)
            regions.insert(regions.end(), m_written[set].begin(), m_written[set].end());
    }
    return regions;
}

std::vector<Region> Helpers::cut(const std::vector<Region> &regions) const
{
    std::uint64_t total = 0;
    for (const Region &region : regions)
        total += region.bytes;
    const std::uint64_t share = total / std::max(1u, piecesPerMultiprocessor * m_multiprocessors);
    const std::uint64_t longest = std::clamp(share / leastPiece * leastPiece, leastPiece, mostPiece);
    std::vector<Region> pieces;
    for (const Region &region : regions) {
        for (std::uint64_t at = 0; at < region.bytes; at += longest)
            pieces.push_back({region.address + at, std::min(longest, region.bytes - at)});
    }
    return pieces;
}

Result<CUdeviceptr> Helpers::touched(CUstream stream, std::vector<Region> regions, std::uint32_t word,
                                     const std::vector<Held> &held)
{
    regions.insert(regions.end(), m_slack.begin(), m_slack.end());
    regions = cut(regions);
    const std::size_t guardCount = m_guards.size() + held.size();
    if (regions.empty() && guardCount == 0)
        return 0;
    // As they are read: the answer, the guards, the regions, and what is to be held, which is another zone without a copy.
    const std::size_t guardsAt = 16;
    const std::size_t regionsAt = guardsAt + guardCount * sizeof(Guard);
    std::size_t size = regionsAt + regions.size() * sizeof(Region);
    const std::size_t heldAt = size;
    for (const Held &one : held)
        size += (one.bytes.size() + 15) / 16 * 16;
    const std::string what = "look at what nothing may change";
    if (auto done = ensureRoom(size); !done)
        return tl::unexpected(done.error());
    const CUdeviceptr found = m_room.get() + marksBytes();
    std::vector<std::byte> table(size, std::byte{0xff});
    std::vector<Guard> guards = m_guards;
    std::size_t at = heldAt;
    for (const Held &one : held) {
        guards.push_back({one.address, one.bytes.size(), 0, 0, found + at});
        std::copy(one.bytes.begin(), one.bytes.end(), table.begin() + static_cast<std::ptrdiff_t>(at));
        at += (one.bytes.size() + 15) / 16 * 16;
    }
    if (!guards.empty())
        std::memcpy(table.data() + guardsAt, guards.data(), guards.size() * sizeof(Guard));
    if (!regions.empty())
        std::memcpy(table.data() + regionsAt, regions.data(), regions.size() * sizeof(Region));
    if (auto done = m_driver.toDevice(found, table.data(), table.size(), what); !done)
        return tl::unexpected(done.error());
    Status done = overRegions(m_touched, stream, found + regionsAt, regions.size(), word, found);
    if (done)
        done = overGuards(m_zones, stream, found + guardsAt, guards.size(), found);
    if (done)
        done = m_driver.check(m_driver.streamSynchronize(stream), what);
    std::uint64_t address = 0;
    if (done)
        done = m_driver.check(m_driver.memcpyDtoH(&address, found, sizeof address), what);
    if (!done)
        return tl::unexpected(done.error());
    return address == ~std::uint64_t{0} ? 0 : address;
}

Result<std::vector<std::uint64_t>> Helpers::sums(CUstream stream, const std::vector<Region> &regions,
                                                 std::uint64_t key, std::uint32_t resting)
{
    std::vector<std::uint64_t> sums(regions.size(), 0);
    if (regions.empty())
        return sums;
    const std::string what = "add up inputs";
    const std::size_t regionBytes = regions.size() * sizeof(Region);
    const std::size_t sumBytes = sums.size() * sizeof(std::uint64_t);
    if (auto done = ensureRoom(regionBytes + sumBytes); !done)
        return tl::unexpected(done.error());
    CUdeviceptr table = m_room.get() + marksBytes();
    CUdeviceptr to = table + regionBytes;
    Status done = m_driver.toDevice(table, regions.data(), regionBytes, what);
    if (done)
        done = m_driver.toDevice(to, sums.data(), sumBytes, what);
    void *arguments[] = {&table, &key, &resting, &to};
    if (done)
        done = launch(m_sum, static_cast<unsigned>(regions.size()), 1, fillThreads, 0, stream, arguments,
                      "klineage_sum");
    if (done)
        done = m_driver.check(m_driver.streamSynchronize(stream), what);
    if (done)
        done = m_driver.check(m_driver.memcpyDtoH(sums.data(), to, sumBytes), what);
    if (!done)
        return tl::unexpected(done.error());
    return sums;
}

Status Helpers::overwriteStacks(CUstream stream, std::uint32_t word) const
{
    unsigned never = 0;
    void *arguments[] = {&word, &never};
    return launch(m_scrubStack, m_multiprocessors * m_blocksOf1024, 1, 1024, 0, stream, arguments,
                  "klineage_scrub_stack");
}

Status Helpers::refill(CUstream stream, const FillTable &table, std::uint32_t word, bool usesLocal)
{
    std::vector<Region> regions = table.all();
    regions.insert(regions.end(), m_slack.begin(), m_slack.end());
    regions = cut(regions);
    const std::string what = "say what is refilled";
    const std::size_t regionBytes = regions.size() * sizeof(Region);
    const std::size_t guardBytes = m_guards.size() * sizeof(Guard);
    if (auto done = ensureRoom(regionBytes + guardBytes); !done)
        return done;
    CUdeviceptr at = m_room.get() + marksBytes();
    if (!regions.empty()) {
        if (auto done = m_driver.toDevice(at, regions.data(), regionBytes, what); !done)
            return done;
        if (auto done = overRegions(m_fill, stream, at, regions.size(), word, 0); !done)
            return done;
        at += regionBytes;
    }
    if (!m_guards.empty()) {
        if (auto done = m_driver.toDevice(at, m_guards.data(), guardBytes, what); !done)
            return done;
        if (auto done = overGuards(m_guard, stream, at, m_guards.size(), 0); !done)
            return done;
    }
    if (auto done = usesLocal ? overwriteStacks(stream, word) : Status(); !done)
        return done;
    CUdeviceptr used = m_room.get() + marksBytes();
    std::uint64_t usedBytes = m_roomBytes - marksBytes();
    void *wiped[] = {&used, &usedBytes, &word};
    if (auto done = launch(m_wipe, m_multiprocessors, 1, fillThreads, 0, stream, wiped, "klineage_wipe");
        !done)
        return done;
    if (auto done = flushCache(stream); !done)
        return done;
    // Last, so that no register holds an address of the gate's own memory.
    unsigned bytes = m_sharedBytes;
    void *arguments[] = {&word, &bytes};
    return launch(m_scrub, m_multiprocessors, 1, 1024, m_sharedBytes, stream, arguments, "klineage_scrub");
}

OutputTable::OutputTable(OutputSets outputs, const std::vector<std::vector<CUdeviceptr>> &addresses)
    : m_outputs(std::move(outputs))
{
    for (std::size_t set = 0; set < addresses.size(); ++set) {
        std::uint64_t slot = set * m_outputs.tilesPerSet();
        for (std::size_t i = 0; i < m_outputs.layouts.size(); ++i) {
            const TileLayout &layout = m_outputs.layouts[i];
            m_entries.push_back(
                {addresses[set][i], layout.elements, layout.tileElements, kindOf(layout.dtype), slot});
            slot += layout.tiles();
        }
    }
}

Result<std::vector<TilePrint>> Helpers::look(CUstream stream, const OutputTable &table, std::size_t first,
                                             std::size_t count, std::uint32_t word)
{
    const OutputSets &outputs = table.m_outputs;
    const std::size_t sets = outputs.sets.size();
    const std::size_t tiles = outputs.tilesPerSet();
    std::size_t widest = 0;
    for (const TileLayout &layout : outputs.layouts)
        widest = std::max(widest, layout.tiles());
    first %= sets;
    count = std::min(count, sets);
    const std::size_t straight = std::min(count, sets - first);
    std::vector<TilePrint> prints(count * tiles);
    const std::string what = "look at outputs";
    const std::size_t entryBytes = table.m_entries.size() * sizeof(LookedAt);
    if (auto done = ensureRoom(entryBytes + sets * tiles * sizeof(TilePrint)); !done)
        return tl::unexpected(done.error());
    const CUdeviceptr entries = m_room.get() + marksBytes();
    CUdeviceptr room = entries + entryBytes;
    if (auto done = m_driver.toDevice(entries, table.m_entries.data(), entryBytes, what); !done)
        return tl::unexpected(done.error());
    const std::array<std::pair<std::size_t, std::size_t>, 2> spans{std::pair{first, straight},
                                                                   {std::size_t{0}, count - straight}};
    for (const auto &[begin, length] : spans) {
        if (length == 0)
            continue;
        CUdeviceptr address = entries + begin * outputs.layouts.size() * sizeof(LookedAt);
        std::uint32_t key = outputs.key;
        void *arguments[] = {&address, &room, &key, &word};
        if (auto done = launch(m_print, static_cast<unsigned>(widest),
                               static_cast<unsigned>(length * outputs.layouts.size()), printThreads, 0,
                               stream, arguments, "klineage_print");
            !done)
            return tl::unexpected(done.error());
    }
    if (auto done = m_driver.check(m_driver.streamSynchronize(stream), what); !done)
        return tl::unexpected(done.error());
    TilePrint *target = prints.data();
    for (const auto &[begin, length] : spans) {
        if (length == 0)
            continue;
        if (auto done = m_driver.check(m_driver.memcpyDtoH(target, room + begin * tiles * sizeof(TilePrint),
                                                           length * tiles * sizeof(TilePrint)),
                                       what);
            !done)
            return tl::unexpected(done.error());
        target += length * tiles;
    }
    return prints;
}

BlendJob blendJob(const CopyRange &range, CUdeviceptr to, CUdeviceptr from, CUdeviceptr with)
{
    const Blend &blend = range.blend;
    const std::uint64_t size = kernel::sizeOf(blend.dtype);
    const std::uint64_t known = kindOf(blend.dtype);
    return {to + range.toOffset,
            from + range.fromOffset,
            with + range.fromOffset,
            range.bytes / size,
            blend.piece,
            blend.unit,
            blend.key,
            blend.mean,
            static_cast<std::uint64_t>(blend.kind),
            isComputed(blend.kind) ? known : 8 + size};
}

Status Helpers::blend(CUstream stream, const std::vector<BlendJob> &jobs)
{
    if (jobs.empty())
        return {};
    if (!m_module)
        return fail(ErrorCode::Internal, "Cannot make content: the gate's kernels are not installed.");
    const std::string what = "make the content of buffers";
    const std::size_t bytes = jobs.size() * sizeof(BlendJob);
    if (auto done = ensureRoom(bytes); !done)
        return done;
    CUdeviceptr address = m_room.get() + marksBytes();
    if (auto done = m_driver.toDevice(address, jobs.data(), bytes, what); !done)
        return done;
    void *arguments[] = {&address};
    const auto count = static_cast<unsigned>(jobs.size());
    const unsigned chunks = std::max(1u, 16 * m_multiprocessors / count);
    return launch(m_blend, chunks, count, fillThreads, 0, stream, arguments, "klineage_blend");
}

Status Helpers::mark(CUstream stream, int which) const
{
    CUdeviceptr marks = m_room.get() + static_cast<std::size_t>(which) * m_multiprocessors * sizeof(Mark);
    void *arguments[] = {&marks};
    return launch(m_probe, m_multiprocessors, 1, 1, 0, stream, arguments, "klineage_probe");
}

double Helpers::clockMhz() const
{
    std::vector<Mark> marks(2 * m_multiprocessors);
    if (m_driver.memcpyDtoH(marks.data(), m_room.get(), marks.size() * sizeof(Mark)) != CUDA_SUCCESS)
        return 0;
    const auto middle = marks.begin() + m_multiprocessors;
    std::map<std::uint64_t, const Mark *> before;
    for (auto mark = marks.begin(); mark != middle; ++mark)
        before[mark->sm] = &*mark;
    std::vector<double> rates;
    for (auto mark = middle; mark != marks.end(); ++mark) {
        const auto found = before.find(mark->sm);
        if (found == before.end() || mark->nanoseconds <= found->second->nanoseconds)
            continue;
        rates.push_back(1e3 * static_cast<double>(mark->cycles - found->second->cycles)
                        / static_cast<double>(mark->nanoseconds - found->second->nanoseconds));
    }
    if (rates.empty())
        return 0;
    std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2),
                     rates.end());
    return rates[rates.size() / 2];
}

} // namespace klineage::gate::cuda
