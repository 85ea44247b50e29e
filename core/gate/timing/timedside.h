// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/timing/sideworker.h"

namespace klineage::gate {

/// A plan or a vendor routine that is measured, and its place in the worker: the module's code and the buffers that it sees.
/// Placement alone can make two copies of one kernel differ by half a percent, so every block of rounds places all sides anew.
class TimedSide
{
public:
    /// A plan over the worker's buffers; allocates its workspaces. prepared and worker must outlive this.
    [[nodiscard]] static tl::expected<TimedSide, ProfileEnd> plan(const std::string &name, Culprit culprit,
                                                                  PreparedCandidate &prepared,
                                                                  SideWorker &worker, const Where &where);
    /// OpenCL: loads the module and compiles the plan, for good: a worker that is sealed loads nothing.
    [[nodiscard]] tl::expected<void, ProfileEnd> load(const Where &where);
    /// Uses a module that is loaded, and whose plan is compiled, already.
    void adopt(ModuleId module) { m_module = module; }
    /// A vendor routine that the worker already has.
    [[nodiscard]] static TimedSide reference(const std::string &provider, SubjectId subject,
                                             SideWorker &worker);
    /// A vendor routine in a process of its own, with buffers of its own: there is nothing to place.
    [[nodiscard]] static TimedSide elsewhere(const std::string &name)
    {
        return TimedSide(name, Culprit::Reference);
    }

    [[nodiscard]] const std::string &name() const { return m_name; }
    [[nodiscard]] Culprit culprit() const { return m_culprit; }
    [[nodiscard]] bool isPlan() const { return m_prepared != nullptr; }
    [[nodiscard]] SideWorker *worker() const { return m_worker; }             ///< nullptr: elsewhere
    [[nodiscard]] SubjectId subject() const { return m_subject.value_or(0); } ///< 0: elsewhere
    [[nodiscard]] std::optional<ModuleId> module() const { return m_module; } ///< of a plan that is placed
    /// Of that module, which no run may change.
    [[nodiscard]] std::vector<ModuleVariable> variables() const;

    /// Loads the module and binds the buffers as they are drawn now. outputs: what is looked at after each sample of a plan. A vendor
    /// routine may bring its result into another layout first, which is no part of what is timed, so its outputs are not.
    [[nodiscard]] tl::expected<void, ProfileEnd> place(const OutputSets &outputs, const Where &where);
    /// Unloads the module; a vendor routine stays.
    [[nodiscard]] tl::expected<void, ProfileEnd> remove(const Where &where);

private:
    TimedSide(std::string name, Culprit culprit)
        : m_name(std::move(name))
        , m_culprit(culprit)
    {}
    [[nodiscard]] tl::unexpected<ProfileEnd> failed(const WorkerFailure &failure, const Where &where) const;
    [[nodiscard]] tl::expected<void, ProfileEnd> placePlan(const Where &where);
    [[nodiscard]] tl::expected<void, ProfileEnd> placeReference(const Where &where);

    std::string m_name;
    Culprit m_culprit;
    SideWorker *m_worker = nullptr;
    PreparedCandidate *m_prepared = nullptr;
    kernel::ResolvedPlan m_plan;
    std::optional<ModuleId> m_module;
    std::optional<SubjectId> m_subject;
};

} // namespace klineage::gate
