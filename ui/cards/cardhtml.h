// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/applications.h"
#include "core/skills/card.h"
#include "core/workspace/workspace.h"

#include <QString>

namespace klineage::ui {

/// Pages of a card as rich text in the current theme's colours. Card text is untrusted and escaped; citations become links
/// "cite:<citation>". Pure.
[[nodiscard]] QString fieldsHtml(const skills::CardRecord &record);
/// Each claim with the figures that its evidence recorded, and whether they bear out the gains that it names; evidence that is not in the
/// workspace is said to be missing.
[[nodiscard]] QString evidenceHtml(const skills::CardRecord &record, const Workspace &workspace);
/// applications: null while they are counted.
[[nodiscard]] QString verificationHtml(const skills::CardRecord &record, const Workspace &workspace,
                                       const run::ApplicationRecord *applications);
/// Contracts and near-duplicates, as links "card:<name>".
[[nodiscard]] QString relationsHtml(const skills::CardRecord &record, const Workspace &workspace);
[[nodiscard]] QString historyHtml(const skills::CardRecord &record);

} // namespace klineage::ui
