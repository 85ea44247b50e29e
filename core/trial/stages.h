// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

namespace klineage::gate {

/// The stages of a trial in their order, by the names that files and benchmarks have for them.
struct NamedStage {
    const char *name;
    double StageSeconds::*seconds;
};
inline constexpr NamedStage stageFields[] = {{"start", &StageSeconds::start},
                                             {"compile", &StageSeconds::compile},
                                             {"oracle", &StageSeconds::oracle},
                                             {"check", &StageSeconds::check},
                                             {"profile", &StageSeconds::profile}};

} // namespace klineage::gate
