// SPDX-License-Identifier: GPL-3.0-or-later
//
// What timed runs read and write. There are more buffers of each tensor than the cache holds, and which of them make up a set is
// drawn anew for each block of rounds: their addresses, and what the inputs hold. A few sets hold the content of a seed whose result
// the oracle knows ("audited"); the others hold the same values rotated by a random number of rows, so that no two sets of a block, and
// no two blocks, have the same content, and a candidate cannot tell which sets will be looked at.
#pragma once

#include "core/base/random.h"
#include "core/gate/check/checkedset.h"

#include <map>

namespace klineage::gate {

class TimedBuffers
{
public:
    /// contents: at least one instance of the timed case. The session must outlive this.
    TimedBuffers(WorkerSession &session, std::vector<CaseInstancePtr> contents);

    /// Allocates the tensors of `sets` sets and uploads each seed's content once.
    [[nodiscard]] WorkerResult<void> allocate(std::size_t sets);
    /// Allocates the workspaces of one side's plan, for every set.
    [[nodiscard]] WorkerResult<void> allocateWorkspaces(const std::string &side,
                                                        const kernel::ResolvedPlan &plan);

    /// Draws which buffers make up each set, and what the inputs hold.
    [[nodiscard]] WorkerResult<void> redraw(std::uint64_t key);

    /// The buffers of each set under the names that the side's plan sees, and what is refilled before a sample.
    [[nodiscard]] std::vector<BufferSet> bindings(const std::string &side) const;
    [[nodiscard]] FillSets fills(const std::string &side) const;
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
    /// Of an audited set.
    [[nodiscard]] const CaseInstance &contentOf(std::size_t set) const
    {
        return *m_contents[m_group.at(set) % m_contents.size()];
    }
    /// The tensors of any set as they are drawn now.
    [[nodiscard]] std::vector<HostTensor> tensorsOf(std::size_t set) const;

    [[nodiscard]] std::size_t count() const { return m_sets; }
    [[nodiscard]] bool audited(std::size_t set) const { return m_group.at(set) < m_audited; }
    [[nodiscard]] std::uint64_t seedOf(std::size_t set) const { return contentOf(set).seed; }
    /// Looks at every byte of an audited set after the side ran on it: red zones, inputs, outputs. Nothing when all is well.
    [[nodiscard]] WorkerResult<std::optional<Finding>> inspect(std::size_t set, const std::string &side);

private:
    /// The copies of one tensor or workspace; all were uploaded with the red zones of one key.
    struct Family {
        BufferLayout layout;
        std::uint64_t key = 0;
        bool cleared = false; ///< a workspace that the backend zeroes
        std::vector<BufferId> buffers;
        std::vector<std::size_t> places; ///< set -> index into buffers
    };
    [[nodiscard]] WorkerResult<Family> makeFamily(BufferLayout layout, std::span<const std::byte> content);
    [[nodiscard]] WorkerResult<void> uploadMasters(std::size_t tensor);
    [[nodiscard]] std::size_t rotation(std::size_t tensor, std::size_t set, std::uint64_t key) const;

    WorkerSession &m_session;
    std::vector<CaseInstancePtr> m_contents;
    std::size_t m_sets = 0;
    std::uint64_t m_key = 0; ///< of the present drawing
    std::vector<std::string> m_outputNames;
    std::vector<double> m_outputRms;
    std::size_t m_audited = 0;                    ///< groups below this hold a seed's content as it is
    std::vector<std::size_t> m_group;             ///< set -> group of contents
    std::vector<Family> m_tensors;                ///< in the order of the instances' tensors
    std::vector<std::vector<BufferId>> m_masters; ///< [tensor][content]: an input's content alone
    std::map<std::string, std::vector<Family>> m_workspaces; ///< by side
};

} // namespace klineage::gate
