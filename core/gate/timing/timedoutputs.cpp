// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/timedoutputs.h"

#include "core/base/random.h"
#include "core/gate/check/comparison.h"

#include <chrono>

namespace klineage::gate {

namespace {

constexpr std::size_t mostTiles = 2048; ///< of one rotation: as much as travels with each sample
constexpr std::size_t mostOfAnOutput = 128;
// Of a trial: what the oracle computes takes time of its own, which no deadline bounds.
constexpr std::size_t mostDoubts = 64;
constexpr double mostDoubtSeconds = 10;

} // namespace

TileRule TimedOutputs::ruleOf(std::size_t output) const
{
    const auto &selection = m_buffers.model().selection;
    const std::string &name = m_buffers.outputNames().at(output);
    if (selection && name == selection->indices)
        return TileRule::Written; // which of equal elements are chosen is free
    return selection && name == selection->values && !selection->sorted ? TileRule::AnyOrder : TileRule::Full;
}

void TimedOutputs::beginBlock()
{
    m_known.clear();
    m_first.clear();
    m_last.clear();
    m_content = 0;
    m_outputs = m_buffers.outputs();
    m_outputs.key = m_key;
    const std::size_t places = std::max<std::size_t>(1, m_outputs.sets.size() * m_outputs.layouts.size());
    for (std::size_t i = 0; i < m_outputs.layouts.size(); ++i) {
        TileLayout &layout = m_outputs.layouts[i];
        const std::size_t tiles = std::clamp<std::size_t>(mostTiles / places, 1, mostOfAnOutput);
        layout = tileLayout(layout.dtype, layout.elements, ruleOf(i) == TileRule::AnyOrder ? 1 : tiles);
    }
}

void TimedOutputs::beginContent(std::uint64_t content)
{
    m_content = content;
    m_buffers.setContent(content);
    m_first.clear();
    m_last.clear();
    std::erase_if(m_known, [this](const auto &entry) { return !m_buffers.audited(entry.first); });
}

TimedOutputs::Tiles TimedOutputs::tilesOf(const CaseInstance &content) const
{
    Tiles tiles;
    for (std::size_t i = 0; i < m_outputs.layouts.size(); ++i)
        tiles.push_back(expectedTiles(content.expected.at(m_buffers.outputNames()[i]), m_outputs.layouts[i],
                                      content.tolerance, m_outputs.key));
    return tiles;
}

const TimedOutputs::Tiles *TimedOutputs::known(std::size_t set)
{
    const auto found = m_known.find(set);
    if (found != m_known.end())
        return &found->second;
    if (!m_buffers.audited(set))
        return nullptr;
    // Sets with the same content share what is expected of it.
    for (const auto &[other, tiles] : m_known) {
        if (m_buffers.audited(other) && m_buffers.seedOf(other) == m_buffers.seedOf(set))
            return &(m_known[set] = tiles);
    }
    return &(m_known[set] = tilesOf(m_buffers.contentOf(set)));
}

StageResult<void> TimedOutputs::compute(std::size_t set)
{
    const auto content = m_oracle(set);
    if (!content)
        return tl::unexpected(content.error());
    ++m_computed;
    m_known[set] = tilesOf(**content);
    return {};
}

std::optional<TimedFault> TimedOutputs::judge(const Seen &seen, std::size_t set, const Tiles &expected) const
{
    std::size_t at = 0;
    for (std::size_t output = 0; output < expected.size(); ++output) {
        const TileLayout &layout = m_outputs.layouts[output];
        for (std::size_t tile = 0; tile < layout.tiles(); ++tile, ++at) {
            if (const auto fault =
                    tileFault(seen.prints[at], expected[output][tile], ruleOf(output), layout.dtype))
                return faultAt(seen, set, output, tile, *fault);
        }
    }
    return std::nullopt;
}

TimedFault TimedOutputs::faultAt(const Seen &seen, std::size_t set, std::size_t output, std::size_t tile,
                                 const TileFault &fault) const
{
    const TileLayout &layout = m_outputs.layouts[output];
    const std::size_t first = tile * layout.tileElements;
    const std::size_t last = std::min(first + layout.tileElements, layout.elements) - 1;
    const std::string &name = m_buffers.outputNames()[output];
    const auto &shape = m_buffers.shapeOf(name);
    return {name,
            elementName(name, shape, first),
            elementName(name, shape, last),
            fault.what,
            fault.unwritten > 0,
            set,
            seen.launch};
}

std::optional<TimedFault> TimedOutputs::leftOut(const Seen &seen, std::size_t set, bool &doubtful) const
{
    std::size_t at = 0;
    for (std::size_t output = 0; output < m_outputs.layouts.size(); ++output) {
        const TileLayout &layout = m_outputs.layouts[output];
        for (std::size_t tile = 0; tile < layout.tiles(); ++tile, ++at) {
            // A fill word is no finite number, so it may be right where there are such; an integer of a byte may be it by chance.
            doubtful |= seen.prints[at].unwritten > 0 && kernel::sizeOf(layout.dtype) > 1;
            if (ruleOf(output) != TileRule::Written)
                continue;
            ExpectedTile any;
            any.elements = std::min(layout.tileElements, layout.elements - tile * layout.tileElements);
            if (const auto fault = tileFault(seen.prints[at], any, TileRule::Written, layout.dtype))
                return faultAt(seen, set, output, tile, *fault);
        }
    }
    return std::nullopt;
}

TimedOutputs::Looked<TimedOutputs::Wrong> TimedOutputs::lookAt(std::size_t set, Seen seen)
{
    const auto key = std::pair{seen.side, set};
    const auto last = m_last.find(key);
    if (last != m_last.end()) {
        if (last->second.prints == seen.prints)
            return std::nullopt;
        m_varying.insert(seen.side);
    }
    const Tiles *expected = known(set);
    if (!expected) {
        const auto first = m_first.find(set);
        bool doubtful = false;
        if (first != m_first.end() && first->second.prints == seen.prints) {
            m_last.insert_or_assign(key, std::move(seen));
            return std::nullopt;
        }
        if (first == m_first.end()) {
            if (const auto fault = leftOut(seen, set, doubtful))
                return Wrong{seen.side, *fault};
            m_first.emplace(set, seen);
        } else {
            Tiles like;
            std::size_t at = 0;
            for (std::size_t i = 0; i < m_outputs.layouts.size(); ++i) {
                const std::size_t tiles = m_outputs.layouts[i].tiles();
                like.push_back(tilesLike(std::span(first->second.prints).subspan(at, tiles),
                                         m_outputs.layouts[i], m_buffers.model().tolerance,
                                         m_buffers.rmsOf(i)));
                at += tiles;
            }
            doubtful = judge(seen, set, like).has_value();
        }
        if (doubtful && m_doubts < mostDoubts && m_doubtSeconds < mostDoubtSeconds) {
            ++m_doubts;
            const auto begin = std::chrono::steady_clock::now();
            if (auto computed = compute(set); !computed)
                return tl::unexpected(computed.error());
            m_doubtSeconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            expected = known(set);
            if (first != m_first.end()) {
                if (auto fault = judge(first->second, set, *expected))
                    return Wrong{first->second.side, *fault};
            }
        }
    }
    if (expected) {
        if (auto fault = judge(seen, set, *expected))
            return Wrong{seen.side, *fault};
    }
    m_last.insert_or_assign(key, std::move(seen));
    return std::nullopt;
}

TimedOutputs::Looked<TimedOutputs::Wrong> TimedOutputs::look(std::size_t side, const TimedRun &run,
                                                             const std::vector<TilePrint> &prints)
{
    const std::size_t tiles = m_outputs.tilesPerSet();
    if (run.content != m_content)
        beginContent(run.content);
    if (tiles == 0)
        return std::nullopt;
    for (std::size_t launch = 0; launch < prints.size() / tiles; ++launch) {
        const auto begin = prints.begin() + static_cast<std::ptrdiff_t>(launch * tiles);
        const std::size_t set = (run.first + launch) % m_buffers.count();
        if (launch >= static_cast<std::size_t>(run.repeats)) {
            if (auto wrong = lookAround(side, set, launch, std::span(prints).subspan(launch * tiles, tiles)))
                return wrong;
            continue;
        }
        ++m_launches;
        auto looked = lookAt(set, {side, launch, {begin, begin + static_cast<std::ptrdiff_t>(tiles)}});
        if (!looked || *looked)
            return looked;
    }
    return std::nullopt;
}

std::optional<TimedOutputs::Wrong> TimedOutputs::lookKnown(std::size_t side, const TimedRun &run,
                                                           const std::vector<TilePrint> &prints,
                                                           const std::map<std::size_t, std::size_t> &known)
{
    const std::size_t tiles = m_outputs.tilesPerSet();
    const auto runs = static_cast<std::size_t>(run.repeats);
    for (std::size_t launch = 0; tiles > 0 && launch < prints.size() / tiles; ++launch) {
        const std::size_t set = (run.first + launch) % m_buffers.count();
        const auto own = std::span(prints).subspan(launch * tiles, tiles);
        if (launch >= runs) {
            if (auto wrong = lookAround(side, set, launch, own))
                return wrong;
            continue;
        }
        ++m_launches;
        const auto found = known.find(set);
        if (found == known.end())
            continue;
        auto &expected = m_knownContents[found->second];
        if (expected.empty())
            expected = tilesOf(m_buffers.known(found->second));
        if (auto fault = judge({side, launch, {own.begin(), own.end()}}, set, expected))
            return Wrong{side, *fault};
    }
    return std::nullopt;
}

std::optional<TimedOutputs::Wrong> TimedOutputs::lookAround(std::size_t side, std::size_t set,
                                                            std::size_t launch,
                                                            std::span<const TilePrint> prints) const
{
    std::size_t at = 0;
    for (std::size_t output = 0; output < m_outputs.layouts.size(); ++output) {
        const TileLayout &layout = m_outputs.layouts[output];
        for (std::size_t tile = 0; tile < layout.tiles(); ++tile, ++at) {
            const std::size_t first = tile * layout.tileElements;
            const std::size_t last = std::min(first + layout.tileElements, layout.elements) - 1;
            const std::size_t written = last - first + 1 - prints[at].unwritten;
            if (written == 0)
                continue;
            const std::string &name = m_buffers.outputNames()[output];
            const auto &shape = m_buffers.shapeOf(name);
            TimedFault fault{
                name,  elementName(name, shape, first), elementName(name, shape, last), "", false, set,
                launch};
            fault.what = std::to_string(written) + " elements were written by launches of other buffers";
            return Wrong{side, std::move(fault)};
        }
    }
    return std::nullopt;
}

TimedOutputs::Looked<TimedOutputs::Wrong> TimedOutputs::lookCloser()
{
    std::vector<std::size_t> unknown;
    for (const auto &[set, seen] : m_first) {
        if (!known(set))
            unknown.push_back(set);
    }
    if (unknown.empty())
        return std::nullopt;
    const std::size_t set = unknown[entropy() % unknown.size()];
    if (auto computed = compute(set); !computed)
        return tl::unexpected(computed.error());
    if (auto fault = judge(m_first.at(set), set, *known(set)))
        return Wrong{m_first.at(set).side, *fault};
    for (const auto &[key, seen] : m_last) {
        if (key.second != set)
            continue;
        if (auto fault = judge(seen, set, *known(set)))
            return Wrong{key.first, *fault};
    }
    return std::nullopt;
}

} // namespace klineage::gate
