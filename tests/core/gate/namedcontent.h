// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/hardcontent.h"

#include <QtGlobal>

#include <string>

namespace klineage::test {

/// The content that has this in its name.
inline workload::Case named(const workload::Workload &workload, std::uint64_t seed, const std::string &name)
{
    for (const workload::Case &content : gate::hardContents(workload, seed)) {
        if (content.name.find(name) != std::string::npos)
            return content;
    }
    qFatal("no content %s", name.c_str());
}

inline const gate::HostTensor &tensorOf(const gate::CaseInstance &instance, const std::string &name)
{
    for (const gate::HostTensor &tensor : instance.tensors) {
        if (tensor.name == name)
            return tensor;
    }
    qFatal("no tensor %s", name.c_str());
}

} // namespace klineage::test
