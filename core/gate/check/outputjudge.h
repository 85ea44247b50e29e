// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/caseinstance.h"
#include "core/gate/check/precision.h"
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
    /// OutputCheck::rowsBeforeRounding of the outputs that were compared, where the content tells it.
    [[nodiscard]] const Precision &precision() const { return m_precision; }

private:
    const CaseInstance &m_instance;
    Precision m_precision;
    std::vector<std::byte> m_values; ///< of a selection with indices
};

} // namespace klineage::gate
