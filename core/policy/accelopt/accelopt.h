// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/accelopt/experience.h"
#include "core/policy/search/searchpolicy.h"

namespace klineage::policy {

[[nodiscard]] const SearchOptions &accelOptOptions();

/// AccelOpt's beam search. Each iteration: a planner writes plans of one step for every program of the beam, from its profile and from the
/// memory; an executor tries each plan a few times; a fixer repairs what failed; a summarizer writes down what clear gains and
/// clear losses teach. The best of each (parent, plan) stays, the parent where none is correct, and the fastest of these are the next beam.
/// Every one of these phases is a batch.
class AccelOpt : public SearchPolicy
{
public:
    AccelOpt(Problem problem, SearchSettings settings);

    [[nodiscard]] const std::vector<int> &beam() const { return m_beam; }
    [[nodiscard]] const ExperienceMemory &memory() const { return m_memory; }
    [[nodiscard]] int iteration() const { return m_iteration; }

private:
    enum class Phase { Plan, Execute, Fix, Summarize };
    /// A plan of this iteration.
    struct Idea {
        int parent = 0;
        std::string text;
        int best = -1; ///< the fastest correct attempt
    };

    [[nodiscard]] Status rooted() override;
    [[nodiscard]] Plan plan() override;
    void absorb(const Batch &batch) override;
    [[nodiscard]] Result<std::string> lookAtPlan(const std::string &block) const override;

    [[nodiscard]] Result<Batch> plans();
    [[nodiscard]] Result<Batch> attempts();
    [[nodiscard]] Result<Batch> fixes();
    [[nodiscard]] Result<Batch> summaries();
    [[nodiscard]] std::string memorySection() const;
    void takeAttempts(const Batch &batch);
    void collectExperience();
    void endIteration();

    std::vector<int> m_beam;
    std::vector<Idea> m_ideas;
    std::vector<std::pair<int, int>> m_broken; ///< idea, failed program: for the fixer
    std::vector<Experience> m_items;           ///< of this iteration, for the summarizer
    ExperienceMemory m_memory;
    ExperienceBounds m_bounds;
    Phase m_phase = Phase::Plan;
    int m_fixes = 0; ///< rounds of repair in this iteration
    int m_iteration = 0;
};

} // namespace klineage::policy
