// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/problems/draft.h"

#include <stop_token>

namespace klineage::interop {

/// Whether a Python text has what a problem of KernelBench consists of: a class Model, get_inputs() and get_init_inputs().
[[nodiscard]] bool looksLikeKernelBench(std::string_view text);

/// A problem of KernelBench, with other numbers for some of its names (withValues()), as a workload: its file runs in a confined process,
/// with torch, to say shapes, types and contents; the weights of the module become inputs. The shape is the one that get_inputs() makes,
/// the only case but one with rows of different scale. Unavailable without torch; InvalidInput, a sentence, for what workload.toml cannot
/// say.
[[nodiscard]] Result<Draft> draftOfKernelBench(const std::string &name, const std::string &text,
                                               const std::map<std::string, std::string> &values,
                                               const std::stop_token &stop);

/// The text with other numbers where a line of it assigns a name of `values`; a note for each.
[[nodiscard]] std::string withValues(const std::string &source,
                                     const std::map<std::string, std::string> &values,
                                     std::vector<std::string> &notes);

/// The same from what the process said of the problem, as JSON. Pure.
[[nodiscard]] Result<Draft> draftOfDescription(const std::string &name, const std::string &source,
                                               const std::string &description);

} // namespace klineage::interop
