// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/step.h"
#include "ui/machine/code/machinecode.h"

#include <QString>

#include <filesystem>
#include <map>
#include <string>

namespace klineage::ui {

/// What is wanted of one side, named so that a worker thread can make it without the workspace.
struct CodeRequest {
    CodeForm form = CodeForm::Sass;
    QString label; ///< "K03", for messages
    std::filesystem::path file;
    std::filesystem::path directory; ///< of the lineage, where listings are
    std::string target;              ///< "sm_90a"
    bool hasTrial = false;
    // Of the trial:
    std::string trial;
    std::string candidate; ///< sha-256 of the file that was measured
    std::string device;
    std::string listing; ///< empty: it kept none
    std::map<std::string, std::int64_t> tunables;

    friend bool operator==(const CodeRequest &, const CodeRequest &) = default;
};

[[nodiscard]] CodeRequest codeRequest(const lineage::Lineage &lineage, const lineage::RowRef &row,
                                      CodeForm form);

/// One side's code, or why there is none.
struct SideCode {
    MachineCodePtr code; ///< null: message says why
    QString facts;   ///< compiler, target, number of instructions and of samples, and where they come from
    QString message; ///< why there is none, and what to do
};

} // namespace klineage::ui
