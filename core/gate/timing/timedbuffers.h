// SPDX-License-Identifier: GPL-3.0-or-later
//
// What timed runs read and write. There are more buffers of each tensor than the cache holds, and which of them make up a set is
// drawn anew for each block of rounds: their addresses, and what the inputs hold. Each set has content of its own, made of two seeds'
// piece by piece (core/device/blend.h), in every block another, and on a device with kernels of ours in each half of a round: no row and no
// piece of it comes twice, so that nothing that a candidate could remember of an earlier run, under whatever key and wherever it keeps
// it, is of use. What their outputs have to be the oracle computes when it is asked, from the same bytes made again here. Integers
// (offsets and the like) stay as their seed has them. On a processor a few sets hold the content of a seed as it is ("audited"), whose
// result the oracle knows; sets may be given such content, or a hard one, for a sample that nobody times (timing/decoys.h).
#pragma once

#include "core/base/random.h"
#include "core/gate/check/checkedset.h"

#include <map>

namespace klineage::gate {

class TimedBuffers
{
public:
    /// Every set holds one of the contents as it is: for runs that nobody times. The session must outlive this. What the judge opens is
    /// filled and looked at on the device, in a tray that a copy is brought to.
    TimedBuffers(WorkerSession &session, std::vector<CaseInstancePtr> contents, DeviceJudge *judge = nullptr);
    /// contents: at least one instance of the workload's timed case.
    /// hard: more of those, which are never mixed.
    TimedBuffers(WorkerSession &session, const workload::Workload &workload,
                 std::vector<CaseInstancePtr> contents, DeviceJudge *judge = nullptr,
                 const std::vector<CaseInstancePtr> &hard = {});
    /// The same contents in another worker, where nothing is allocated yet. Of as many sets, and drawn with the same key, sets hold the same.
    TimedBuffers(WorkerSession &session, const TimedBuffers &other)
        : m_session(session)
        , m_contents(other.m_contents)
        , m_known(other.m_known)
        , m_blends(other.m_blends)
        , m_judge(nullptr)
    {}

    /// Allocates the tensors of `sets` sets and uploads each seed's content once.
    [[nodiscard]] WorkerResult<void> allocate(std::size_t sets);
    /// Allocates the workspaces of one side's plan: one for every set, or on a host as many as fit 512 MiB, which sets then share.
    [[nodiscard]] WorkerResult<void> allocateWorkspaces(const std::string &side,
                                                        const kernel::ResolvedPlan &plan);

    /// Draws which buffers make up each set, and what the inputs hold.
    [[nodiscard]] WorkerResult<void> redraw(std::uint64_t key);
    /// The inputs of each set, and how the worker makes them again, with other keys (TimedRun::content); those of audited sets are copies and
    /// stay as they are.
    [[nodiscard]] std::vector<std::vector<CopyRange>> contents() const;
    /// What the sets hold from now on; 0: what redraw() made.
    void setContent(std::uint64_t content) { m_content = content; }
    /// Contents whose results are known: the seeds', then the hard ones.
    [[nodiscard]] std::size_t knownCount() const { return m_known.size(); }
    [[nodiscard]] std::size_t seedCount() const { return m_contents.size(); }
    [[nodiscard]] const CaseInstance &known(std::size_t index) const { return *m_known.at(index); }
    /// What puts one of these into a set (TimedRun::known).
    [[nodiscard]] std::vector<CopyRange> knownRanges(std::size_t set, std::size_t known) const;
    /// A few bytes of an input of a set: what they are at first, and as the known content has them.
    struct Change {
        CopyRange before;
        CopyRange then;
    };
    /// Drawn anew each time, from 16 bytes to a sixty-fourth of a tensor; nothing where there is no other content. What was worked out for the set from
    /// what it held before is wrong then, and only who compares all of it can know.
    [[nodiscard]] std::optional<Change> changeOf(std::size_t set, std::size_t known) const;
    /// Gives sets back what no sample makes anew.
    [[nodiscard]] WorkerResult<void> restore(const std::vector<std::size_t> &sets);

    /// The buffers of each set under the names that the side's plan sees, and what is refilled before a sample.
    [[nodiscard]] std::vector<BufferSet> bindings(const std::string &side) const;
    [[nodiscard]] FillSets fills(const std::string &side) const;
    /// Where a candidate could keep something between the copies of all of them.
    [[nodiscard]] WorkerResult<Guards> guards();
    /// The outputs of each set, each uncut; in the order of outputNames().
    [[nodiscard]] OutputSets outputs() const;
    [[nodiscard]] const std::vector<std::string> &outputNames() const { return m_outputNames; }
    [[nodiscard]] const std::vector<std::int64_t> &shapeOf(const std::string &tensor) const;
    [[nodiscard]] double rmsOf(std::size_t output) const
    {
        return m_outputRms.at(output);
    } ///< of one content
    /// Tolerance and selection are those of every set.
    [[nodiscard]] const CaseInstance &model() const { return *m_contents.front(); }
    /// Of workspaces that sets share, which are refilled before each run that finds a used one.
    [[nodiscard]] std::size_t sharedBytes() const;
    /// Of an audited set.
    [[nodiscard]] const CaseInstance &contentOf(std::size_t set) const
    {
        return *m_contents[firstContent(set)];
    }
    /// The tensors of any set as they are drawn now.
    [[nodiscard]] std::vector<HostTensor> tensorsOf(std::size_t set) const;

    [[nodiscard]] std::size_t count() const { return m_sets; }
    [[nodiscard]] bool audited(std::size_t set) const { return m_group.at(set) < m_audited; }
    [[nodiscard]] std::uint64_t seedOf(std::size_t set) const { return contentOf(set).seed; }
    /// Offsets and the like are among the inputs.
    [[nodiscard]] bool hasIntegers() const;
    /// Looks at every byte of an audited set after the side ran on it: red zones, inputs, outputs. Nothing when all is well.
    [[nodiscard]] WorkerResult<std::optional<Finding>> inspect(std::size_t set, const std::string &side);
    /// The same of any set. content: what it was given, and what its outputs have to be.
    [[nodiscard]] WorkerResult<std::optional<Finding>> inspect(std::size_t set, const std::string &side,
                                                               const CaseInstance &content,
                                                               bool withInputs = true);
    /// The same of a set that was given a known content.
    [[nodiscard]] WorkerResult<std::optional<Finding>> inspectKnown(std::size_t set, const std::string &side,
                                                                    std::size_t known, bool withInputs);

    /// errorBeforeRounding() of the outputs that inspect() looked at last, where the content tells it.
    [[nodiscard]] const Precision &precision() const { return m_precision; }

    [[nodiscard]] std::size_t inputBytes() const; ///< of a set

    /// What a byte of a buffer belongs to.
    struct Spot {
        std::string name; ///< of a tensor or a workspace; empty: of nothing
        std::size_t set = 0;
        bool within = false; ///< false: of its red zones
    };
    [[nodiscard]] Spot spotOf(const BufferBinding &byte) const;

private:
    /// Where a copy begins, with its red zone.
    struct Place {
        BufferId buffer = 0;
        std::size_t offset = 0;
    };
    /// The copies of one tensor or workspace; all were uploaded with the red zones of one key.
    struct Family {
        BufferLayout layout;
        std::uint64_t key = 0;
        bool cleared = false; ///< a workspace that the backend zeroes
        std::vector<Place>
            copies; ///< in a buffer each, or ascending in one (WorkerSession::packsBuffers(), copyplaces.h)
        std::vector<std::size_t> places; ///< set -> index into copies
        std::size_t placeBytes = 0;      ///< that there is memory of where a copy begins
        std::optional<BufferId>
            zones{};       ///< what the copies' zones hold, as composeZones() has it; made when first wanted
        BufferId tray = 0; ///< one copy's, which the judge has open: what it looks at is brought there
        DeviceJudge::OpenedPtr opened{};
        [[nodiscard]] const Place &of(std::size_t set) const { return copies[places[set]]; }
        /// Of the copy's own bytes.
        [[nodiscard]] BufferBinding binding(std::size_t set) const
        {
            return {of(set).buffer, of(set).offset + layout.offset()};
        }
    };
    [[nodiscard]] std::size_t roomFor(std::size_t bytes) const;
    [[nodiscard]] WorkerResult<void> makePlaces(Family &family, std::size_t copies);
    [[nodiscard]] WorkerResult<BufferId> uploadZones(const Family &family);
    [[nodiscard]] WorkerResult<bool> zonesAreWhole(const Family &family, const Place &place);
    /// Writes the first copy. content: an input's; empty: poison.
    [[nodiscard]] WorkerResult<void> writeFirst(const Family &family, std::span<const std::byte> content);
    [[nodiscard]] WorkerResult<Family> makeFamily(BufferLayout layout, std::span<const std::byte> content,
                                                  std::size_t copies);
    [[nodiscard]] WorkerResult<void> uploadMasters(std::size_t tensor);
    [[nodiscard]] CopyRange rangeOf(std::size_t tensor, std::size_t set) const;
    /// How a set's copy of an input is made; nothing: it is a content as it is.
    [[nodiscard]] std::optional<Blend> blendOf(std::size_t tensor, std::size_t set) const;
    [[nodiscard]] std::size_t firstContent(std::size_t set) const { return m_group[set] % m_contents.size(); }
    [[nodiscard]] std::size_t secondContent(std::size_t set) const
    {
        return (m_group[set] + 1) % m_contents.size();
    }

    WorkerSession &m_session;
    std::vector<CaseInstancePtr> m_contents;
    std::vector<CaseInstancePtr> m_known; ///< those, and the hard ones
    std::vector<std::optional<Blend>>
        m_blends; ///< by tensor, all but the key; nothing: what is never blended
    DeviceJudge *m_judge;
    Precision m_precision;
    std::size_t m_sets = 0;
    std::uint64_t m_key = 0;     ///< of the present drawing
    std::uint64_t m_content = 0; ///< see setContent()
    std::vector<std::string> m_outputNames;
    std::vector<double> m_outputRms;
    std::size_t m_audited = 0;                    ///< groups below this hold a seed's content as it is
    std::vector<std::size_t> m_group;             ///< set -> group of contents
    std::vector<Family> m_tensors;                ///< in the order of the instances' tensors
    std::vector<FillRegion> m_slack;              ///< of the masters, the zones and the trays
    std::vector<std::vector<BufferId>> m_masters; ///< [tensor][known content]: an input's content alone
    std::map<std::string, std::vector<Family>> m_workspaces; ///< by side
};

} // namespace klineage::gate
