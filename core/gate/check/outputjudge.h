// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/caseinstance.h"
#include "core/gate/check/selection.h"

namespace klineage::gate {

/// Compares what one run left in the outputs of a case with the oracle. Outputs come in the order in which they are declared, because
/// the indices of a selection are judged together with the values before them. The instance must outlive it.
class OutputJudge
{
public:
    explicit OutputJudge(const CaseInstance &instance)
        : m_instance(instance)
    {}
    [[nodiscard]] const CaseInstance &instance() const { return m_instance; }
    [[nodiscard]] OutputCheck compare(const HostTensor &tensor, std::span<const std::byte> content,
                                      PoisonImage poison = {});
    /// The largest OutputCheck::beforeRounding of what was compared.
    [[nodiscard]] double beforeRounding() const { return m_beforeRounding; }

private:
    const CaseInstance &m_instance;
    double m_beforeRounding = 0;
    std::vector<std::byte> m_values; ///< of a selection with indices
};

} // namespace klineage::gate
