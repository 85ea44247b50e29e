// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

namespace klineage::gate {

/// Says in the trial how far its figures can be trusted, and as evidence "trust" why: from its surface and from what its environment says
/// was in force for the worker ("isolation", "reaches_host_memory").
void sayTrust(Trial &trial);

} // namespace klineage::gate
