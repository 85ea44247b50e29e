// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/outputjudge.h"

#include <algorithm>

namespace klineage::gate {

OutputCheck OutputJudge::compare(const HostTensor &tensor, std::span<const std::byte> content,
                                 PoisonImage poison)
{
    const auto &tolerance = m_instance.tolerance;
    const auto &expected = m_instance.expected.at(tensor.name);
    const auto &selection = m_instance.selection;
    if (selection && tensor.name == selection->values) {
        if (!selection->indices.empty())
            m_values.assign(content.begin(), content.end());
        if (!selection->sorted)
            return compareSelectedValues(content, tensor.dtype, tensor.rowLength(), expected.doubles(),
                                         tolerance, poison);
    }
    if (selection && tensor.name == selection->indices) {
        if (m_values.empty()) // something worse was found with them, and they were not compared
            return {};
        const auto named = [&](const std::string &name) -> const HostTensor & {
            return *std::find_if(m_instance.tensors.begin(), m_instance.tensors.end(),
                                 [&](const HostTensor &other) { return other.name == name; });
        };
        const SelectedFrom from{named(selection->in), m_values, named(selection->values).dtype,
                                m_instance.expected.at(selection->values).doubles()};
        return compareSelectedIndices(content, tensor.dtype, tensor.rowLength(), from, tolerance, poison);
    }
    OutputCheck check = compareOutput(content, tensor.dtype, tensor.rowLength(), expected, tolerance, poison);
    if (tolerance.beforeRounding > 0)
        m_precision.add(tensor.name, check.rowsBeforeRounding);
    return check;
}

} // namespace klineage::gate
