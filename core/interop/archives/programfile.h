// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/archives/archive.h"
#include "core/workload/workload.h"

namespace klineage::interop {

/// What a program is written for: as its launch plan says; a module that imports the language; the word for a kernel of a language like C; the
/// name that the archive has for its language. A Python program that holds kernels as texts is none of these.
[[nodiscard]] std::optional<kernel::Surface> surfaceOf(const ArchivedProgram &program);

/// A program as the file of a lineage.
struct ProgramFile {
    enum class Plan {
        Own,        ///< it has one
        Unreadable, ///< it begins with one that cannot be read
        Proposed,   ///< it had none; this one is a guess
        Missing     ///< it has none, and none can be guessed
    };
    std::string text;
    Plan plan = Plan::Missing;
    std::string why;        ///< of Unreadable and Missing, a sentence
    bool isHostCut = false; ///< host code was cut off, so that the plan can launch what is left
};
[[nodiscard]] ProgramFile programFile(const std::string &code, kernel::Surface surface,
                                      const workload::Workload &workload);

} // namespace klineage::interop
