// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the verbs of `card` share.
#pragma once

#include "app/cli/session.h"

#include "core/skills/store.h"

namespace klineage::cli {

/// Who reviews or edits, unless --author says: git's identity, then the system's.
[[nodiscard]] std::string defaultAuthor();

[[nodiscard]] Result<skills::CardStore> openStore(const Session &session);

/// A problem of the store: wrong names are usage, a conflict is a "no", the rest is the environment's.
[[nodiscard]] int failStore(const Session &session, const skills::CardStore &store, const std::string &name,
                            const Error &error);

} // namespace klineage::cli
