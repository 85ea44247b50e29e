// SPDX-License-Identifier: GPL-3.0-or-later
//
// Looks at every output of every timed launch of a plan, through the fingerprints that come with each sample. What they have to be:
// from the oracle, for sets whose content it has computed; for the others what the first side to run on the set left there. When two
// disagree the oracle computes that set too, and tells who is wrong. So a launch that does nothing, or is wrong now and then, is
// found when it happens; one that is always wrong on some content, when that content is among what the oracle knows, another side (the
// parent) is right on it, or it is drawn at the end (lookCloser()).
#pragma once

#include "core/gate/check/tilecheck.h"
#include "core/gate/session/verdicttext.h"
#include "core/gate/timing/timedbuffers.h"

namespace klineage::gate {

class TimedOutputs
{
public:
    /// Computes what a set's outputs have to be.
    using Oracle = std::function<StageResult<CaseInstancePtr>(std::size_t set)>;

    /// A side whose result in a timed sample is wrong.
    struct Wrong {
        std::size_t side = 0;
        TimedFault fault;
    };
    template <typename T>
    using Looked = StageResult<std::optional<T>>; ///< nothing when all is well

    TimedOutputs(TimedBuffers &buffers, Oracle oracle)
        : m_buffers(buffers)
        , m_oracle(std::move(oracle))
    {}

    /// The buffers were drawn anew: forgets what was seen.
    void beginBlock();
    /// What the worker is to look at, in this block.
    [[nodiscard]] const OutputSets &outputs() const { return m_outputs; }

    /// Judges a sample of a side. prints: see TimedSample. Sets around those that were run must be as they were filled. A run with another
    /// content than the one before is the first on it.
    [[nodiscard]] Looked<Wrong> look(std::size_t side, const TimedRun &run,
                                     const std::vector<TilePrint> &prints);
    /// Judges a sample in which some sets hold known contents (set -> index), and these alone; other samples are judged as if it had not been.
    [[nodiscard]] std::optional<Wrong> lookKnown(std::size_t side, const TimedRun &run,
                                                 const std::vector<TilePrint> &prints,
                                                 const std::map<std::size_t, std::size_t> &known);
    /// Has the oracle compute one more set of this block, drawn now from those that it has not, and judges what all sides left there last.
    [[nodiscard]] Looked<Wrong> lookCloser();

    [[nodiscard]] std::size_t launches() const { return m_launches; } ///< of plans, that were looked at
    [[nodiscard]] std::size_t computed() const
    {
        return m_computed;
    } ///< sets that the oracle computed besides
    /// The side's results on one set were not always the same bits: with atomics in another order, say.
    [[nodiscard]] bool varies(std::size_t side) const { return m_varying.contains(side); }

private:
    using Tiles = std::vector<std::vector<ExpectedTile>>; ///< [output][tile]
    struct Seen {
        std::size_t side = 0;
        std::size_t launch = 0; ///< in its sample
        std::vector<TilePrint> prints;
    };

    void beginContent(std::uint64_t content);
    [[nodiscard]] std::optional<Wrong> lookAround(std::size_t side, std::size_t set, std::size_t launch,
                                                  std::span<const TilePrint> prints) const;
    [[nodiscard]] TimedFault faultAt(const Seen &seen, std::size_t set, std::size_t output, std::size_t tile,
                                     const TileFault &fault) const;
    /// Of the first side on a set: elements that were surely not written. doubtful: others may be such.
    [[nodiscard]] std::optional<TimedFault> leftOut(const Seen &seen, std::size_t set, bool &doubtful) const;
    [[nodiscard]] Tiles tilesOf(const CaseInstance &content) const;
    /// nullptr: the oracle does not know the set.
    [[nodiscard]] const Tiles *known(std::size_t set);
    [[nodiscard]] StageResult<void> compute(std::size_t set);
    [[nodiscard]] std::optional<TimedFault> judge(const Seen &seen, std::size_t set,
                                                  const Tiles &expected) const;
    [[nodiscard]] Looked<Wrong> lookAt(std::size_t set, Seen seen);
    [[nodiscard]] TileRule ruleOf(std::size_t output) const;

    TimedBuffers &m_buffers;
    Oracle m_oracle;
    std::uint64_t m_content = 0;                                       ///< that the sets hold now
    const std::uint32_t m_key = static_cast<std::uint32_t>(entropy()); ///< of the fingerprints
    OutputSets m_outputs;
    std::map<std::size_t, Tiles> m_known;                       ///< of this block's sets
    std::map<std::size_t, Tiles> m_knownContents;               ///< by index
    std::map<std::size_t, Seen> m_first;                        ///< by set
    std::map<std::pair<std::size_t, std::size_t>, Seen> m_last; ///< by side and set
    std::set<std::size_t> m_varying;
    std::size_t m_launches = 0;
    std::size_t m_computed = 0;
    std::size_t m_doubts = 0;
    double m_doubtSeconds = 0;
};

} // namespace klineage::gate
