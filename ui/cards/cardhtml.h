// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

#include <QString>

namespace klineage::ui {

/// Pages of a card as rich text in the current theme's colours. Card text is untrusted and escaped; citations become links
/// "cite:<citation>". Pure.
[[nodiscard]] QString fieldsHtml(const skills::CardRecord &record);
[[nodiscard]] QString evidenceHtml(const skills::CardRecord &record);
[[nodiscard]] QString verificationHtml(const skills::CardRecord &record);
[[nodiscard]] QString historyHtml(const skills::CardRecord &record);

} // namespace klineage::ui
