// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/accelopt/accelopt.h"
#include "core/policy/kernelpro/kernelpro.h"
#include "core/policy/kernelsmith/kernelsmith.h"

#include <QString>

namespace klineage::tests {

using namespace klineage::policy;

/// What has to hold of each search at any time.
inline QString brokenLaw(const Policy &policy)
{
    if (const auto *pro = dynamic_cast<const KernelPro *>(&policy)) {
        for (int node = 1; node < pro->tree().size(); ++node) {
            const Tree::Node &one = pro->tree().at(node);
            if (one.program < 0 ? !one.children.empty()
                                : static_cast<int>(one.children.size()) > pro->mostChildren(node))
                return QStringLiteral("node %1 has %2 children").arg(node).arg(one.children.size());
        }
    }
    if (const auto *opt = dynamic_cast<const AccelOpt *>(&policy)) {
        if (opt->beam().empty() || opt->beam().size() > 2 || opt->memory().items().size() > 16)
            return QStringLiteral("beam of %1, memory of %2")
                .arg(opt->beam().size())
                .arg(opt->memory().items().size());
        for (const int id : opt->beam()) {
            if (!opt->population().at(id).isCorrect())
                return QStringLiteral("program %1 of the beam failed").arg(id);
        }
    }
    if (const auto *smith = dynamic_cast<const KernelSmith *>(&policy)) {
        for (int island = 0; island < 5; ++island) {
            const Grid grid = smith->grid(island);
            for (const int id : smith->members(island)) {
                const Program &program = smith->population().at(id);
                const auto elite = grid.elites().find(grid.cellOf(program));
                if (elite == grid.elites().end()
                    || smith->population().at(elite->second).score * 1.0201 < program.score)
                    return QStringLiteral("niche of program %1").arg(id);
            }
        }
    }
    return {};
}

} // namespace klineage::tests
