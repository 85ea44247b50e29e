// SPDX-License-Identifier: GPL-3.0-or-later
//
// A supervisor's options for the gate's own program, as it runs outside tests.
#pragma once

#include "core/gate/supervisor/supervisor.h"
#include "tests/paths.h"

namespace klineage::test {

inline gate::SupervisorOptions realWorker()
{
    gate::SupervisorOptions options;
    options.workerCommand = {klineage::test::programPath("/klineage-gate"), "worker"};
    options.compilerCommand = {klineage::test::programPath("/klineage-gate"), "compile"};
    return options;
}

} // namespace klineage::test
