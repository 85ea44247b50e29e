// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/session.h"
#include "core/interop/importentry.h"

namespace klineage::cli {

/// How one kind of import is told.
struct ImportWords {
    const char *key;     ///< of the name in an entry's JSON: "card"
    const char *as = ""; ///< what was imported became: " as hypotheses"
    bool dryRun = false;
    std::vector<std::string> next =
        {}; ///< commands that go on with what was imported; told when something was
};

/// Prints what became of each entry and how many were imported. The exit status: negative when nothing was imported, nor was there
/// already.
int printImport(const Session &session, const std::vector<interop::ImportEntry> &entries,
                const ImportWords &words);

} // namespace klineage::cli
